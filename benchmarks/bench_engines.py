"""The local store beside Milvus Lite, PostgreSQL and faiss, on the same codes in one run.

Run: python benchmarks/bench_engines.py [--documents 1000000]

Stores hold documents and answer with them, one query a call. `index` is our index of codes alone
and `faiss` its IndexBinaryFlat: both answer with numbers, a batch in one call. Codes are clustered,
as those of a trained model are; PostgreSQL has the settings it comes with.
"""

import itertools

import faiss
import numpy as np
from common import alternate, run, timed

from servers import postgres_in
from vdsh import Document, HammingIndex, TextHasher
from vdsh.codes import pack, unpack
from vdsh.store import open_store

BITS, K, RADIUS, BATCH = 64, 100, 6, 10
ROUNDS = {"single": 11, "batch": 3, "radius": 11, "delete": 3}


def measure(given):
    n = given.documents
    with postgres_in(None) as (server, folder):
        places = {
            "vdsh": f"{folder}/store",
            "Milvus Lite": f"milvus-lite:{folder}/store.db",
            "PostgreSQL": server.url("postgres"),
        }
        result = race(places, n)
    sizes = {"documents": n, "bits": BITS, "k": K, "radius": RADIUS, "batch": BATCH}
    return {**sizes, "rounds": ROUNDS, **result}


def clustered(n):
    """Codes around 5,000 centres, each bit flipped with a chance of one in ten."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 2, (5000, BITS), np.uint8)
    parts = []
    for first in range(0, n, 100_000):
        bits = centres[rng.integers(0, len(centres), min(100_000, n - first))]
        parts.append(pack(bits ^ (rng.random(bits.shape, np.float32) < 0.1)))
    return np.concatenate(parts)


def documents(n):
    for i in range(n):
        yield Document(f"post-{i:08d}", f"a short text, number {i}", ("x",), {"year": i % 40})


def race(places, n):
    codes = clustered(n)
    words = [f"word{i} topic{i % 9}" for i in range(500)]
    hasher = TextHasher("lsh", n_bits=BITS, random_state=0).fit(words)
    stores = {name: open_store(place, hasher) for name, place in places.items()}
    built = {name: fill(store, codes) for name, store in stores.items()}
    index, built["index"] = timed(HammingIndex, codes)
    flat = faiss.IndexBinaryFlat(BITS)
    built["faiss"] = timed(flat.add, codes)[1]
    flips = (np.random.default_rng(1).random((200, BITS)) < 0.05).astype(np.uint8)
    queries = pack(unpack(codes[:: n // 200][:200]) ^ flips)
    agree(stores, flat, queries[:20])
    operations = {"build": built}
    works = {name: of_store(store, queries) for name, store in stores.items()}
    works |= {"index": of_index(index, queries), "faiss": of_index(flat, queries)}
    for task, rounds in ROUNDS.items():
        contenders = {name: work[task] for name, work in works.items()}
        operations[task] = alternate(contenders, rounds)
    engines = {name: {"bytes": store.info().get("bytes")} for name, store in stores.items()}
    for store in stores.values():
        store.close()
    return {"operations": operations, "engines": engines}


def fill(store, codes):
    """Fill a store; return how many seconds it took, with what is made at the first search."""
    seconds = timed(store.upsert, documents(len(codes)), codes)[1]
    return seconds + timed(lambda: store.search(codes[0], k=1))[1]


def agree(stores, flat, queries):
    """Check that stores give the hits that faiss finds."""
    distances, _ = flat.search(queries, K)
    for query, expected in zip(queries, distances.tolist(), strict=True):
        answers = [
            [(hit.distance, hit.id) for hit in store.search(query, k=K)]
            for store in stores.values()
        ]
        assert all(answer == answers[0] for answer in answers)
        assert [distance for distance, _ in answers[0]] == expected


def of_store(store, queries):
    """Name what a store is asked."""
    turn, first = itertools.cycle(queries[:100]), itertools.count(0, 100)
    some = queries[100 : 100 + BATCH]
    ids = "post-{:08d}".format
    return {
        "single": lambda: store.search(next(turn), k=K),
        "batch": lambda: [store.search(query, k=K) for query in some],
        "radius": lambda: store.within(next(turn), RADIUS),
        "delete": lambda: store.delete([ids(i) for i in hundred(first)]),
    }


def of_index(index, queries):
    """Name the same for codes alone, which answer a batch in one call."""
    turn, first = itertools.cycle(queries[:100]), itertools.count(0, 100)
    ours = isinstance(index, HammingIndex)
    return {
        "single": lambda: index.search(next(turn)[None], K),
        "batch": lambda: index.search(queries[100 : 100 + BATCH], K),
        "radius": (lambda: index.within(next(turn), RADIUS)) if ours
        else lambda: index.range_search(next(turn)[None], RADIUS + 1),
        "delete": (lambda: index.remove(hundred(first))) if ours
        else lambda: index.remove_ids(np.arange(100)),  # faiss renumbers what is left
    }  # fmt: skip


def hundred(first):
    start = next(first)
    return list(range(start, start + 100))


if __name__ == "__main__":
    run(measure, documents=1_000_000)
