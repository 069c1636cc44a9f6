"""The k nearest of up to 100 million codes: tables beside our own scan and faiss, on one thread.

    VDSH_DATA=path/to/data python benchmarks/posterior_codes.py FOLDER
    python benchmarks/bench_nearest.py FOLDER [--part real64 ...] [--sizes 1000000]

Contenders answer each query in turn, and every answer of ours is compared with the scan's. Times
are those that the CPU spent on the calling thread, so that a busy machine counts little; codes are
drawn as `posterior_codes.py` says. Each part is written to `results/` on its own, since the largest
takes minutes.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from common import save
from numpy.typing import NDArray
from posterior_codes import draw, read

from vdsh.search.keeper import LOOK_UP
from vdsh.search.parts import RowHits, Rows
from vdsh.search.probing import scan_time
from vdsh.search.rows import RowIndex

Codes = NDArray[np.uint8]
SIZES = (1_000_000, 10_000_000, 100_000_000)
N_QUERIES, N_SLOW = 40, 6  # of ours; of faiss where it reads all codes
MOST_FOR_FAISS = 800_000_000  # bytes of codes: it copies them
HNSW_CODES = 100_000  # its graph takes a minute for these
ROUNDS = 2  # the first warms up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    for part in options.part or PARTS:
        rows = [row for n in options.sizes for row in PARTS[part](options.folder, n)]
        save(f"nearest_{part}", {"rows": rows})


def real(model: str) -> Callable[[Path, int], list[dict[str, Any]]]:
    """Codes of a model's posterior; queries are new documents, or drawn like the codes."""

    def run(folder: Path, n: int) -> list[dict[str, Any]]:
        doubts = read(folder, model)
        queries = {
            "new documents": doubts.queries[:N_QUERIES],
            "drawn": draw(doubts.probabilities, N_QUERIES, seed=99),
        }
        return race(model, draw(doubts.probabilities, n, seed=0), queries)

    return run


def random(n_bits: int) -> Callable[[Path, int], list[dict[str, Any]]]:
    """Random bits, where nothing is near."""

    def run(folder: Path, n: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8)
        queries = rng.integers(0, 256, (N_QUERIES, n_bits // 8), dtype=np.uint8)
        return race(f"random-{n_bits}", codes, {"random": queries})

    return run


def crowded(folder: Path, n: int) -> list[dict[str, Any]]:
    """Hundred crowds of codes, in each of which a bit in seven is flipped."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(size=(100, 64)) < 0.5
    chances = np.where(centres, 0.85, 0.15).astype(np.float32)
    queries = {"drawn": draw(chances, N_QUERIES, seed=99)}
    return race("crowded-64", draw(chances, n, seed=0), queries)


def race(name: str, codes: Codes, sets: dict[str, Codes]) -> list[dict[str, Any]]:
    """Time tables, scan and faiss on sets of queries, for 10 and 100 nearest."""
    n, flat = len(codes), None
    if codes.nbytes <= MOST_FOR_FAISS:
        flat = faiss.IndexBinaryFlat(8 * codes.shape[1])
        flat.add(codes)
    scan = RowIndex(codes, threads=1, tables=False)
    del codes  # memory is what there is least of
    start = time.thread_time()
    main = scan.settled()
    worth = scan_time(n, scan.n_bytes) >= LOOK_UP  # else an index would have no tables
    built = main.with_tables() if worth else main
    facts = {"codes": name, "n": n, "build_s": round(time.thread_time() - start, 1)}
    tables = RowIndex.from_segment(built, threads=1)
    facts["bytes_a_code"] = round(tables.nbytes / n, 1)
    rows = []
    for queries_are, queries in sets.items():
        for k in 10, 100:
            row = (
                facts | {"queries": queries_are, "k": k} | one_race(tables, scan, flat, queries, k)
            )
            print(row, flush=True)
            rows.append(row)
    return rows


def one_race(tables: RowIndex, scan: RowIndex, flat: Any, queries: Codes, k: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"tables": [], "scan": [], "faiss": []}
    farthest = []
    for turn in range(ROUNDS):
        for i in range(len(queries)):
            query = queries[i : i + 1].copy()
            hits = timed(times["tables"], lambda: tables.search(query, k), turn)  # noqa: B023
            truth = timed(times["scan"], lambda: scan.search(query, k), turn)  # noqa: B023
            assert np.array_equal(hits.rows, truth.rows), "wrong rows"
            assert np.array_equal(hits.distances, truth.distances), "wrong distances"
            farthest.append(int(truth.distances[0, -1]))
            if flat is not None and i < N_SLOW and turn:
                timed(times["faiss"], lambda: flat.search(query, k), turn)  # noqa: B023
    result: dict[str, Any] = {"median_distance_of_kth": float(np.median(farthest))}
    for name, seconds in times.items():
        if seconds:
            result[f"{name}_ms"] = round(1e3 * float(np.median(seconds)), 3)
    result["tables_mean_ms"] = round(1e3 * float(np.mean(times["tables"])), 3)
    result["scan_mean_ms"] = round(1e3 * float(np.mean(times["scan"])), 3)
    ratio = np.array(times["scan"]) / np.array(times["tables"])
    result["times_faster"] = round(float(np.median(ratio)), 2)
    result["times_faster_mean"] = round(result["scan_mean_ms"] / result["tables_mean_ms"], 2)
    return result


def timed(times: list[float], work: Callable[[], Any], turn: int) -> Any:
    start = time.thread_time()
    answer = work()
    if turn:
        times.append(time.thread_time() - start)
    return answer


def approximate(folder: Path, n: int) -> list[dict[str, Any]]:
    """Race the indexes of faiss that do not read everything; say how many they find."""
    if n > SIZES[1]:
        return []
    doubts = read(folder, "vdsh-64")
    codes, queries = draw(doubts.probabilities, n, seed=0), doubts.queries[:N_QUERIES]
    rows = []
    indexes = [
        ("IndexBinaryHash, 16 bits, 1 flip", n, lambda: binary_hash(1)),
        ("IndexBinaryHash, 16 bits, 2 flips", n, lambda: binary_hash(2)),
        ("IndexBinaryIVF, 1,024 lists, 16 probes", n, ivf),
    ]
    if n <= SIZES[0]:  # others would take too much memory or time
        hnsw = ("IndexBinaryHNSW, 16 links", HNSW_CODES, lambda: faiss.IndexBinaryHNSW(64, 16))
        multi = ("IndexBinaryMultiHash, 4 x 16 bits, 1 flip", n, lambda: multi_hash(1))
        indexes += [multi, hnsw]
    for name, size, make in indexes:
        part = codes[:size]
        ours, index = RowIndex(part, threads=1), make()
        if scan_time(len(part), ours.n_bytes) >= LOOK_UP:
            ours.build_tables()
        if not index.is_trained:
            index.train(part[:: max(1, size // 100_000)])
        index.add(part)
        for k in 10, 100:
            rows.append({"index": name, "n": size, "k": k} | one_recall(ours, index, queries, k))
            print(rows[-1], flush=True)
    return rows


def binary_hash(n_flips: int) -> Any:
    index = faiss.IndexBinaryHash(64, 16)
    index.nflip = n_flips
    return index


def multi_hash(n_flips: int) -> Any:
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.nflip = n_flips
    return index


def ivf() -> Any:
    quantizer = faiss.IndexBinaryFlat(64)
    index = faiss.IndexBinaryIVF(quantizer, 64, 1024)
    index.own_fields = True
    quantizer.this.disown()
    index.nprobe = 16
    return index


def one_recall(ours: RowIndex, index: Any, queries: Codes, k: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"tables": [], "faiss": []}
    shares = []
    for turn in range(ROUNDS):
        for i in range(len(queries)):
            query = queries[i : i + 1].copy()
            truth: RowHits = timed(times["tables"], lambda: ours.search(query, k), turn)  # noqa: B023
            found, _ = timed(times["faiss"], lambda: index.search(query, k), turn)  # noqa: B023
            # Ties may be broken in any way: what counts is how many are near enough.
            shares.append(float(np.mean(near_enough(found[0], truth.distances[0]))))
    medians = {f"{name}_ms": round(1e3 * float(np.median(t)), 3) for name, t in times.items()}
    return medians | {"recall": round(float(np.mean(shares)), 3)}


def near_enough(found: Rows, truth: Rows) -> NDArray[np.bool_]:
    return (found >= 0) & (found <= truth[-1])


PARTS: dict[str, Callable[[Path, int], list[dict[str, Any]]]] = {
    "real64": real("vdsh-64"),
    "real128": real("vdsh-128"),
    "supervised64": real("vdsh-s-64"),
    "random64": random(64),
    "random128": random(128),
    "crowded64": crowded,
    "approximate": approximate,
}

if __name__ == "__main__":
    main()
