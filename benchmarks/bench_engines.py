"""The local store beside Milvus Lite, PostgreSQL and faiss, on the same codes in one run.

Run: python benchmarks/bench_engines.py [--documents 1000000] [--folder DIR]

Stores hold documents and answer with them, one query a call. `index` is our index of codes alone
and `faiss` its IndexBinaryFlat: both answer with numbers, a batch in one call. Codes are clustered,
as those of a trained model are; PostgreSQL has the settings it comes with. With --folder a run that
was stopped goes on: what is filled stays filled.
"""

import itertools
import json
from pathlib import Path

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
    with postgres_in(given.folder) as (server, folder):
        with server.connect() as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'vectors'")
            if not known.fetchone():
                connection.execute("CREATE DATABASE vectors")
        with server.connect("vectors") as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        places = {
            "vdsh": f"{folder}/store",
            "Milvus Lite": f"milvus-lite:{folder}/store.db",
            "pgvector": server.url("vectors"),
            "PostgreSQL": server.url("postgres"),
        }
        result = race(places, folder, n)
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


def race(places, folder, n):
    codes = clustered(n)
    words = [f"word{i} topic{i % 9}" for i in range(500)]
    hasher = TextHasher("lsh", n_bits=BITS, random_state=0).fit(words)
    stores = {name: open_store(place, hasher) for name, place in places.items()}
    built = {
        name: fill(name, store, codes, folder / "built.json") for name, store in stores.items()
    }
    index, built["index"] = timed(HammingIndex, codes)
    flat = faiss.IndexBinaryFlat(BITS)
    built["faiss"] = timed(flat.add, codes)[1]
    flips = (np.random.default_rng(1).random((200, BITS)) < 0.05).astype(np.uint8)
    queries = pack(unpack(codes[:: n // 200][:200]) ^ flips)
    agree(stores, flat, queries[:20])
    operations = {"build": built}
    for name, contenders in tasks(stores, index, flat, queries).items():
        operations[name] = alternate(contenders, ROUNDS[name])
        print(name, {k: round(v, 5) for k, v in operations[name].items()}, flush=True)
    engines = {name: {"bytes": store.info().get("bytes")} for name, store in stores.items()}
    for store in stores.values():
        store.close()
    return {"operations": operations, "engines": engines}


def fill(name, store, codes, notes):
    """Fill a store, unless an earlier run has done it; return how many seconds it took."""
    known = json.loads(notes.read_text()) if notes.exists() else {}
    n = len(codes)
    if known.get(name, {}).get("documents") == n:
        store.upsert(documents(1000), codes[:1000])  # what an earlier run may have deleted
        return known[name]["seconds"]
    seconds = timed(store.upsert, documents(n), codes)[1]
    seconds += timed(lambda: store.search(codes[0], k=1))[1]  # the index is made at the first
    print(f"{name:14} built in {seconds:.1f} s", flush=True)
    notes.write_text(json.dumps({**known, name: {"documents": n, "seconds": seconds}}))
    return seconds


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


def tasks(stores, index, flat, queries):
    turns = {name: itertools.cycle(range(100)) for name in (*stores, "index", "faiss")}
    removed = {name: itertools.count(0, 100) for name in turns}
    some = queries[100 : 100 + BATCH]

    def one(name):
        return queries[next(turns[name])]

    def hundred(name):
        first = next(removed[name])
        return range(first, first + 100)

    ids = "post-{:08d}".format
    ours = {
        "single": lambda name: stores[name].search(one(name), k=K),
        "batch": lambda name: [stores[name].search(query, k=K) for query in some],
        "radius": lambda name: stores[name].within(one(name), RADIUS),
        "delete": lambda name: stores[name].delete([ids(i) for i in hundred(name)]),
    }
    bare = {
        "single": lambda name: index.search(one(name)[None], K),
        "batch": lambda name: index.search(some, K),
        "radius": lambda name: index.within(one(name), RADIUS),
        "delete": lambda name: index.remove(list(hundred(name))),
    }
    theirs = {
        "single": lambda name: flat.search(one(name)[None], K),
        "batch": lambda name: flat.search(some, K),
        "radius": lambda name: flat.range_search(one(name)[None], RADIUS + 1),
        "delete": lambda name: flat.remove_ids(np.arange(100)),  # faiss renumbers what is left
    }
    works = dict.fromkeys(stores, ours) | {"index": bare, "faiss": theirs}
    return {
        task: {name: lambda w=work[task], name=name: w(name) for name, work in works.items()}
        for task in ROUNDS
    }


if __name__ == "__main__":
    run(measure, documents=1_000_000, folder=Path)
