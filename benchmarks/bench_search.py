"""Measure Hamming search beside faiss, and check every timed answer.

Run: VDSH_DATA=path/to/data python benchmarks/bench_search.py (some minutes)

Without VDSH_DATA the codes of a trained model are left out. All contenders answer the same queries
in the same run on the same number of threads, taking turns; medians count.
"""

import os
from functools import partial

import faiss
import numpy as np
from common import alternate, posts, run

from vdsh import TextHasher
from vdsh.codes import to_words
from vdsh.search import HammingIndex

K = 100
IN_TURN = 10  # single queries a contender answers before it is the other's turn


def measure(given):
    rng, rows, n = np.random.default_rng(0), [], given.codes

    def race(case, contenders, asked=1, **facts):
        """Time contenders in turns of so many calls, and keep the medians of a call."""
        seconds = alternate(contenders, given.rounds)
        row = {
            "case": case,
            **facts,
            "median_ms": {name: round(1e3 * t / asked, 4) for name, t in seconds.items()},
            "times_ours": {name: round(t / seconds["vdsh"], 2) for name, t in seconds.items()},
        }
        rows.append(row)
        print(row, flush=True)

    codes, queries = random_codes(rng, n, 64), random_codes(rng, 100, 64)
    nearest(race, "random 64 bits", codes, queries)
    within(race, "random 64 bits", codes, codes[:100] ^ np.uint8([0, 1, 0, 0, 2, 0, 0, 0]), 2)
    centres = random_codes(rng, 20_000, 64)
    codes, queries = clustered_codes(rng, n, centres), clustered_codes(rng, 100, centres)
    nearest(race, "clustered 64 bits", codes, queries)
    within(race, "clustered 64 bits", codes, queries, 2)
    if "VDSH_DATA" in os.environ:
        codes = supervised_codes(rng, n // 10, posts(given.quick).train)
        queries = codes[rng.integers(0, len(codes), 100)]
        nearest(race, "supervised 32 bits", codes, queries)
        within(race, "supervised 32 bits", codes, queries, 2)
    for n_bits in 8, 16, 32, 128:
        codes, queries = random_codes(rng, n, n_bits), random_codes(rng, 20, n_bits)
        nearest(race, f"random {n_bits} bits", codes, queries)
    return {"rounds": given.rounds, "rows": rows}


def random_codes(rng, n, n_bits):
    return rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def clustered_codes(rng, n, centres):
    """Draw centres at random and flip 1.5 bits on average (Poisson)."""
    words = np.ascontiguousarray(centres[rng.integers(0, len(centres), n)]).view(np.uint64)[:, 0]
    n_flips = rng.poisson(1.5, n)
    for i in range(int(n_flips.max())):
        bits = rng.integers(0, 64, n).astype(np.uint64)
        words = np.where(n_flips > i, words ^ (np.uint64(1) << bits), words)
    return words.reshape(-1, 1).view(np.uint8)


def supervised_codes(rng, n, part):
    """Repeat the codes of a trained VDSH-S; one bit of every tenth code is flipped."""
    hasher = TextHasher("vdsh-s", n_bits=32, random_state=0, epochs=10)
    real = hasher.fit(part.texts, part.labels).encode(part.texts)
    codes = real[rng.integers(0, len(real), n)]
    noisy = np.flatnonzero(rng.random(n) < 0.1)
    bits = rng.integers(0, 32, len(noisy))
    codes[noisy, bits // 8] ^= np.uint8(1) << (bits % 8).astype(np.uint8)
    return codes


def nearest_rows(codes, query, radius=None):
    """Return the rows within a radius, or the nearest 100, in their order, and all distances."""
    distances = np.bitwise_count(to_words(codes) ^ to_words(query[None])[0]).sum(axis=1)
    most = np.partition(distances, K - 1)[K - 1] if radius is None else radius
    near = np.flatnonzero(distances <= most)
    order = near[np.argsort(distances[near], kind="stable")]
    return order[:K] if radius is None else order, distances


def check_nearest(codes, queries, hits, theirs=None):
    """Compare ids and distances with a slow search; faiss may order ties in its own way."""
    for q, query in enumerate(queries):
        order, distances = nearest_rows(codes, query)
        assert np.array_equal(hits.ids[q], order), "wrong ids"
        assert np.array_equal(hits.distances[q], distances[order]), "wrong distances"
        assert theirs is None or np.array_equal(theirs[0][q], distances[order]), "faiss differs"


def check_within(codes, queries, radius, answers):
    for query, hits in zip(queries, answers, strict=True):
        assert np.array_equal(hits.ids, nearest_rows(codes, query, radius)[0]), "wrong ids"


def make_faiss(codes):
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return index


def in_turn(queries, ask):
    """Ask ten queries one after the other, new ones at each call."""
    turn = iter(np.tile(np.arange(len(queries)), 1000))
    return lambda: [ask(queries[[next(turn)]]) for _ in range(IN_TURN)]


def on_threads(race, case, index, queries, contenders, facts):
    """Race with one query and with a batch, on one thread and on two."""
    one = "" if "radius" in case else ", one query"
    for threads in 1, 2:
        index._rows.threads = threads
        faiss.omp_set_num_threads(threads)
        single = {name: in_turn(queries, ask) for name, ask in contenders.items()}
        race(f"{case}{one}", single, IN_TURN, threads=threads, **facts)
        batch = {name: partial(ask, queries) for name, ask in contenders.items()}
        race(f"{case}, batch", batch, threads=threads, queries=len(queries), **facts)


def nearest(race, case, codes, queries):
    """Race for the nearest 100."""
    index, flat = HammingIndex(codes), make_faiss(codes)
    check_nearest(codes, queries, index.search(queries, k=K), flat.search(queries, K))
    contenders = {"vdsh": lambda q: index.search(q, k=K), "faiss": lambda q: flat.search(q, K)}
    facts = {"n": len(codes), "n_bits": index.n_bits, "k": K}
    on_threads(race, case, index, queries, contenders, facts)


def within(race, case, codes, queries, radius):
    """Race for all within a radius; faiss returns distances below it."""
    index, flat = HammingIndex(codes), make_faiss(codes)
    index._rows.build_tables()
    answers = index.within(queries, radius)
    check_within(codes, queries, radius, answers)
    n_hits = sum(len(hits.ids) for hits in answers)
    assert flat.range_search(queries, radius + 1)[0][-1] == n_hits, "faiss differs"
    contenders = {
        "vdsh": lambda q: index.within(q, radius),
        "faiss": lambda q: flat.range_search(q, radius + 1),
    }
    facts = {"n": len(codes), "n_bits": index.n_bits, "hits_per_query": n_hits / len(queries)}
    on_threads(race, f"{case}, radius {radius}", index, queries, contenders, facts)


if __name__ == "__main__":
    run(measure, codes=10_000_000, rounds=5)
