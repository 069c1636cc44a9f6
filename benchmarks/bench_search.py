"""Measure Hamming search beside faiss and usearch, and check every timed answer.

Run: VDSH_DATA=path/to/data python benchmarks/bench_search.py (some minutes), or with --quick.
Without VDSH_DATA the codes of a trained model are left out. All
contenders answer the same queries in the same run on the same number of threads, taking turns;
medians count.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import faiss
import numpy as np
from common import resident_mb, save
from numpy.typing import NDArray
from usearch.index import MetricKind
from usearch.index import search as usearch_search

from vdsh import TextHasher
from vdsh.codes import to_words
from vdsh.datasets import load
from vdsh.jit import in_threads, kernel
from vdsh.search import HammingIndex

Codes = NDArray[np.uint8]
K = 100
IN_TURN = 10  # single queries a contender answers before it is the other's turn
ID_KINDS: dict[str, Callable[[int], Any]] = {
    "counted ids": lambda n: None,
    "integer ids": lambda n: np.arange(n, dtype=np.int64) * 3,
    "64-bit integer ids": lambda n: np.arange(n, dtype=np.int64) * 2**33,
}


@dataclass
class Bench:
    """Settings of a run, and the rows it has measured."""

    seed: int
    rounds: int
    quick: bool
    rows: list[dict[str, Any]] = field(default_factory=list)

    def size(self, n: int) -> int:
        """Scale a number of codes down in a quick run."""
        return n // 100 if self.quick else n

    def rng(self) -> np.random.Generator:
        """Start the random numbers of a case."""
        return np.random.default_rng(self.seed)

    def race(
        self, case: str, contenders: dict[str, Callable[[], Any]], asked: int = 1, **facts: Any
    ) -> None:
        """Time contenders in turns, each turn of so many calls, and keep the medians of a call."""
        names = list(contenders)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(self.rounds + 1):
            # Each goes first as often as the others: the second finds data in cache.
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                start = time.perf_counter()
                contenders[name]()
                if turn:  # the first turn warms up
                    seconds[name].append((time.perf_counter() - start) / asked)
        medians = {name: float(np.median(times)) for name, times in seconds.items()}
        row = {
            "case": case,
            **facts,
            "median_ms": {name: round(1e3 * t, 4) for name, t in medians.items()},
            "times_ours": {name: round(t / medians["vdsh"], 2) for name, t in medians.items()},
        }
        if "n" in facts:
            each = 1e9 / (facts["n"] * facts.get("queries", 1))
            row["ns_per_code"] = {name: round(each * t, 4) for name, t in medians.items()}
        self.rows.append(row)
        print(json.dumps(row), flush=True)


def random_codes(rng: np.random.Generator, n: int, n_bits: int) -> Codes:
    return rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def clustered_codes(rng: np.random.Generator, n: int, centres: Codes) -> Codes:
    """Draw centres at random and flip 1.5 bits on average (Poisson)."""
    words = np.ascontiguousarray(centres[rng.integers(0, len(centres), n)]).view(np.uint64)[:, 0]
    n_flips = rng.poisson(1.5, n)
    for i in range(int(n_flips.max())):
        bits = rng.integers(0, 64, n).astype(np.uint64)
        words = np.where(n_flips > i, words ^ (np.uint64(1) << bits), words)
    return words.reshape(-1, 1).view(np.uint8)


def supervised_codes(rng: np.random.Generator, n: int) -> Codes:
    """Repeat the codes of a trained VDSH-S; one bit of every tenth code is flipped."""
    data = load("20newsgroups")
    hasher = TextHasher("vdsh-s", n_bits=32, random_state=0, epochs=10)
    hasher.fit(data.train.texts, data.train.labels)
    real, _ = hasher.encode_and_count(data.train.texts)
    codes = real[rng.integers(0, len(real), n)]
    noisy = np.flatnonzero(rng.random(n) < 0.1)
    bits = rng.integers(0, 32, len(noisy))
    codes[noisy, bits // 8] ^= np.uint8(1) << (bits % 8).astype(np.uint8)
    return codes


def slow_distances(codes: Codes, query: Codes) -> NDArray[np.int64]:
    words, target = to_words(codes), to_words(query[None])[0]
    distances = np.zeros(len(codes), np.int64)
    for word, value in zip(words.T, target, strict=True):
        distances += np.bitwise_count(word ^ value)
    return distances


def check_nearest(codes: Codes, queries: Codes, hits: Any, faiss_hits: Any = None) -> None:
    """Compare ids and distances with a full sort; faiss may order ties in its own way."""
    for q, query in enumerate(queries):
        distances = slow_distances(codes, query)
        worst = np.partition(distances, K - 1)[K - 1]
        near = np.flatnonzero(distances <= worst)
        order = near[np.argsort(distances[near], kind="stable")][:K]
        assert np.array_equal(hits.ids[q], order), "wrong ids"
        assert np.array_equal(hits.distances[q], distances[order]), "wrong distances"
        if faiss_hits is not None:
            assert np.array_equal(faiss_hits[0][q], distances[order]), "faiss differs"


def check_within(codes: Codes, queries: Codes, radius: int, answers: Any) -> None:
    for query, hits in zip(queries, answers, strict=True):
        distances = slow_distances(codes, query)
        near = np.flatnonzero(distances <= radius)
        order = near[np.argsort(distances[near], kind="stable")]
        assert np.array_equal(hits.ids, order), "wrong ids within the radius"


def make_faiss(codes: Codes) -> Any:
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return index


def use_threads(index: HammingIndex, threads: int) -> None:
    index._rows.threads = threads
    faiss.omp_set_num_threads(threads)


def in_turn(queries: Codes, run: Callable[[Codes], Any]) -> Callable[[], Any]:
    """Ask ten queries one after the other, new ones at each call."""
    turn = iter(np.tile(np.arange(len(queries)), 1000))
    return lambda: [run(queries[[next(turn)]]) for _ in range(IN_TURN)]


def bench_nearest(bench: Bench, case: str, codes: Codes, queries: Codes, bandwidth: bool) -> None:
    """Race for the nearest 100: one query and a batch, on one thread and on two."""
    index, flat = HammingIndex(codes), make_faiss(codes)
    facts = {"n": len(codes), "n_bits": index.n_bits, "k": K}
    check_nearest(codes, queries, index.search(queries, k=K), flat.search(queries, K))
    for threads in 1, 2:
        use_threads(index, threads)
        contenders = {
            "vdsh": in_turn(queries, lambda q: index.search(q, k=K)),
            "faiss": in_turn(queries, lambda q: flat.search(q, K)),
        }
        if bandwidth:
            contenders["reading the codes"] = in_turn(
                queries,
                lambda _: read_all(index, threads),  # noqa: B023
            )
        bench.race(f"{case}, one query", contenders, IN_TURN, threads=threads, **facts)
        contenders = {
            "vdsh": lambda: index.search(queries, k=K),
            "faiss": lambda: flat.search(queries, K),
        }
        bench.race(f"{case}, batch", contenders, threads=threads, queries=len(queries), **facts)


@kernel()
def _read(words: NDArray[np.uint64]) -> np.uint64:
    total = np.uint64(0)
    for word in words:
        total ^= word
    return total


def read_all(index: HammingIndex, threads: int) -> None:
    """Read the memory of all codes once: no exact scan can be faster."""
    words = index._rows.settled().strips.data.reshape(-1).view(np.uint64)
    in_threads(_read, np.array_split(words, threads), threads)


def bench_usearch(bench: Bench, codes: Codes, queries: Codes) -> None:
    """Race against usearch on fewer codes; it takes seconds where others take milliseconds."""
    index = HammingIndex(codes)
    for threads in 1, 2:
        use_threads(index, threads)
        contenders = {
            "vdsh": lambda: index.search(queries, k=K),
            "usearch": lambda: usearch_search(
                codes,
                queries,
                K,
                MetricKind.Hamming,
                exact=True,
                threads=threads,  # noqa: B023
            ),
        }
        facts = {"n": len(codes), "n_bits": 64, "k": K, "queries": len(queries)}
        bench.race("usearch, random 64 bits, batch", contenders, threads=threads, **facts)
    found = contenders["usearch"]()
    check_nearest(codes, queries, index.search(queries, k=K))
    expected = index.search(queries, k=K).distances
    assert np.array_equal(found.distances.astype(np.int64), expected), "usearch differs"


def bench_within(bench: Bench, case: str, codes: Codes, queries: Codes, radius: int) -> None:
    """Race for all within a radius, our own scan included; faiss returns distances below it."""
    index, flat = HammingIndex(codes), make_faiss(codes)
    start = time.perf_counter()
    index._rows.build_tables()
    answers = index.within(queries, radius)
    first = time.perf_counter() - start
    check_within(codes, queries, radius, answers)
    n_hits = sum(len(hits.ids) for hits in answers)
    assert flat.range_search(queries, radius + 1)[0][-1] == n_hits, "faiss differs"
    facts = {"n": len(codes), "n_bits": index.n_bits, "radius": radius}
    facts["hits_per_query"] = n_hits / len(queries)
    for threads in 1, 2:
        use_threads(index, threads)
        contenders = {
            "vdsh": in_turn(queries, lambda q: index.within(q, radius)),
            "vdsh, scan only": in_turn(queries, lambda q: scan_only(index, q, radius)),
            "faiss": in_turn(queries, lambda q: flat.range_search(q, radius + 1)),
        }
        bench.race(f"{case}, radius {radius}", contenders, IN_TURN, threads=threads, **facts)
        contenders = {
            "vdsh": lambda: index.within(queries, radius),
            "vdsh, scan only": lambda: scan_only(index, queries, radius),
            "faiss": lambda: flat.range_search(queries, radius + 1),
        }
        facts_ = facts | {"queries": len(queries), "first_call_s": round(first, 3)}
        bench.race(f"{case}, radius {radius}, batch", contenders, threads=threads, **facts_)


def scan_only(index: HammingIndex, queries: Codes, radius: int) -> Any:
    """Answer a radius query without tables."""
    index._rows.tables = False
    answers = index.within(queries, radius)
    index._rows.tables = True
    return answers


def bench_growth(bench: Bench) -> None:
    for n in map(bench.size, (1_000_000, 10_000_000, 50_000_000)):
        codes, queries = random_codes(bench.rng(), n, 64), random_codes(bench.rng(), 20, 64)
        start = time.perf_counter()
        index = HammingIndex(codes)
        build = time.perf_counter() - start
        check_nearest(codes, queries[:5], index.search(queries[:5], k=K))
        run = {"vdsh": in_turn(queries[:5], lambda q: index.search(q, k=K))}  # noqa: B023
        use_threads(index, 1)
        facts = {"n": n, "n_bits": 64, "k": K, "build_s": round(build, 3)}
        size = {"index_mb": index.nbytes / 1e6}
        bench.race("growth, one query", run, IN_TURN, threads=1, **facts, **size)


def bench_memory(bench: Bench) -> None:
    """Report what an index of ten million codes occupies, each in a process of its own."""
    for kind in ID_KINDS:
        command = [sys.executable, __file__, "--memory", kind, "--codes", str(bench.size(10**7))]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        bench.rows.append(json.loads(report))
        print(report.strip(), flush=True)


def measure_memory(kind: str, n: int) -> dict[str, Any]:
    """Build an index and say by how much the process has grown, codes given not counted."""
    rng = np.random.default_rng(0)
    for size in 100_000, n:  # the first time compiles
        codes = random_codes(rng, size, 64)
        ids = ID_KINDS[kind](size)
        before = resident_mb()
        index = HammingIndex(codes, ids=ids)
        index.search(codes[:1], k=K)
        row = {"case": f"memory, {kind}", "n": size, "n_bits": 64, "index_mb": index.nbytes / 1e6}
        row["resident_mb"] = round(resident_mb() - before, 1)
        index._rows.build_tables()
        row["index_with_tables_mb"] = index.nbytes / 1e6
        row["resident_with_tables_mb"] = round(resident_mb() - before, 1)
    return row


def run_all(bench: Bench) -> None:
    rng, n = bench.rng(), bench.size(10_000_000)
    bench_memory(bench)
    bench_growth(bench)
    codes, queries = random_codes(rng, n, 64), random_codes(rng, 100, 64)
    bench_nearest(bench, "random 64 bits", codes, queries, bandwidth=True)
    near = codes[:100] ^ np.uint8([0, 1, 0, 0, 2, 0, 0, 0])
    bench_within(bench, "random 64 bits", codes, near, 2)
    bench_usearch(bench, codes[: n // 20], queries[:5])
    centres = random_codes(rng, 20_000, 64)
    codes, queries = clustered_codes(rng, n, centres), clustered_codes(rng, 100, centres)
    bench_nearest(bench, "clustered 64 bits", codes, queries, bandwidth=False)
    bench_within(bench, "clustered 64 bits", codes, queries, 2)
    if "VDSH_DATA" in os.environ:
        codes = supervised_codes(rng, bench.size(1_000_000))
        queries = codes[rng.integers(0, len(codes), 100)]
        bench_nearest(bench, "supervised 32 bits", codes, queries, bandwidth=False)
        bench_within(bench, "supervised 32 bits", codes, queries, 2)
    for n_bits in 8, 16, 32, 128:
        codes, queries = random_codes(rng, n, n_bits), random_codes(rng, 20, n_bits)
        bench_nearest(bench, f"random {n_bits} bits", codes, queries, bandwidth=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one hundredth of the codes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", choices=ID_KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--codes", type=int, default=10**7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(measure_memory(options.memory, options.codes)))
        return
    bench = Bench(options.seed, options.rounds, options.quick)
    run_all(bench)
    settings = {"seed": bench.seed, "rounds": bench.rounds, "quick": bench.quick}
    save("search_quick" if bench.quick else "search", {"settings": settings, "rows": bench.rows})


if __name__ == "__main__":
    main()
