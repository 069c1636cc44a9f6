"""Words and codes together over a million documents: writing, disk, and time of a query.

Run: VDSH_DATA=path/to/data python benchmarks/bench_words.py [--documents 1000000]

The model is a 32-bit VDSH of 20 Newsgroups; documents are 22 successive words of its posts, from
any place. Beside the store stands a table of SQLite's FTS5 with the same words (no content), asked
for its best 100 by bm25() of the same words: what the store's own word index does in between.
"""

import argparse
import sqlite3
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from common import save

from vdsh import Document, TextHasher
from vdsh.datasets import load
from vdsh.jit import load_kernels
from vdsh.store import open_store
from vdsh.words.query import content_words

LENGTH = 22  # words of a document
QUERIES = 200
WANTED = {"documents_per_second": 15_000, "disk_to_texts": 2, "median_ms": 25, "p99_ms": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    n = parser.parse_args().documents
    data = load("20newsgroups")
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=5, hidden_size=1000)
    hasher.fit(data.train.texts)
    load_kernels()
    texts = cut(data.train.texts, n)
    with tempfile.TemporaryDirectory() as folder:
        result = {"documents": n, **write(Path(folder, "store"), hasher, texts)}
        table, seconds = full_text(Path(folder, "fts5.sqlite"), texts)
        result["fts5"] = {
            "documents_per_second": round(n / seconds),
            "bytes_per_document": Path(folder, "fts5.sqlite").stat().st_size / n,
        }
        with open_store(Path(folder, "store")) as store:
            began = time.perf_counter()
            store.search("space shuttle")
            result["first_query_ms"] = round(1000 * (time.perf_counter() - began), 1)
            result["queries"] = ask(store, table, kinds(data, texts))
        table.close()
    for name, value in result.items():
        print(name, value)
    save("words" if n == 1_000_000 else f"words_{n}", result | {"wanted": WANTED})


def cut(posts, n):
    """Cut documents out of posts."""
    rng = np.random.default_rng(0)
    words = [post.split() for post in posts]
    words = [post for post in words if len(post) > 2 * LENGTH]
    chosen = rng.integers(0, len(words), n)
    starts = (rng.random(n) * [len(words[i]) - LENGTH for i in chosen]).astype(int)
    return [" ".join(words[i][j : j + LENGTH]) for i, j in zip(chosen, starts, strict=True)]


def write(path, hasher, texts):
    """Write all texts, encoded on the way, in one go."""
    documents = (Document(f"{i:07d}", text) for i, text in enumerate(texts))
    with open_store(path, hasher) as store:
        start = time.perf_counter()
        store.upsert(documents)
        seconds = time.perf_counter() - start
    with sqlite3.connect(path / "store.sqlite") as base:
        (words,) = base.execute("SELECT SUM(LENGTH(data)) FROM words").fetchone()
        (pieces,) = base.execute("SELECT COUNT(*) FROM words").fetchone()
    base.close()
    size = sum(file.stat().st_size for file in path.glob("*") if file.is_file())
    n_bytes = sum(len(text.encode()) for text in texts)
    return {
        "documents_per_second": round(len(texts) / seconds),
        "text_bytes_per_document": round(n_bytes / len(texts), 1),
        "disk_bytes_per_document": round(size / len(texts), 1),
        "disk_to_texts": round(size / n_bytes, 2),
        "word_index_bytes_per_document": round(words / len(texts), 1),
        "word_index_pieces": pieces,
    }


def full_text(path, texts):
    """Fill an FTS5 table with the same words."""
    base = sqlite3.connect(path)
    base.execute(
        "CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize=\"ascii tokenchars ''''\")"
    )
    rows = ((i, " ".join(content_words(text))) for i, text in enumerate(texts))
    start = time.perf_counter()
    with base:
        base.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)
    return base, time.perf_counter() - start


def kinds(data, texts):
    """Make queries: subjects, words that most documents have, whole posts, and signs."""
    rng = np.random.default_rng(1)
    subjects = [line(text) for text in data.test.texts]
    subjects = [subject for subject in subjects if len(content_words(subject)) > 1]
    counted = Counter(word for text in texts[:20_000] for word in content_words(text))
    common = [word for word, _ in counted.most_common(60)]
    pairs = [pair for text in texts[:5000] if len(pair := text.split()[3:5]) == 2]
    return {
        "subjects": subjects[:QUERIES],
        "common words": [" ".join(rng.choice(common, 3, replace=False)) for _ in range(QUERIES)],
        "whole posts": data.test.texts[:QUERIES],
        "phrases": [
            f'"{" ".join(pair)}"' for pair in pairs if len(content_words(" ".join(pair))) == 2
        ][:QUERIES],
        "without a word": [f"{subject} -article" for subject in subjects[:QUERIES]],
    }


def line(text):
    """Take the first line that has words."""
    return next((some for some in text.splitlines() if len(some.split()) > 2), "")[:80]


def ask(store, table, queries):
    """Time the store and FTS5 in turn."""
    found = {}
    for name, texts in queries.items():
        ours, theirs = [], []
        for i, text in enumerate(texts):
            start = time.perf_counter()
            hits = store.search(text, k=10)
            ours.append(time.perf_counter() - start)
            if i < 40 and name in ("subjects", "common words") and hits:
                words = " OR ".join(f'"{word}"' for word in content_words(text))
                start = time.perf_counter()
                best = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 100"
                table.execute(best, (words,)).fetchall()
                theirs.append(time.perf_counter() - start)
        found[name] = {"store": summary(ours)} | ({"fts5": summary(theirs)} if theirs else {})
    return found


def summary(seconds):
    """Say what is usual and what is rare, in milliseconds."""
    median, p99 = np.percentile(seconds, [50, 99])
    return {"median_ms": round(1000 * median, 2), "p99_ms": round(1000 * p99, 2)}


if __name__ == "__main__":
    main()
