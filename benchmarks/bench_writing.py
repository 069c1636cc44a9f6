"""What the words of documents cost on servers: writing with them and without, in turn.

Run: VDSH_DATA=path/to/data python benchmarks/bench_writing.py [--rounds 5]

Batches of 2,000 posts of 20 Newsgroups, cut to forty words, go to a store with words and to one
without (as stores were before there was a word index), in PostgreSQL and in Milvus Lite. Times are
those of the processor, of this process (`client`) and of the server's, in microseconds a document,
so that other work on the machine counts little.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from common import markdown, save
from pymilvus import CollectionSchema

from vdsh import Document, TextHasher, open_store
from vdsh.datasets import load
from vdsh.store.engines.milvus.tables import documents_schema
from vdsh.store.engines.postgres import rows as postgres
from vdsh.store.rows import to_rows

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers import PostgresServer

BATCH = 2000
HEAD = ["engine", "words: client", "server", "without: client", "server", "ratio"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    texts = [" ".join(text.split()[:40]) for text in load("20newsgroups").train.texts]
    hasher = TextHasher("lsh", n_bits=64, random_state=0).fit(texts[:2000])
    load_before, server = os.getloadavg()[0], PostgresServer()
    try:
        with tempfile.TemporaryDirectory() as folder:
            places = {
                "PostgreSQL": [server.store_url("words"), server.store_url("plain")],
                "Milvus Lite": [f"milvus-lite:{folder}/{name}.db" for name in ("words", "plain")],
            }
            found = {}
            for name, (with_words, without) in places.items():
                stores = [open_store(with_words, hasher), open_store(without, hasher)]
                take_words_away(name, stores[1], server)
                found[name] = alternate(stores, name, hasher, texts, rounds)
                for store in stores:
                    store.close()
    finally:
        server.remove()
    rows = [[name, *map(str, one.values())] for name, one in found.items()]
    print(markdown(HEAD, rows))
    save("writing", {"engines": found, "load_before": round(load_before, 1)})


def take_words_away(name, store, server):
    """Make a new store one of before."""
    if name == "PostgreSQL":
        with server.connect() as connection:
            connection.execute("DROP INDEX plain_words")
            connection.execute("ALTER TABLE plain DROP COLUMN words, DROP COLUMN n_words")
            connection.execute("DELETE FROM plain_meta WHERE key = 'words'")
        store._engine._words._may_change = False
        return
    session, notes = store._engine._session, store._engine._notes
    session.call("drop_collection", "vdsh")
    schema = documents_schema(64).to_dict()
    schema["fields"] = [one for one in schema["fields"] if one["name"] not in ("words", "bm25")]
    schema["functions"] = []
    notes.create_collection("vdsh", CollectionSchema.construct_from_dict(schema), "code")
    session.load(notes.name, "vdsh")
    store._engine._has_words = False


def alternate(stores, name, hasher, texts, rounds):
    """Write batches to both stores in turn; give the median times of the processor."""
    spent = {"words": [], "plain": []}
    for number in range(rounds + 1):
        first = number * BATCH
        some = [
            Document(f"post-{i:08}", texts[i % len(texts)], ("x",), {"year": i % 40})
            for i in range(first, first + BATCH)
        ]
        rows = to_rows(some, hasher.encode([document.text for document in some]), None)
        for (kind, times), store in zip(spent.items(), stores, strict=True):
            before = time.process_time(), server_time(name, store)
            with words_if(kind == "words"):
                store._engine.write(rows)
            after = time.process_time(), server_time(name, store)
            if number:
                times.append([y - x for x, y in zip(before, after, strict=True)])
    found = {}
    for kind, times in spent.items():
        client, server = (1e6 * statistics.median(one) / BATCH for one in zip(*times, strict=True))
        found |= {f"{kind}_client_us": round(client, 1), f"{kind}_server_us": round(server, 1)}
    plain, words = (found[f"{k}_client_us"] + found[f"{k}_server_us"] for k in ("plain", "words"))
    return found | {"ratio": round(plain / words, 2)}


def server_time(name, store):
    """Say how long the server's process has computed for a store."""
    session = store._engine._session
    if name == "PostgreSQL":
        pid = session._connection.info.backend_pid
    else:
        pid = session._lite._process.pid
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def words_if(wanted):
    """Let rows of PostgreSQL be made without words, as they were."""
    to_vectors = postgres.to_vectors
    if not wanted:
        postgres.to_vectors = lambda texts: [("", 0)] * len(texts)
    try:
        yield
    finally:
        postgres.to_vectors = to_vectors


if __name__ == "__main__":
    main()
