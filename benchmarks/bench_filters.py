"""Filters that few of a million documents pass: time of a query before and after there is an index.

Run: VDSH_DATA=path/to/data python benchmarks/bench_filters.py [--documents 1000000] [--folder DIR]

Documents are those of bench_words.py, each with two labels, a number, a text and a date: each value
but those of the half is shared by 100 documents of a million. The folder store and PostgreSQL (with
pgvector, as it comes) are asked the same; queries are subjects of posts. With --folder a run that
was stopped goes on: what is filled stays filled. Beside the time of a query stands what it takes of
a core, in this process and in PostgreSQL's: on a machine that does other things the two differ.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from bench_words import cut, kinds
from common import save

from vdsh import Document, TextHasher
from vdsh.datasets import load
from vdsh.jit import load_kernels
from vdsh.store import open_store
from vdsh.store.engines.postgres import filters as postgres_filters
from vdsh.store.engines.sqlite import filters as sqlite_filters

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers import postgres_in

MATCHES = 100
SLOW, QUERIES = 2, 40  # of a kind, before and after
WANTED = {"median_ms": 15}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where stores are kept, to go on later")
    given = parser.parse_args()
    with postgres_in(given.folder) as (server, folder):
        result = run(places(server, folder), folder, given.documents)
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
            if n_there < n:
                store.upsert(documents(texts, n_there))
                settle(store)
            result[name] = measure(store, subjects, n)
        for kind, row in result[name]["queries"].items():
            print(f"{name:11} {kind:26}", row, flush=True)
    return result


def settle(store):
    """Do what PostgreSQL does by itself some time after much was written."""
    session = getattr(store._engine, "_session", None)
    if session is not None:
        session._connection.execute("VACUUM ANALYZE vdsh")


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
    modules = (sqlite_filters, postgres_filters)
    worth = sqlite_filters.WORTH
    for module in modules:
        module.WORTH = 10 * n
    before = ask(store, subjects[:SLOW], n)
    for module in modules:
        module.WORTH = worth
    seconds = {}
    for field in ("label", "number", "source", "date"):
        start, busy = time.perf_counter(), cpu_seconds(store)
        store.index_fields([field])
        used = cpu_seconds(store) - busy
        seconds[field] = {"s": round(time.perf_counter() - start, 2), "cpu_s": round(used, 2)}
    after = ask(store, subjects[:QUERIES], n)
    rows = {key: {"before": before[key], "after": after[key]} for key in before}
    return {"load": os.getloadavg()[1], "index": seconds, "queries": rows}


def ask(store, subjects, n):
    """Time queries of each kind in turn."""
    rng = np.random.default_rng(3)
    times = {}
    for i, text in enumerate([subjects[0], *subjects]):  # the first warms up
        chosen = filters(n, rng)
        # What words cost that were not asked for before shows in the first query of a text.
        for name, where in ({"label, new words": chosen["label"]} | chosen).items():
            for rank in ("relevance", "distance"):
                start, busy = time.perf_counter(), cpu_seconds(store)
                store.search(text, where=where, rank=rank)
                spent = time.perf_counter() - start, cpu_seconds(store) - busy
                if i:
                    times.setdefault(f"{name}, {rank}", []).append(spent)
    return {name: summary(values) for name, values in times.items()}


def cpu_seconds(store):
    """Say what this process has taken of a core, and PostgreSQL's for it."""
    session = getattr(store._engine, "_session", None)
    if session is None:
        return time.process_time()
    pid = session._connection.info.backend_pid
    ran = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return time.process_time() + ran


def summary(spent):
    """Say what is usual and what is rare, in milliseconds."""
    seconds, busy = np.array(spent).T
    median, p90 = np.percentile(seconds, [50, 90]).tolist()
    return {
        "median_ms": round(1000 * median, 2),
        "p90_ms": round(1000 * p90, 2),
        "cpu_ms": round(1000 * float(np.median(busy)), 2),
    }


if __name__ == "__main__":
    main()
