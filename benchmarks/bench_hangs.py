"""How long hostile inputs take: repeated and nested pieces, for all that reads what others wrote.

python benchmarks/bench_hangs.py                        # 10,000 inputs of each kind
python benchmarks/bench_hangs.py --kind splitter --first 17 --cases 1    # one again

An input may take 100 ms of a processor, or 100 ms for each 10 kB (of a Word document: unpacked) if
it is longer. One that takes more is tried again a few times and counts as slow if all are.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import run, show

from hostile import ALLOWED, PIECE, measure, targets

HUNG = 60  # seconds, then an input is given up
KINDS = ("readers", "splitter", "tokenizer", "ignore files", "queries")


def measure_all(given: Any) -> dict[str, Any] | None:
    kinds = (given.kind,) if given.kind else KINDS
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        tasks = [pool.submit(measure_kind, kind, given.first, given.cases) for kind in kinds]
        rows = [task.result() for task in tasks]
    if given.kind:
        show({"kinds": rows})
        return None
    return {"allowed_ms": 1000 * ALLOWED, "bytes": PIECE, "kinds": rows}


def measure_kind(kind: str, first: int, n_cases: int) -> dict[str, Any]:
    """Use the inputs from `first` on, one after the other; times are for each `PIECE` bytes."""
    signal.signal(signal.SIGALRM, _give_up)
    shares: list[float] = []
    slow: list[int] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        target = targets(Path(folder))[kind]
        measure(kind, target, 0)  # what is loaded and compiled once
        for case in range(first, first + n_cases):
            signal.alarm(HUNG)
            found = measure(kind, target, case)
            signal.alarm(0)
            shares.append(found.share)
            if found.share > 1:
                slow.append(case)
            if found.error:
                failed.append(f"{case}: {found.error}")
    times = 1000 * ALLOWED * np.array(shares)
    return {
        "kind": kind,
        "inputs": n_cases,
        "median_ms": round(float(np.median(times)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "worst_ms": round(float(times.max()), 1),
        "worst_case": first + int(times.argmax()),
        "slow": slow,
        "failed": failed,
    }


def _give_up(*_: Any) -> None:
    sys.exit(f"An input took more than {HUNG} seconds.")


if __name__ == "__main__":
    run(measure_all, cases=10_000, first=0, kind=str)
