"""The life of a store: add, learn, open, search, learn again, back up; a folder and two servers.

Run: VDSH_DATA=path/to/data python benchmarks/bench_store.py [--documents 1000000]

Documents are 22 successive words of posts of 20 Newsgroups, from any place, each with a word of its
own. They are added to a store without a model, as `vdsh add` does; `learn` takes 128 bits of linear
hashing and encodes them all, `reindex` puts a model of another seed under the store. Each step is a
process of its own, whose peak of memory is told. Queries are lines of held-out posts. `--only
postgres milvus`: the same on servers, with a tenth as many documents as the folder of ten million.
"""

import tempfile
from functools import partial
from pathlib import Path

from common import bytes_of, cut, fresh, line, posts, resident_mb, run, summary, timed, times
from relevance_tasks import content_words

from servers import postgres_in
from vdsh import Document
from vdsh.store import open_store

QUERIES, BLOCK = 200, 100_000
WANTED = {"documents_per_second": 10_000, "median_ms": 25, "codes_median_ms": 2}


def measure_folder(given):
    """Do everything in a folder, and say how large it is."""
    with tempfile.TemporaryDirectory() as place:
        found = live(f"{place}/store", given, more={"backup": partial(back_up, f"{place}/backup")})
        size = bytes_of(Path(place, "store"))
    return found | {"bytes": size, "disk_to_texts": round(size / found["text_bytes"], 2)}


def measure_postgres(given):
    """Do the same in PostgreSQL, with the settings that it comes with."""
    with postgres_in(None) as (server, _):
        return live(server.url("postgres"), given)


def measure_milvus(given):
    """Do the same in Milvus Lite."""
    with tempfile.TemporaryDirectory() as place:
        return live(f"milvus-lite:{place}/store.db", given)


def live(place, given, more=None):
    """Go through the steps, each in a process of its own."""
    n = given.documents
    steps = {"add": partial(add, n), "learn": partial(learn, 0), "search": search}
    found = {"documents": n}
    for name, step in (steps | {"reindex": partial(learn, 1)} | (more or {})).items():
        found |= {name: fresh(measured, step, place, given.quick)}
        print(name, found[name], flush=True)
    return found | {"text_bytes": found["add"].pop("text_bytes"), "wanted": WANTED}


def measured(step, place, quick):
    told, seconds = timed(step, place, quick)
    return {"seconds": round(seconds, 1), "peak_mb": round(resident_mb(peak=True))} | told


def add(n, place, quick):
    texts, size, last = posts(quick).train.texts, 0, 0.0
    with open_store(place) as store:
        for first in range(0, n, BLOCK):
            some = cut(texts, min(BLOCK, n - first), seed=first)
            size += sum(len(text.encode()) for text in some)
            documents = [
                Document(f"{first + i:08d}", f"{t} w{first + i}") for i, t in enumerate(some)
            ]
            last = timed(store.upsert, documents)[1]
    return {"text_bytes": size + 9 * n, "last_per_second": round(len(documents) / last)}


def learn(seed, place, quick):
    with open_store(place) as store:
        store.learn(random_state=seed, progress=False)
    return {}


def search(place, quick):
    asked = [text for text in map(line, posts(quick).test.texts) if len(content_words(text)) > 1]
    with open_store(place) as store:
        opened = timed(store.search, asked[-1])[1]
        together = times(lambda text: store.search(text, k=10), asked[:QUERIES])
        codes = store.model.encode(asked[:QUERIES])
        alone = times(lambda code: store.search(code, k=10), codes)
    of_codes = {f"codes_{name}": value for name, value in summary(alone).items()}
    return {"first_s": round(opened, 2), **summary(together), **of_codes}


def back_up(file, place, quick):
    with open_store(place) as store:
        store.back_up(file)
    return {"bytes": Path(file).stat().st_size}


if __name__ == "__main__":
    parts = {"": measure_folder, "postgres": measure_postgres, "milvus": measure_milvus}
    run(parts, documents=1_000_000)
