"""Long texts: a search in a new process, and in one that has searched before.

Run: python benchmarks/bench_long.py

The texts are what every machine has: the documentation of the system's packages in /usr/share/doc
and that of Python's packages. Where there is little of it, sources of Python's library are joined
to texts of up to a megabyte. Stretches of the same texts make a pile of notes and one of Markdown
files. Each pile is added by `vdsh add`.

A new process is `vdsh search` as a user runs it: CPU time of user and system, and the clock, each
query several times; `least` is the median over the queries of their least times, which other
work on the machine disturbs least. A warm query is `store.search` in a process that has asked all
queries once.

With `--folder` the stores are kept there, and used again.
"""

import gzip
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import cache
from pathlib import Path

from bench_startup import spend
from common import VDSH, fresh, run, summary, times

from vdsh.store import open_store

QUERIES = (
    "install python package",
    "memory leak when the window is closed",
    "license and copyright",
    "how to report a bug",
    "change the default configuration file",
    "support for unicode file names",
    "segmentation fault",
    "build with cmake on windows",
    "deprecated function removed",
    "performance of regular expressions",
    "environment variables",
    "ssl certificate verification",
)
DOCUMENTATION = (".md", ".rst", ".txt", ".html", ".gz", "")
PLACES = ("/usr/share/doc", "/usr/local/share/doc")
LEAST = 500  # kilobytes that a text of joined sources has, at most twice as many
WANTED = {
    "packages": {"wall": 0.5, "warm_ms": 15},
    "notes": {"cpu": 0.2},
    "markdown": {"cpu": 0.35},
}


def measure(given):
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(given.folder or scratch)
        texts = cache(lambda: collect(5 if given.quick else given.megabytes))
        n_files = 200 if given.quick else given.files
        piles = {
            "notes": lambda: stretches(texts(), given.notes, 1_500),
            "markdown": lambda: stretches(texts(), n_files, 5_000),
            "packages": texts,
        }
        rows = [measure_pile(name, place, make, given) for name, make in piles.items()]
    return {"queries": len(QUERIES), "rounds": given.rounds, "rows": rows, "wanted": WANTED}


def measure_pile(name, place, make, given):
    """Add a pile of texts where it is not there yet, and time searches."""
    store = place / f"store-{name}"
    if not store.exists():
        folder = place / name
        write(folder, make())
        add = [*VDSH, "add", str(store), str(folder), "--learn", given.learn, "--quiet"]
        subprocess.run(add, check=True, stdout=subprocess.DEVNULL)
    with open_store(store, create=False) as opened:
        sizes = [len(document.text) for document in opened]
        bits = opened.n_bits
    found = {"store": name, "documents": len(sizes), "bits": bits}
    found["megabytes"] = round(sum(sizes) / 1e6, 1)
    found["longest_kilobytes"] = round(max(sizes) / 1e3)
    found |= time_new_processes(store, given.rounds)
    return found | fresh(time_warm, str(store), given.rounds)


def time_new_processes(store, rounds):
    """Run `vdsh search`; other stores and queries come in between, as in life."""
    spent = {query: [] for query in QUERIES}
    for _ in range(rounds):
        for query in QUERIES:
            command = [*VDSH, "search", str(store), query]
            spent[query].append(spend(command, allowed=(0, 1)))  # 1: nothing found
    found = {}
    for name in ("cpu", "wall"):
        seconds = [[getattr(one, name) for one in of] for of in spent.values()]
        found[f"{name}_least"] = round(statistics.median(map(min, seconds)), 3)
        found[f"{name}_median"] = round(statistics.median(sum(seconds, [])), 3)
    return found


def time_warm(store, rounds):
    """Time `store.search`, in a process of its own, after each query was asked once."""
    with open_store(store, create=False) as opened:
        start = time.perf_counter()
        opened.search(QUERIES[0])
        first = time.perf_counter() - start
        for query in QUERIES * 2:
            opened.search(query)
        seconds = times(opened.search, QUERIES * 2 * rounds)
    warm = {f"warm_{name}": value for name, value in summary(seconds).items()}
    return {"first_ms": round(1000 * first, 1), **warm}


def collect(megabytes):
    """Read the documentation on this machine; fill up with sources where there is little."""
    packages = [place for place in sys.path if place.endswith("-packages")]
    texts, size = {}, 0
    for place in map(Path, (*PLACES, *packages)):
        for file in sorted(place.rglob("*")) if place.is_dir() else ():
            text = read(file) if file.suffix.lower() in DOCUMENTATION else ""
            if size < 1e6 * megabytes and len(text) > 200:
                texts[f"{file.parent.name}-{file.stem}"] = text
                size += len(text)
    sources = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    joined = ""
    while size < 1e6 * megabytes / 2 and sources:
        joined += read(sources.pop())
        if len(joined) > 1000 * LEAST or not sources:
            texts[f"sources-{len(texts)}"] = joined
            size += len(joined)
            joined = ""
    return texts


def read(file):
    """Read a text of at most 20 MB; what is none is empty."""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > 20e6:
            return ""
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except (OSError, EOFError, ValueError):
        return ""


def stretches(texts, n, length):
    """Cut texts of about some length out of others, from the beginnings of lines."""
    rng = random.Random(0)
    names = [name for name, text in texts.items() if len(text) > 2 * length]
    found = {}
    while len(found) < n:
        name = rng.choice(names)
        start = texts[name].find("\n", rng.randrange(len(texts[name]) - length)) + 1
        size = int(length * rng.lognormvariate(0, 0.7))
        found[f"{len(found):04}-{name[:40]}"] = texts[name][start : start + size]
    return found


def write(folder, texts):
    """Write texts as Markdown files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.replace(os.sep, '-')[:80]}.md").write_text(text)


if __name__ == "__main__":
    run(measure, megabytes=120, notes=68, files=2_800, rounds=3, learn="now", folder="")
