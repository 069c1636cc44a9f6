"""Filters that few of a million documents pass: time of a query before and after there is an index.

Run: VDSH_DATA=path/to/data python benchmarks/bench_filters.py [--documents 1000000]

Documents are those of bench_words.py, each with two labels, a number, a text and a date: each value
but those of the half is shared by 100 documents of a million. The folder store and PostgreSQL
are asked the same; queries are subjects of posts. Beside the time of a query
stands what it takes of a core, in this process and in PostgreSQL's: on a machine that does other
things the two differ.
"""

import time
from pathlib import Path

import numpy as np
from common import cut, line, posts, run, summary

from servers import postgres_in
from vdsh import Document, TextHasher
from vdsh.store import open_store
from vdsh.store.engines.postgres import filters as postgres_filters
from vdsh.store.engines.sqlite import filters as sqlite_filters

MATCHES = 100
SLOW, QUERIES = 2, 40  # of a kind, before and after


def measure(given):
    data, n = posts(given.quick), given.documents
    texts = cut(data.train.texts, n)
    subjects = [some for some in map(line, data.test.texts) if len(some.split()) > 3]
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=2, hidden_size=200)
    hasher.fit(data.train.texts)  # small: what is measured here is not codes
    result = {"documents": n, "matches": MATCHES, "wanted": {"median_ms": 15}}
    with postgres_in(None) as (server, folder):
        places = {"folder": str(folder / "store"), "PostgreSQL": server.url("postgres")}
        for name, place in places.items():
            with open_store(place, hasher) as store:
                store.upsert(documents(texts))
                settle(store)
                result[name] = before_and_after(store, subjects, n)
            for kind, row in result[name]["queries"].items():
                print(f"{name:11} {kind:26}", row, flush=True)
    return result


def settle(store):
    """Do what PostgreSQL does by itself some time after much was written."""
    session = getattr(store._engine, "_session", None)
    if session is not None:
        session._connection.execute("VACUUM ANALYZE vdsh")


def documents(texts):
    """Give each document labels and metadata; numbers are scattered, so that rows are."""
    n = len(texts)
    order = np.random.default_rng(2).permutation(n).tolist()
    for i in range(n):
        group = order[i] % (n // MATCHES)
        labels = (f"topic {group}", "even" if order[i] % 2 == 0 else "odd")
        fields = {"number": group, "source": f"source {group}", "date": order[i] / 2}
        yield Document(f"{i:07d}", texts[i], labels, fields)


def filters(n, rng):
    """Make a filter of each kind; all but the last let 100 documents pass."""
    group = int(rng.integers(n // MATCHES))
    label, number, source = f"topic {group}", {"number": group}, {"source": f"source {group}"}
    return {
        "label, new words": {"label": label},  # words that were not asked for before cost more
        "label": {"label": label},
        "number =": number,
        "text =": source,
        "date from to": {"date": {">=": group / 2, "<": (group + MATCHES) / 2}},
        "date >=": {"date": {">=": (n - MATCHES) / 2}},
        "label and number": {"label": label} | number,
        "either": {"or": [number, source]},
        "half of all": {"label": "even"},
    }


def before_and_after(store, subjects, n):
    """Ask before there is an index, make it, ask again."""
    worth = sqlite_filters.WORTH
    sqlite_filters.WORTH = postgres_filters.WORTH = 10 * n
    before = ask(store, subjects[:SLOW], n)
    sqlite_filters.WORTH = postgres_filters.WORTH = worth
    seconds = {}
    for field in ("labels", "number", "source", "date"):
        wall, cpu = spent(store, store._engine.filters.make, [field])
        seconds[field] = {"s": round(wall, 2), "cpu_s": round(cpu, 2)}
    after = ask(store, subjects[:QUERIES], n)
    rows = {key: {"before": before[key], "after": after[key]} for key in before}
    return {"index": seconds, "queries": rows}


def ask(store, subjects, n):
    """Time queries of each kind in turn."""
    rng, found = np.random.default_rng(3), {}
    for i, text in enumerate([subjects[0], *subjects]):  # the first warms up
        for name, where in filters(n, rng).items():
            for rank in ("relevance", "distance"):
                took = spent(
                    store, lambda w=where, r=rank, t=text: store.search(t, where=w, rank=r)
                )
                found.setdefault(f"{name}, {rank}", []).extend([took] if i else [])
    rows = {}
    for name, both in found.items():
        wall, cpu = zip(*both, strict=True)
        rows[name] = summary(wall, 90) | {"cpu_ms": summary(cpu)["median_ms"]}
    return rows


def spent(store, work, *arguments):
    """Say how long something takes, and of a core, in this process and PostgreSQL's for it."""
    before = time.perf_counter(), cpu_seconds(store)
    work(*arguments)
    return time.perf_counter() - before[0], cpu_seconds(store) - before[1]


def cpu_seconds(store):
    session = getattr(store._engine, "_session", None)
    if session is None:
        return time.process_time()
    pid = session._connection.info.backend_pid
    ran = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return time.process_time() + ran


if __name__ == "__main__":
    run(measure, documents=1_000_000)
