"""One way to measure, record and print, for every benchmark.

A script ends with `run(measure, documents=1_000_000, rounds=5)`: keywords are options, `measure`
gets them and returns a result. A dict of functions are parts, each with a result of its own, and
`--only` chooses among them. `--quick` shows in a minute that a script works: few posts, a hundredth
of every number of 10,000 and more, and what it finds is kept in a temporary folder.

Results are `results/NAME.json`, or in the folder $VDSH_RESULTS: version, commit, machine, load and
seed, then what was measured. Corpora are in the folder $VDSH_DATA.
"""

import argparse
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import SplitResult, urlsplit

import numpy as np

from vdsh.datasets import Dataset, load
from vdsh.jit import load_kernels

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
VDSH = (sys.executable, "-m", "vdsh")
LARGE = 10_000  # what a quick run divides by a hundred
POSTS = 1_500  # of a quick run
sys.path.append(str(ROOT / "tests"))  # `servers` starts PostgreSQL and Milvus


# -- a run ----------------------------------------------------------------------------------------


def run(measure: Callable[..., Any] | dict[str, Callable[..., Any]], **defaults: Any) -> None:
    """Read the options, measure, print and record."""
    parts = measure if isinstance(measure, dict) else {"": measure}
    given = _options(parts, defaults)
    load_kernels()  # what is compiled once for a machine is not measured
    for part in given.only or parts:
        load = os.getloadavg()[0]  # of other work
        found = parts[part](given)
        if found is not None:  # what this machine or these options let it measure
            result = {"load": round(load, 2), "seed": 0} | found
            show(result)
            name = Path(sys.argv[0]).stem.removeprefix("bench_")
            save("_".join(filter(None, (name, part, _size(given, defaults)))), result)


def _options(parts: dict[str, Any], defaults: dict[str, Any]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="see in a minute that it works")
    parser.add_argument("--only", nargs="+", choices=list(parts), help=argparse.SUPPRESS)
    for name, value in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, type):
            parser.add_argument(option, type=value)
        elif isinstance(value, tuple):
            parser.add_argument(option, type=type(value[0]), nargs="+", default=value)
        else:
            parser.add_argument(option, type=type(value), default=value)
    given = parser.parse_args()
    if given.quick:
        os.environ.setdefault("VDSH_RESULTS", f"{tempfile.gettempdir()}/vdsh-quick")
        for name, value in defaults.items():
            if getattr(given, name) == value:
                setattr(given, name, _small(value))
    return given


def _small(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_small, value))
    return value // 100 if isinstance(value, int) and value >= LARGE else value


def _size(given: argparse.Namespace, defaults: dict[str, Any]) -> str:
    """Name the result of another number of documents after it."""
    usual = given.quick or "documents" not in defaults or given.documents == defaults["documents"]
    return "" if usual else str(given.documents)


# -- results --------------------------------------------------------------------------------------


def save(name: str, result: dict[str, Any]) -> None:
    """Write a result with its circumstances."""
    # Version 0.2, whose processes `bench_before` starts with this module, has it elsewhere.
    from vdsh.paper.provenance import provenance

    folder = Path(os.environ.get("VDSH_RESULTS", RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"circumstances": provenance(), **result}, indent=1)
    (folder / f"{name}.json").write_text(text + "\n")
    print(f"-> {folder.name}/{name}.json")


def read(name: str) -> dict[str, Any]:
    """Read a committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def show(result: dict[str, Any]) -> None:
    """Print a result: a line a fact, and rows as a table."""
    for name, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            head = list(dict.fromkeys(key for row in value for key in row))
            print(markdown(head, [[str(row.get(key, "")) for key in head] for row in value]))
        else:
            print(f"{name:28} {value}")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, tight: bool = False) -> str:
    """Write a table; a tight one has no spaces in its ruler and none to spare in its head."""
    lines = [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]
    if tight:
        lines[:2] = [" ".join(lines[0].split()), lines[1].replace(" ", "")]
    return "\n".join(lines)


# -- time and memory ------------------------------------------------------------------------------


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return an answer and how many seconds it took."""
    start = time.perf_counter()
    return work(*arguments), time.perf_counter() - start


def times(work: Callable[[Any], Any], asked: Iterable[Any]) -> list[float]:
    """Return the seconds of each call."""
    return [timed(work, one)[1] for one in asked]


def alternate(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time contenders in turn, several rounds, after one untimed round; return median seconds.

    Each goes first as often as the others: the second finds data in the cache.
    """
    names, found = list(contenders), {name: [] for name in contenders}
    for turn in range(rounds + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds = timed(contenders[name])[1]
            if turn:
                found[name].append(seconds)
    return {name: statistics.median(values) for name, values in found.items()}


def summary(seconds: Sequence[float], rare: int = 99) -> dict[str, float]:
    """Say what is usual and what is rare, in milliseconds."""
    median, tail = (1000 * np.percentile(seconds, [50, rare])).round(2).tolist()
    return {"median_ms": median, f"p{rare}_ms": tail}


def fresh(work: Callable[..., Any], *arguments: Any, source: str = "") -> Any:
    """Call a function in a process of its own, with the vdsh of another `src` if that is given."""
    spawn, path = multiprocessing.get_context("spawn"), [source, *sys.path] if source else sys.path
    with patch.object(sys, "path", path):  # a new process has that of this one
        with ProcessPoolExecutor(1, mp_context=spawn, initializer=load_kernels) as pool:
            return pool.submit(work, *arguments).result()


def resident_mb(pid: int | str = "self", *, peak: bool = False) -> float:
    """Say how much memory a process has, or had at most, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    found = re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+)", status.read_text())
    return int(found[1]) * 1.024 / 1000 if found else 0.0  # it has ended


def bytes_of(path: Path) -> int:
    """Add up the sizes of files."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# -- documents and services -----------------------------------------------------------------------


def posts(quick: bool = False) -> Dataset:
    """Load 20 Newsgroups, or a few of its posts."""
    data = load("20newsgroups", quiet=True)
    if not quick:
        return data
    few = {name: getattr(data, name) for name in ("train", "validation", "test")}
    return data._replace(**{name: part.take(np.arange(POSTS)) for name, part in few.items()})


def cut(texts: Sequence[str], n: int, length: int = 22, seed: int = 0) -> list[str]:
    """Cut documents of so many successive words out of texts, from any place."""
    rng = np.random.default_rng(seed)
    words = [text.split() for text in texts]
    words = [some for some in words if len(some) > 2 * length]
    chosen = rng.integers(0, len(words), n)
    starts = (rng.random(n) * [len(words[i]) - length for i in chosen]).astype(int)
    return [" ".join(words[i][j : j + length]) for i, j in zip(chosen, starts, strict=True)]


def line(text: str) -> str:
    """Take the first line that has words: what one types."""
    return next((some for some in text.splitlines() if len(some.split()) > 2), "")[:80]


@contextmanager
def serving(*words: object) -> Iterator[tuple[subprocess.Popen[str], SplitResult]]:
    """Run `vdsh serve` as a user would, on any free port; give the process and its address."""
    command = [*VDSH, "serve", *map(str, words), "--port", "0", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "VDSH_TOKEN"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address, "the service did not start"
        yield process, urlsplit(address[0])
    finally:
        process.terminate()
        process.wait(60)
