"""The local store beside Milvus Lite, PostgreSQL and faiss, on the same codes in one run.

Run: python benchmarks/bench_engines.py [--documents 1000000] [--folder DIR]

Stores hold documents and answer with them, one query a call. `index` is our index of codes alone
and `faiss` its IndexBinaryFlat: both answer with numbers, a batch in one call. Codes are clustered,
as those of a trained model are; PostgreSQL has the settings it comes with. With --folder a run that
was stopped goes on: what is filled stays filled.
"""

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path

import faiss
import numpy as np
from common import alternate, save

from vdsh import Document, HammingIndex, TextHasher
from vdsh.codes import pack, unpack
from vdsh.errors import EngineError
from vdsh.store import open_store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers import postgres_in

BITS, K, RADIUS, BATCH = 64, 100, 6, 10
ROUNDS = {"single": 11, "batch": 3, "radius": 11, "delete": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where stores are kept, to go on later")
    given = parser.parse_args()
    with postgres_in(given.folder) as (server, folder):
        result = run(places(server, folder), folder, given.documents)
    show(result["operations"])
    sizes = {"documents": given.documents, "bits": BITS, "k": K, "radius": RADIUS, "batch": BATCH}
    save("engines", {**sizes, "rounds": ROUNDS, **result})


def places(server, folder):
    with server.connect() as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'vectors'").fetchone():
            connection.execute("CREATE DATABASE vectors")
    with server.connect("vectors") as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return {
        "vdsh": f"{folder}/store",
        "Milvus Lite": f"milvus-lite:{folder}/store.db",
        "pgvector": server.url("vectors"),
        "PostgreSQL": server.url("postgres"),
    }


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


def run(urls, folder, n):
    load = os.getloadavg()[0]
    codes = clustered(n)
    words = [f"word{i} topic{i % 9}" for i in range(500)]
    hasher = TextHasher("lsh", n_bits=BITS, random_state=0).fit(words)
    stores, built = {}, {}
    for name, url in urls.items():
        store = open_store(url, hasher)
        try:
            built[name] = fill(name, store, codes, folder / "built.json")
            stores[name] = store
        except EngineError as error:
            store.close()
            print(f"{name} was left out: {error}", flush=True)
    start = time.perf_counter()
    index = HammingIndex(codes)
    index.search(codes[:1], k=1)
    built["index"] = time.perf_counter() - start
    start = time.perf_counter()
    flat = faiss.IndexBinaryFlat(BITS)
    flat.add(codes)
    built["faiss"] = time.perf_counter() - start
    queries = pack(unpack(codes[:: n // 200][:200]) ^ flips())
    agree(stores, flat, queries[:20])
    operations = {"build": built}
    for name, contenders in tasks(stores, index, flat, queries).items():
        operations[name] = alternate(contenders, ROUNDS[name])
        print(name, {k: round(v, 5) for k, v in operations[name].items()}, flush=True)
    facts = {name: store.info() for name, store in stores.items()}
    for store in stores.values():
        store.close()
    kept = ("engine", "search", "bytes")
    engines = {name: {k: fact.get(k) for k in kept} for name, fact in facts.items()}
    return {"operations": operations, "load": load, "engines": engines}


def fill(name, store, codes, notes):
    """Fill a store, unless an earlier run has done it; return how many seconds it took."""
    known = json.loads(notes.read_text()) if notes.exists() else {}
    n = len(codes)
    if known.get(name, {}).get("documents") == n:
        store.upsert(documents(1000), codes[:1000])  # what an earlier run may have deleted
        return known[name]["seconds"]
    start = time.perf_counter()

    def report(n_written):
        if n_written % 100_000 == 0 and n_written < n:
            print(f"{name:14} {n_written:,} in {time.perf_counter() - start:.0f} s", flush=True)

    store.upsert(documents(n), codes, progress=report)
    print(f"{name:14} filled in {time.perf_counter() - start:.1f} s", flush=True)
    store.search(codes[0], k=1)  # the local index is made at the first search
    seconds = time.perf_counter() - start
    print(f"{name:14} built in {seconds:.1f} s", flush=True)
    notes.write_text(json.dumps({**known, name: {"documents": n, "seconds": seconds}}))
    return seconds


def flips():
    return (np.random.default_rng(1).random((200, BITS)) < 0.05).astype(np.uint8)


def agree(stores, flat, queries):
    """Check that stores give the hits that faiss finds."""
    distances, _ = flat.search(queries, K)
    for query, expected in zip(queries, distances.tolist(), strict=True):
        answers = {
            name: [(hit.distance, hit.id) for hit in store.search(query, k=K)]
            for name, store in stores.items()
        }
        assert all(answer == answers["vdsh"] for answer in answers.values())
        assert [distance for distance, _ in answers["vdsh"]] == expected


def tasks(stores, index, flat, queries):
    names = (*stores, "index", "faiss")
    turns = {name: itertools.cycle(range(100)) for name in names}
    gone = {name: itertools.count(0, 100) for name in names}

    def single(name):
        query = queries[next(turns[name])]
        if name in stores:
            return stores[name].search(query, k=K)
        return (index if name == "index" else flat).search(query[None], K)

    def batch(name):
        some = queries[100 : 100 + BATCH]
        if name in stores:
            return [stores[name].search(query, k=K) for query in some]
        return (index if name == "index" else flat).search(some, K)

    def radius(name):
        query = queries[next(turns[name])]
        if name in stores:
            return stores[name].within(query, RADIUS)
        if name == "index":
            return index.within(query, RADIUS)
        return flat.range_search(query[None], RADIUS + 1)

    def delete(name):
        first = next(gone[name])
        if name in stores:
            return stores[name].delete([f"post-{i:08d}" for i in range(first, first + 100)])
        if name == "index":
            return index.remove(list(range(first, first + 100)))
        return flat.remove_ids(np.arange(100))  # faiss renumbers what is left

    works = {"single": single, "batch": batch, "radius": radius, "delete": delete}
    return {
        task: {name: lambda work=work, name=name: work(name) for name in names}
        for task, work in works.items()
    }


def show(operations):
    names = list(operations["build"])
    print(f"{'seconds':10}" + "".join(f"{name:>16}" for name in names))
    for task, times in operations.items():
        print(f"{task:10}" + "".join(f"{times[name]:16.5f}" for name in names))


if __name__ == "__main__":
    main()
