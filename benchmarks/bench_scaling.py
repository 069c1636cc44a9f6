"""How far one machine goes: an index of 1, 10 and 50 million codes, each in a fresh process.

    python benchmarks/bench_scaling.py [--codes 1000000 10000000 50000000] [--tables]

Random codes of 64 bits, which is the worst case: none repeats. Reports the time to build the
index, to save and to open it, resident memory, one query at a time and a hundred at once on one and
on all cores, and with tables documents within distance 2 (CPU time of one core). With --tables only
that is measured again, and the rest of the result stays.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import read, resident_mb, save, write

from vdsh import HammingIndex
from vdsh.paper import provenance

SIZES = (1_000_000, 10_000_000, 50_000_000)
K, QUERIES, ROUNDS = 100, 100, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--tables", action="store_true", help="measure only what tables do")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, only_tables=options.tables)))
        return
    rows = []
    for n in options.codes:
        command = [sys.executable, __file__, "--one", str(n), *["--tables"] * options.tables]
        rows.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
        print(rows[-1], flush=True)
    if options.tables:
        old = read("scaling")
        rows = [was | now for was, now in zip(old["rows"], rows, strict=True)]
        write("scaling", old | {"rows": rows, "tables": provenance()})
        return
    save("scaling", {"bits": 64, "k": K, "queries": QUERIES, "rounds": ROUNDS, "rows": rows})


def measure(n: int, *, only_tables: bool) -> dict:
    rng = np.random.default_rng(0)
    warm_up(rng)
    codes = rng.integers(0, 256, (n, 8), dtype=np.uint8)
    queries = codes[rng.integers(0, n, QUERIES)] ^ np.uint8([1, 0, 0, 0, 2, 0, 0, 0])
    if only_tables:
        return {"codes": n} | measure_tables(HammingIndex(codes), queries)
    before = resident_mb()
    index, build = timed(lambda: HammingIndex(codes))
    row = {"codes": n, "build_s": round(build, 2), "resident_mb": round(resident_mb() - before)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        row["save_s"] = round(timed(lambda: index.save(path))[1], 2)
        opened, seconds = timed(lambda: HammingIndex.open(path))
        row["open_s"] = round(seconds, 3)
        row["file_mb"] = round(size_of(path) / 1e6)
        del opened
    for threads in sorted({1, os.cpu_count() or 1}):
        index._rows.threads = threads
        single = [timed(lambda q=q: index.search(q[None], k=K))[1] for q in queries[:20]]
        batch = [timed(lambda: index.search(queries, k=K))[1] for _ in range(ROUNDS)]
        row[f"query_ms_{threads}"] = round(1e3 * float(np.median(single)), 2)
        row[f"queries_per_second_{threads}"] = round(QUERIES / float(np.median(batch)))
    return row | measure_tables(index, queries)


def measure_tables(index: HammingIndex, queries: np.ndarray) -> dict:
    index._rows.threads = 1
    index._rows.build_tables()
    near = []
    for query in queries:
        start = time.process_time()
        index.within(query[None], 2)
        near.append(time.process_time() - start)
    found = {"within_2_ms": round(1e3 * float(np.median(near)), 3)}
    return found | {"with_tables_mb": round(index.nbytes / 1e6)}


def warm_up(rng) -> None:
    """Compile everything."""
    codes = rng.integers(0, 256, (100_000, 8), dtype=np.uint8)
    index = HammingIndex(codes)
    for some in (codes[:1], codes[:QUERIES]):
        index.search(some, k=K)
        index.within(some, 2)


def timed(work):
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    main()
