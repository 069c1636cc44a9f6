"""Read mutated files of every kind: documents, corpora, models, indexes, stores, backups, maps.

python benchmarks/fuzz.py                            # 200,000 mutants
python benchmarks/fuzz.py --cases 3000 --quick       # those of `make test`
python benchmarks/fuzz.py --kind jsonl --first 17 --cases 1    # one of them again

A mutant must be read or refused with a `VdshError` of one line. What counts as a finding: any
other exception, a crash, more than half a minute, more memory than `BOUND_MB` above what valid
files take, a file written outside the mutant's own folder. Mutants are read in child processes.
"""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from multiprocessing.pool import ThreadPool
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from common import run, show

from fuzz_targets import targets
from vdsh.errors import VdshError
from vdsh.hashers import HASHERS
from vdsh.jit import available_threads, use_threads

SHARES = {"jsonl": 50, "csv": 40, "tsv": 20, "text": 15, "parquet": 15, "svm": 10, "tokens": 5}
SHARES |= {"model": 15, "index": 25, "store": 10, "backup": 5, "map": 10}  # thousands of 200,000
BOUND_MB = 256
SECONDS = 30
CRASHES = 20  # of one kind of file, then no more of it is tried
SHARED_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
FORKING = Lock()  # or a child keeps another's pipe open
WITHOUT_TORCH = ["lsh", "ksh", "sph", "itq"]


def measure(given: Any) -> dict[str, Any] | None:
    cores = available_threads()
    use_threads(1)
    warnings.simplefilter("ignore")
    models = WITHOUT_TORCH if given.quick else list(HASHERS)
    chosen = {given.kind: 1} if given.kind else SHARES
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as scratch:
        made = targets(Path(scratch), models)
        n_cases = {name: -(-given.cases * n // sum(chosen.values())) for name, n in chosen.items()}
        with ThreadPool(cores) as pool:  # each waits for a child
            tasks = [(made[name], name, given.first, n) for name, n in n_cases.items()]
            rows = dict(zip(n_cases, pool.starmap(fuzz, tasks, 1), strict=True))
    findings = [finding for row in rows.values() for finding in row["findings"]]
    if findings or given.kind:
        show({"kinds": [{"kind": name} | row for name, row in rows.items()]})
        sys.exit("\n".join(map(json.dumps, findings)) or None)
    total = sum(row["mutants"] for row in rows.values())
    return {"mutants": total, "bound_mb": BOUND_MB, "seconds": SECONDS, "targets": rows}


def fuzz(target: Any, name: str, first: int, n_cases: int) -> dict[str, Any]:
    """Read the mutants from `first` on; a new child goes on behind one that crashed."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    case, last, crashes, peak = first, first + n_cases, 0, 0
    while case < last and crashes < CRASHES:
        with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
            status, messages = _in_child(target, name, case, last, folder)
        for kind, value in messages:
            if kind == "case":
                case = value + 1
            elif kind == "peak_mb":
                peak = max(peak, value)
            elif kind == "finding":
                known = found.setdefault((value["what"], value["where"]), value | {"times": 0})
                known["times"] += 1
            else:
                counts[kind] += value
        if status:
            crashes += 1
            what = f"ended with {status}"
            known = found.setdefault((what, ""), {"target": name, "what": what, "case": case})
            known["times"] = known.get("times", 0) + 1
            case += 1
    mutants = case - first
    row = {"mutants": mutants, "read": counts["read"], "refused": counts["refused"]}
    return row | {"peak_mb": peak, "findings": list(found.values())}


def _in_child(target: Any, name: str, first: int, last: int, folder: str) -> tuple[int, list[Any]]:
    """Read mutants in a child; return its status and what it said."""
    with FORKING:
        reader, writer = os.pipe()
        child = os.fork()
        if child:
            os.close(writer)
    if not child:
        os.close(reader)
        try:
            _Child(target, name, Path(folder), writer).run(first, last)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    with os.fdopen(reader) as lines:
        messages = [json.loads(line) for line in lines if line.endswith("\n")]
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), messages


class _Child:
    """Reads mutants in a folder of its own, two folders deep, and watches what is written."""

    def __init__(self, target: Any, name: str, folder: Path, writer: int) -> None:
        self.target, self.name, self.output = target, name, os.fdopen(writer, "w")
        self.inside = folder / "outer" / "inner" / "case"
        self.outside: list[str] = []
        self.watching = False
        self.inside.parent.mkdir(parents=True)
        os.chdir(self.inside.parent)
        sys.addaudithook(self._audit)

    def run(self, first: int, last: int) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the parent
        usual = lowest = _peak_mb()
        limit = 1024 * int(Path("/proc/self/statm").read_text().split()[0]) * 4 + (4 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        counts: Counter[str] = Counter()
        for case in range(first, last):
            if not case % 50:  # what a crash would lose
                self._flush(counts, case - 1)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            counts[self._one(case)] += 1
            if (peak := _peak_mb()) > usual + BOUND_MB:
                self._find(case, f"{peak - usual} MB of memory", "")
                usual = peak
        self._say("peak_mb", _peak_mb() - lowest)
        self._flush(counts, last - 1)

    def _one(self, case: int) -> str:
        rng = Random(f"{self.name} {case}")
        shutil.rmtree(self.inside, ignore_errors=True)
        self.inside.mkdir()
        self.target.write(self.inside, rng)
        outcome, self.watching = "read", True
        try:
            self.target.use(self.inside, rng)
        except VdshError as error:
            outcome = "refused"
            if "\n" in str(error):
                self._find(case, f"lines in {str(error)[:200]!r}", "")
        except Exception as error:
            outcome = "failed"
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "vdsh/" in f.filename]
            where = f"{Path(frames[-1].filename).name}, {frames[-1].name}" if frames else ""
            self._find(case, type(error).__name__, where, str(error)[:200])
        self.watching = False
        self._look_outside(case)
        return outcome

    def _look_outside(self, case: int) -> None:
        folder = self.inside
        while folder.name != "outer":
            others = set(os.listdir(folder.parent)) - {folder.name}
            self.outside += [f"{folder.parent}/{name}" for name in others]
            folder = folder.parent
        for path in self.outside:
            self._find(case, "written outside", os.path.basename(path))
        self.outside = []

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what Python writes outside; sqlite3 and other libraries show in the listing."""
        paths: list[Any] = []
        if self.watching and event == "open":
            path, _, flags = arguments
            paths = [path] if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else []
        elif self.watching and event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir"):
            *names, folder = arguments[:2] if event != "os.rename" else (*arguments[:2], -1)
            paths = list(names[:2]) if folder in (-1, 0o777) else []  # else as rmtree names them
        for path in paths:
            name = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes) else ""
            mine = name.startswith((str(self.inside), "/dev/")) or "__pycache__" in name
            if name and not mine:
                self.outside.append(name)

    def _find(self, case: int, what: str, where: str, message: str = "") -> None:
        finding = {"target": self.name, "case": case, "what": what, "where": where}
        self._say("finding", finding | {"message": message})

    def _flush(self, counts: Counter[str], case: int) -> None:
        for kind, n in counts.items():
            self._say(kind, n)
        counts.clear()
        self._say("case", case)
        self.output.flush()

    def _say(self, kind: str, value: Any) -> None:
        self.output.write(json.dumps([kind, value]) + "\n")


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    run(measure, cases=200_000, first=0, kind=str)
