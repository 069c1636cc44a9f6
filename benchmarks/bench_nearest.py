"""The k nearest of up to 100 million codes: tables beside our own scan and faiss, on one thread.

Run: VDSH_DATA=path/to/data python benchmarks/bench_nearest.py --folder DIR [--only real64 ...]

Codes are made as a real model would: documents of 20 Newsgroups, seen through the posterior
Q(s | d). A training document is drawn, and each of its bits by the probability that it is one, so
codes crowd where documents do, and bits are noisy where the model is unsure. Queries are the codes
of test documents, as they are, or drawn like the codes. What models say is kept in DIR.

Contenders answer each query in turn, and every answer of ours is compared with the scan's. Times
are those that the CPU spent on the calling thread, so that a busy machine counts little. Each part
has a result of its own, since the largest takes minutes.
"""

import time
from functools import partial
from pathlib import Path

import faiss
import numpy as np
from common import posts, run

from vdsh.jit import kernel
from vdsh.model import as_model
from vdsh.pipeline import TextHasher
from vdsh.search.probing import LOOK_UP, scan_time
from vdsh.search.rows import RowIndex

N_QUERIES, N_SLOW = 40, 6  # of ours; of faiss where it reads all codes
MOST_FOR_FAISS = 800_000_000  # bytes of codes: it copies them
ROUNDS = 2  # the first warms up
EPOCHS = 10  # after these the codes hardly change
BLOCK = 1 << 20  # codes of one seed: any number of them begins with the same codes


# -- codes ----------------------------------------------------------------------------------------


def learned(given, method, n_bits):
    """Return probabilities of the bits of training documents, and the codes of test documents."""
    file = (given.folder or Path(".")) / f"{method}-{n_bits}.npz"
    if given.quick or not file.exists():
        data = posts(given.quick)
        hasher = TextHasher(method, n_bits=n_bits, random_state=0, epochs=EPOCHS)
        hasher.fit(data.train.texts, data.train.labels if method == "vdsh-s" else None)
        likely = as_model(hasher).bit_probabilities(data.train.texts).astype(np.float32)
        queries = hasher.encode(data.test.texts)
        if given.quick:
            return likely, queries
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, probabilities=likely, queries=queries)
    with np.load(file) as kept:
        return kept["probabilities"], kept["queries"]


def draw(probabilities, n, seed):
    """Draw codes of shape (n, n_bytes), block by block."""
    likely = np.round(probabilities * 2**16).clip(0, 2**16 - 1).astype(np.uint16)
    codes = np.empty((n, probabilities.shape[1] // 8), np.uint8)
    for number, start in enumerate(range(0, n, BLOCK)):
        # A state of xorshift must not be zero.
        _draw(likely, codes[start : start + BLOCK], np.uint64(seed * 2**32 + 2 * number + 1))
    return codes


@kernel()
def _draw(likely, codes, seed):
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for i in range(codes.shape[0]):
        state = _next(state)
        doc = np.int64((state >> np.uint64(32)) % np.uint64(likely.shape[0]))
        for byte in range(codes.shape[1]):
            value = 0
            for bit in range(8):
                if bit % 4 == 0:
                    state = _next(state)
                chance = (state >> np.uint64(16 * (bit % 4))) & np.uint64(0xFFFF)
                value = 2 * value + (chance < likely[doc, 8 * byte + bit])
            codes[i, byte] = value


@kernel()
def _next(state):
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


# -- parts ----------------------------------------------------------------------------------------


def real(method, n_bits, given):
    """Codes of a model's posterior; queries are new documents, or drawn like the codes."""
    likely, queries = learned(given, method, n_bits)
    asked = {"new documents": queries[:N_QUERIES], "drawn": draw(likely, N_QUERIES, seed=99)}
    return race(given, f"{method}-{n_bits}", lambda n: draw(likely, n, seed=0), asked)


def random(n_bits, given):
    """Random bits, where nothing is near."""
    codes = lambda n, seed=0: np.random.default_rng(seed).integers(  # noqa: E731
        0, 256, (n, n_bits // 8), dtype=np.uint8
    )
    return race(given, f"random-{n_bits}", codes, {"random": codes(N_QUERIES, 1)})


def crowded(given):
    """Hundred crowds of codes, in each of which a bit in seven is flipped."""
    centres = np.random.default_rng(0).uniform(size=(100, 64)) < 0.5
    likely = np.where(centres, 0.85, 0.15).astype(np.float32)
    asked = {"drawn": draw(likely, N_QUERIES, seed=99)}
    return race(given, "crowded-64", lambda n: draw(likely, n, seed=0), asked)


def race(given, name, make, sets):
    """Time tables, scan and faiss on sets of queries, for 10 and 100 nearest."""
    faiss.omp_set_num_threads(1)
    rows = []
    for n in given.sizes:
        codes, flat = make(n), None
        if codes.nbytes <= MOST_FOR_FAISS:
            flat = faiss.IndexBinaryFlat(8 * codes.shape[1])
            flat.add(codes)
        scan = RowIndex(codes, threads=1, tables=False)
        del codes  # memory is what there is least of
        start = time.thread_time()
        main = scan.settled()
        worth = scan_time(main) >= LOOK_UP  # else an index would have no tables
        tables = RowIndex.from_partition(main.with_tables() if worth else main, threads=1)
        facts = {"codes": name, "n": n, "build_s": round(time.thread_time() - start, 1)}
        facts["bytes_a_code"] = round(tables.nbytes / n, 1)
        for kind, queries in sets.items():
            for k in 10, 100:
                found = one_race(tables, scan, flat, queries, k)
                rows.append(facts | {"queries": kind, "k": k} | found)
                print(rows[-1], flush=True)
    return {"rows": rows}


def one_race(tables, scan, flat, queries, k):
    seconds, farthest = {"tables": [], "scan": [], "faiss": []}, []
    for turn in range(ROUNDS):
        for i in range(len(queries)):
            query = queries[i : i + 1].copy()
            hits = clock(seconds["tables"], tables, query, k, turn)
            truth = clock(seconds["scan"], scan, query, k, turn)
            assert np.array_equal(hits.rows, truth.rows), "wrong rows"
            assert np.array_equal(hits.distances, truth.distances), "wrong distances"
            farthest.append(int(truth.distances[0, -1]))
            if flat is not None and i < N_SLOW:
                clock(seconds["faiss"], flat, query, k, turn)
    result = {"median_distance_of_kth": float(np.median(farthest))}
    result |= {f"{name}_ms": round(1e3 * float(np.median(some)), 3)
               for name, some in seconds.items() if some}  # fmt: skip
    ours, scanned = np.array(seconds["tables"]), np.array(seconds["scan"])
    result["times_faster"] = round(float(np.median(scanned / ours)), 2)
    return result | {"times_faster_mean": round(float(scanned.mean() / ours.mean()), 2)}


def clock(seconds, index, query, k, turn):
    start = time.thread_time()
    answer = index.search(query, k)
    if turn:
        seconds.append(time.thread_time() - start)
    return answer


PARTS = {
    "real64": partial(real, "vdsh", 64),
    "real128": partial(real, "vdsh", 128),
    "supervised64": partial(real, "vdsh-s", 64),
    "random64": partial(random, 64),
    "random128": partial(random, 128),
    "crowded64": crowded,
}

if __name__ == "__main__":
    run(PARTS, sizes=(1_000_000, 10_000_000, 100_000_000), folder=Path)
