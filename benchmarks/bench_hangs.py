"""How long hostile inputs take: repeated and nested pieces, for all that reads what others wrote.

python benchmarks/bench_hangs.py                        # 10,000 inputs of each kind
python benchmarks/bench_hangs.py --kind splitter --first 17 --cases 1    # one of them again

An input may take 100 ms of a processor, or 100 ms for each 10 kB (of a Word document: unpacked) if
it is longer. One that takes more is tried again a few times and counts as slow if all are.
"""

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import run

from hostile import ALLOWED, PIECE, measure, targets

HUNG = 60  # seconds, then an input is given up


def measure_all(given: Any) -> dict[str, Any] | None:
    signal.signal(signal.SIGALRM, _give_up)
    with tempfile.TemporaryDirectory() as folder:
        made = targets(Path(folder))
        names = [given.kind] if given.kind else list(made)
        rows = {name: _row(name, made[name], given.first, given.cases) for name in names}
    if given.kind:
        print(json.dumps(rows, indent=1))
        return None
    return {"allowed_ms": 1000 * ALLOWED, "bytes": PIECE, "targets": rows}


def _row(name: str, target: Any, first: int, n_cases: int) -> dict[str, Any]:
    measure(name, target, 0)  # what is loaded and compiled once
    shares, slow, failed = [], [], []
    for case in range(first, first + n_cases):
        signal.alarm(HUNG)
        found = measure(name, target, case)
        signal.alarm(0)
        shares.append(found.share)
        if found.share > 1:
            slow.append(case)
        if found.error:
            failed.append({"case": case, "error": found.error})
    per_piece = 1000 * ALLOWED * np.array(shares)
    return {
        "inputs": n_cases,
        "median_ms": round(float(np.median(per_piece)), 2),
        "p99_ms": round(float(np.percentile(per_piece, 99)), 2),
        "worst_ms": round(float(per_piece.max()), 1),
        "worst_case": first + int(per_piece.argmax()),
        "slow": slow,
        "failed": failed,
    }


def _give_up(*_: Any) -> None:
    sys.exit(f"An input took more than {HUNG} seconds.")


if __name__ == "__main__":
    run(measure_all, cases=10_000, first=0, kind=str)
