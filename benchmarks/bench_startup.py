"""Start-up: CPU time and memory of commands that answer one question, each in a new process.

python benchmarks/bench_startup.py

The store is the demo's. CPU time (user and system) is the median of ten runs with warm caches: a
clock says more about other processes here. The first search on a machine starts with an empty
cache of compiled kernels.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from common import save

WORDS = (
    "orbit rocket shuttle launch moon crew engine goal match player season team coach ball".split()
)
RUNS = 10
QUERY = "probability density of a distribution"
WANTED = {"search": 0.8, "within": 0.8, "encode": 0.8, "info": 0.4, "duplicates": 0.4}
WANTED |= {"first search on a machine": 4.0, "memory of a search, MB": 150}


class Run(NamedTuple):
    """What a process took."""

    cpu: float
    wall: float
    megabytes: float


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command(), "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        store, model = (str(Path(folder, "vdsh-demo", name)) for name in ("store", "model"))
        text = Path(folder, "text.txt")
        text.write_text(QUERY)
        commands = {
            "import vdsh": [sys.executable, "-c", "import vdsh"],
            "help": [command(), "--help"],
            "search": [command(), "search", store, QUERY],
            "within": [command(), "within", store, QUERY, "--radius", "2"],
            "encode": [command(), "encode", model, str(text)],
            "info": [command(), "info", store],
            "duplicates": [command(), "duplicates", store],
        }
        for arguments in commands.values():
            run(arguments)  # fills the caches
        turns = [
            {name: run(arguments) for name, arguments in commands.items()} for _ in range(RUNS)
        ]
        cpu = {name: median([turn[name].cpu for turn in turns]) for name in commands}
        wall = {name: median([turn[name].wall for turn in turns]) for name in commands}
        memory = round(max(turn["search"].megabytes for turn in turns))
        empty = {"NUMBA_CACHE_DIR": str(Path(folder, "no-kernels"))}
        first = run(commands["search"], empty)
    encoding = encoding_memory()
    for name in commands:
        print(f"{name:12} {cpu[name]:.2f} s of CPU, {wall[name]:.2f} s by the clock")
    print(f"first search on a machine: {first.cpu:.2f} s of CPU; memory of a search {memory} MB")
    print(f"peak memory of vdsh encode: {encoding} MB")
    found = {"cpu_seconds": cpu, "wall_seconds": wall, "runs": RUNS, "wanted": WANTED}
    found |= {"first_search_cpu_seconds": round(first.cpu, 3), "search_memory_mb": memory}
    save("startup", found | {"peak_memory_of_encode_mb": encoding})


def command() -> str:
    return str(Path(sys.executable).with_name("vdsh"))


def median(values: list[float]) -> float:
    return round(statistics.median(values), 3)


def run(arguments: list[str], environment: dict[str, str] | None = None) -> Run:
    # Python keeps what it compiled, as on any machine, also where this is switched off.
    keeping = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=keeping | (environment or {}),
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments} failed")
    wall = time.perf_counter() - start
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def encoding_memory() -> dict[str, int]:
    """Measure the peak resident size of `vdsh encode` on 20,000 and 200,000 documents."""
    from vdsh.pipeline import TextHasher  # here: a child's peak is at least its parent's size

    with tempfile.TemporaryDirectory() as folder:
        texts = [" ".join(WORDS[(i * j) % 14] for j in range(100)) for i in range(200)]
        model = Path(folder, "model")
        TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts).save(model)
        found = {}
        for size in (20_000, 200_000):
            file = Path(folder, f"{size}.jsonl")
            with file.open("w") as handle:
                for i in range(size):
                    handle.write(json.dumps({"id": i, "text": texts[i % 200]}) + "\n")
            used = run([command(), "encode", str(model), str(file)])
            found[f"{size:,} documents"] = round(used.megabytes)
        return found


if __name__ == "__main__":
    main()
