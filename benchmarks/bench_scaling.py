"""How far one machine goes: an index of 1, 10 and 50 million codes, each in a fresh process.

Run: python benchmarks/bench_scaling.py [--codes 1000000 10000000 50000000]

Random codes of 64 bits, which is the worst case: none repeats. Reports the time to build the
index, to save and to open it, resident memory, one query at a time and a hundred at once on one and
on all cores, and with tables documents within distance 2 (CPU time of one core).
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from common import fresh, resident_mb, run, timed, times

from vdsh import HammingIndex

K, QUERIES, ROUNDS = 100, 100, 3


def measure(given):
    rows = [fresh(measure_one, n) for n in given.codes]
    return {"bits": 64, "k": K, "queries": QUERIES, "rounds": ROUNDS, "rows": rows}


def measure_one(n):
    rng = np.random.default_rng(0)
    warm_up(rng)
    codes = rng.integers(0, 256, (n, 8), dtype=np.uint8)
    queries = codes[rng.integers(0, n, QUERIES)] ^ np.uint8([1, 0, 0, 0, 2, 0, 0, 0])
    before = resident_mb()
    index, build = timed(HammingIndex, codes)
    row = {"codes": n, "build_s": round(build, 2), "resident_mb": round(resident_mb() - before)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        row["save_s"] = round(timed(index.save, path)[1], 2)
        row["open_s"] = round(timed(HammingIndex.open, path)[1], 3)
        row["file_mb"] = round(path.stat().st_size / 1e6)
    for threads in sorted({1, os.cpu_count() or 1}):
        index._rows.threads = threads
        single = times(lambda query: index.search(query[None], k=K), queries[:20])
        batch = times(lambda _: index.search(queries, k=K), range(ROUNDS))
        row[f"query_ms_{threads}"] = round(1e3 * float(np.median(single)), 2)
        row[f"queries_per_second_{threads}"] = round(QUERIES / float(np.median(batch)))
    return row | with_tables(index, queries)


def with_tables(index, queries):
    index._rows.threads = 1
    index._rows.build_tables()
    near = []
    for query in queries:
        start = time.process_time()
        index.within(query[None], 2)
        near.append(time.process_time() - start)
    found = {"within_2_ms": round(1e3 * float(np.median(near)), 3)}
    return found | {"with_tables_mb": round(index.nbytes / 1e6)}


def warm_up(rng):
    """Compile everything."""
    codes = rng.integers(0, 256, (100_000, 8), dtype=np.uint8)
    index = HammingIndex(codes)
    for some in (codes[:1], codes[:QUERIES]):
        index.search(some, k=K)
        index.within(some, 2)


if __name__ == "__main__":
    run(measure, codes=(1_000_000, 10_000_000, 50_000_000))
