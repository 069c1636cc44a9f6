"""Filters that few of a million documents pass: time of a query before and after there is an index.

Run: VDSH_DATA=path/to/data python benchmarks/bench_filters.py [--documents 1000000] [--folder DIR]

Documents are those of bench_words.py, each with two labels, a number, a text and a date: each value
but those of the half is shared by 100 documents of a million. The folder store and PostgreSQL (with
pgvector, as it comes) are asked the same; queries are subjects of posts. With --folder a run that
was stopped goes on: what is filled stays filled.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_words import cut, kinds
from common import save

from vdsh import Document, TextHasher
from vdsh.datasets import load
from vdsh.jit import load_kernels
from vdsh.store import open_store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers import PostgresServer

MATCHES = 100
SLOW, QUERIES = 3, 100  # of a kind, before and after
WANTED = {"median_ms": 15}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where stores are kept, to go on later")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # PostgreSQL runs as somebody else
        server = PostgresServer(safe=True, folder=folder / "postgres")
        try:
            result = run(places(server, folder), folder, given.documents)
        finally:
            server.stop("fast")
    name = "filters" if given.documents == 1_000_000 else f"filters_{given.documents}"
    save(name, {"documents": given.documents, "matches": MATCHES, "wanted": WANTED, **result})


def places(server, folder):
    with server.connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return {"folder": str(folder / "store"), "PostgreSQL": server.url("postgres")}


def run(places, folder, n):
    data = load("20newsgroups")
    texts = cut(data.train.texts, n)
    subjects = kinds(data, texts)["subjects"]
    result = {}
    for name, place in places.items():
        with open_store(place, model(folder, data)) as store:
            n_there = store.count()
            store.upsert(documents(texts, n_there), progress=None)
            result[name] = measure(store, subjects, n)
        for kind, row in result[name]["queries"].items():
            print(f"{name:11} {kind:26}", row, flush=True)
    return result


def model(folder, data):
    """Learn a small model: what is measured here is not codes."""
    if not (folder / "model").exists():
        hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=2, hidden_size=200)
        hasher.fit(data.train.texts).save(folder / "model")
    load_kernels()
    return folder / "model"


def documents(texts, start):
    """Give each document labels and metadata; numbers are scattered, so that rows are."""
    n = len(texts)
    groups = n // MATCHES
    order = np.random.default_rng(2).permutation(n).tolist()
    for i in range(start, n):
        group = order[i] % groups
        labels = (f"topic {group}", "even" if order[i] % 2 == 0 else "odd")
        facts = {"number": group, "source": f"source {group}", "date": order[i] / 2}
        yield Document(f"{i:07d}", texts[i], labels, facts)


def filters(n, rng):
    """Make a filter of each kind; all but the last let 100 documents pass."""
    group = int(rng.integers(n // MATCHES))
    return {
        "label": {"label": f"topic {group}"},
        "number =": {"number": group},
        "text =": {"source": f"source {group}"},
        "date from to": {"date": {">=": group / 2, "<": (group + MATCHES) / 2}},
        "date >=": {"date": {">=": (n - MATCHES) / 2}},
        "label and number": {"label": f"topic {group}", "number": group},
        "either": {"or": [{"number": group}, {"source": f"source {group}"}]},
        "half of all": {"label": "even"},
    }


def measure(store, subjects, n):
    """Ask before there is an index, make it, ask again."""
    engine = store._engine
    engine.index_automatically = False
    before = ask(store, subjects[:SLOW], n)
    engine.index_automatically = True
    seconds = {}
    for field in ("label", "number", "source", "date"):
        start = time.perf_counter()
        store.index_fields([field])
        seconds[field] = round(time.perf_counter() - start, 2)
    after = ask(store, subjects[:QUERIES], n)
    rows = {key: {"before": before[key], "after": after[key]} for key in before}
    return {"index_seconds": seconds, "queries": rows}


def ask(store, subjects, n):
    """Time queries of each kind in turn."""
    rng = np.random.default_rng(3)
    times = {}
    for i, text in enumerate([subjects[0], *subjects]):  # the first warms up
        for name, where in filters(n, rng).items():
            for rank in ("relevance", "distance"):
                start = time.perf_counter()
                hits = store.search(text, where=where, rank=rank)
                seconds = time.perf_counter() - start
                assert hits or not len(text)
                if i:
                    times.setdefault(f"{name}, {rank}", []).append(seconds)
    return {name: summary(values) for name, values in times.items()}


def summary(seconds):
    """Say what is usual and what is rare, in milliseconds."""
    median, p90 = np.percentile(seconds, [50, 90])
    return {"median_ms": round(1000 * median, 2), "p90_ms": round(1000 * p90, 2)}


if __name__ == "__main__":
    main()
