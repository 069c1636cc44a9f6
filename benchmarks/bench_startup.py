"""Start-up: CPU time of commands that answer one question, each in a new process; size on disk.

Run: python benchmarks/bench_startup.py

The store is the demo's. CPU time (user and system) is the median of ten runs with warm caches: a
clock says more about other processes here. The first search on a machine starts with an empty
cache of compiled kernels. The size is that of a base install in a fresh environment, from the
package index of this machine: `--only size`.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from common import ROOT, VDSH, run

QUERY = "probability density of a distribution"
WANTED = {"search": 0.6, "within": 0.8, "encode": 0.8, "info": 0.4}
WANTED["first search on a machine"] = 4.0
WANTED_MB = 460
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")  # not ours


class Spent(NamedTuple):
    """What a process took."""

    cpu: float
    wall: float


def measure(given):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*VDSH, "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        store, model = (str(Path(folder, "vdsh-demo", name)) for name in ("store", "model"))
        export = [*VDSH, "research", "export", store, "--to", "model", "--out", model]
        subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
        text = Path(folder, "text.txt")
        text.write_text(QUERY)
        commands = {
            "import vdsh": [sys.executable, "-c", "import vdsh"],
            "help": [*VDSH, "--help"],
            "search": [*VDSH, "search", store, QUERY],
            "within": [*VDSH, "search", store, QUERY, "--radius", "40"],
            "encode": [*VDSH, "encode", model, str(text)],
            "info": [*VDSH, "info", store],
            "duplicates": [*VDSH, "duplicates", store],
        }
        turns = [{name: spend(words) for name, words in commands.items()}
                 for _ in range(given.rounds + 1)][1:]  # fmt: skip
        first = spend(commands["search"], NUMBA_CACHE_DIR=str(Path(folder, "no-kernels")))
    cpu, wall = (
        {name: round(statistics.median(turn[name][i] for turn in turns), 3) for name in commands}
        for i in (0, 1)
    )
    found = {"cpu_seconds": cpu, "wall_seconds": wall, "runs": given.rounds, "wanted": WANTED}
    return found | {"first_search_cpu_seconds": round(first.cpu, 3)}


def spend(arguments, allowed=(0,), **environment):
    # Python keeps what it compiled, as on any machine, also where this is switched off.
    keeping = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start = time.perf_counter()
    process = subprocess.Popen(arguments, **silent, env=keeping | environment)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in allowed:
        raise SystemExit(f"{arguments} failed")
    return Spent(usage.ru_utime + usage.ru_stime, time.perf_counter() - start)


def size(given):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, source)
        environment = Path(folder, "environment")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", source]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        packages = next(environment.rglob("site-packages"))
        sizes = {path.name: megabytes(path) for path in packages.iterdir()}
    tools = sum(mb for name, mb in sizes.items() if name.startswith(TOOLS))
    largest = dict(sorted(sizes.items(), key=lambda item: -item[1])[:12])
    return {
        "base_install_mb": round(sum(sizes.values()) - tools),
        "pip_and_setuptools_mb": round(tools),
        "wanted_mb": WANTED_MB,
        "largest_mb": {name: round(mb, 1) for name, mb in largest.items()},
    }


def megabytes(path):
    """Sum the blocks of files, or their lengths where a system does not count blocks."""
    files = path.rglob("*") if path.is_dir() else [path]
    facts = [file.lstat() for file in files if not file.is_dir()]
    return sum(getattr(fact, "st_blocks", 0) * 512 or fact.st_size for fact in facts) / 2**20


if __name__ == "__main__":
    run({"": measure, "size": size}, rounds=10)
