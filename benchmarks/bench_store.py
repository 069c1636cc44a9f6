"""The local store: documents written a second, time to open a million, time of a text query.

Run: VDSH_DATA=path/to/data python benchmarks/bench_store.py [--documents 1000000]

The model is a 32-bit VDSH-S of 20 Newsgroups; documents are its posts cut to a sentence and
numbered, with codes of the model flipped in a few bits, so that codes repeat as real ones do.
"""

import statistics
import tempfile
from pathlib import Path

import numpy as np
from common import bytes_of, fresh, posts, run, summary, timed, times

from vdsh import Document, TextHasher
from vdsh.codes import pack, unpack
from vdsh.store import open_store

KINDS = {
    "text_query_ms": {},
    "text_query_label_filter_ms": {"where": {"label": "sci.space"}},
}


def measure(given):
    data, n = posts(given.quick), given.documents
    hasher = TextHasher("vdsh-s", n_bits=32, random_state=0, epochs=3, hidden_size=1000)
    hasher.fit(data.train.texts, data.train.labels)
    codes = noisy(hasher.encode(data.train.texts), n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        with open_store(path, hasher) as store:
            seconds = timed(lambda: store.upsert(documents(n, data.train), codes=codes))[1]
        opening = statistics.median(fresh(open_and_search, path) for _ in range(5))
        return {
            "documents": n,
            "upsert_per_second": round(n / seconds),
            "open_seconds": round(opening, 3),
            **queries(path, data.test.texts),
            "bytes_on_disk": bytes_of(path),
            "wanted": {"upsert_per_second": 30_000, "open_seconds": 2, "text_query_ms": 10},
        }


def noisy(codes, n):
    """Repeat codes and flip every hundredth bit."""
    rng = np.random.default_rng(0)
    bits = unpack(codes[rng.integers(0, len(codes), n)])
    return pack(bits ^ (rng.random(bits.shape, np.float32) < 0.01))


def documents(n, part):
    texts = [" ".join(text.split()[:12]) for text in part.texts]
    for i in range(n):
        j = i % len(texts)
        yield Document(f"post-{i:08d}", texts[j], part.labels[j], {"year": 1980 + i % 40})


def open_and_search(path):
    """Open the store and search it once by code."""

    def work():
        with open_store(path) as store:
            assert len(store.search(np.zeros(4, np.uint8), k=10)) == 10

    return timed(work)[1]


def queries(path, texts):
    """Time single queries by text: tokenize, encode, search, fetch."""
    with open_store(path) as store:
        return {
            name: summary(
                times(lambda text, more=more: store.search(text, k=10, **more), texts[:205])[5:]
            )["median_ms"]
            for name, more in KINDS.items()
        }


if __name__ == "__main__":
    run(measure, documents=1_000_000)
