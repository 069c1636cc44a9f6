"""Words and codes together over a million documents: writing, disk, and time of a query.

Run: VDSH_DATA=path/to/data python benchmarks/bench_words.py [--documents 1000000]

The model is a 32-bit VDSH of 20 Newsgroups; documents are 22 successive words of its posts, from
any place. Beside the store stands a table of SQLite's FTS5 with the same words (no content), asked
for its best 100 by bm25() of the same words: what the store's own word index does in between.
`--only peers`: a fifth as many documents of 40 words with 128-bit codes of linear hashing, and
Reuters titles, beside tantivy (en_stem), bm25s (numba, Snowball) and FTS5 (porter), each with the
texts where it can; also the CPU of a query on average, which other work on the machine moves less.
`--before path/to/0.2/src`: version 0.2 with its own 32 bits too, by which machines are compared.
"""

import re
import sqlite3
import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from common import bytes_of, cut, fresh, line, posts, run, summary, timed, times
from relevance_tasks import content_words, read

from vdsh import Document, TextHasher
from vdsh.store import open_store

QUERIES = 200
BEST = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 100"
TABLE = "CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize=\"ascii tokenchars ''''\")"
WANTED = {"documents_per_second": 15_000, "disk_to_texts": 2, "median_ms": 25, "p99_ms": 100}


def measure(given):
    data, n = posts(given.quick), given.documents
    hasher, texts = small_model(data), cut(data.train.texts, n)
    with tempfile.TemporaryDirectory() as folder:
        result = {"documents": n, **write(Path(folder, "store"), hasher, texts)}
        table = sqlite3.connect(Path(folder, "fts5.sqlite"))
        seconds = timed(full_text, table, texts)[1]
        result["fts5"] = {
            "documents_per_second": round(n / seconds),
            "bytes_per_document": Path(folder, "fts5.sqlite").stat().st_size / n,
        }
        with open_store(Path(folder, "store")) as store:
            first = timed(store.search, "space shuttle")[1]
            result["first_query_ms"] = round(1000 * first, 1)
            result["queries"] = ask(store, table, kinds(data, texts))
        table.close()
    return result | {"wanted": WANTED}


def small_model(data):
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=5, hidden_size=1000)
    return hasher.fit(data.train.texts)


def write(path, hasher, texts):
    """Write all texts, encoded on the way, in one go."""
    documents = (Document(f"{i:07d}", text) for i, text in enumerate(texts))
    with open_store(path, hasher) as store:
        seconds = timed(store.upsert, documents)[1]
    with closing(sqlite3.connect(path / "store.sqlite")) as base:
        (words,) = base.execute("SELECT SUM(size + LENGTH(data)) FROM words").fetchone()
    n, n_bytes, size = len(texts), sum(len(text.encode()) for text in texts), bytes_of(path)
    return {
        "documents_per_second": round(n / seconds),
        "text_bytes_per_document": round(n_bytes / n, 1),
        "disk_bytes_per_document": round(size / n, 1),
        "disk_to_texts": round(size / n_bytes, 2),
        "word_index_bytes_per_document": round(words / n, 1),
    }


def full_text(base, texts):
    """Fill an FTS5 table with the same words."""
    base.execute(TABLE)
    rows = ((i, " ".join(content_words(text))) for i, text in enumerate(texts))
    with base:
        base.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)


def kinds(data, texts):
    """Make queries: subjects, words that most documents have, whole posts, and signs."""
    rng = np.random.default_rng(1)
    subjects = [line(text) for text in data.test.texts]
    subjects = [subject for subject in subjects if len(content_words(subject)) > 1]
    counted = Counter(word for text in texts[:20_000] for word in content_words(text))
    common = [word for word, _ in counted.most_common(60)]
    pairs = [" ".join(text.split()[3:5]) for text in texts[:5000]]
    pairs = [f'"{pair}"' for pair in pairs if len(content_words(pair)) == 2]
    found = {
        "subjects": subjects,
        "common words": [" ".join(rng.choice(common, 3, replace=False)) for _ in range(QUERIES)],
        "whole posts": data.test.texts,
        "phrases": pairs,
        "without a word": [f"{subject} -article" for subject in subjects],
    }
    return {name: some[:QUERIES] for name, some in found.items()}


def ask(store, table, queries):
    """Time the store, and FTS5 where it can be asked the same."""
    found = {}
    for name, texts in queries.items():
        found[name] = {"store": summary(times(lambda text: store.search(text, k=10), texts))}
        if name in ("subjects", "common words"):
            words = [" OR ".join(f'"{w}"' for w in content_words(text)) for text in texts[:40]]
            alike = times(lambda some: table.execute(BEST, (some,)).fetchall(), words)
            found[name]["fts5"] = summary(alike)
    return found


# -- beside what people would pick ----------------------------------------------------------------


def peers(given):
    """Write the same pieces with each, and ask each the same, one at a time, for ten texts."""
    data, n = posts(given.quick), given.documents // 5
    texts = cut(data.train.texts, n, 40)
    asked = [document.text.partition("\n")[0].lower() for document in read("reuters")[:QUERIES]]
    hasher = TextHasher("linear", n_bits=128, random_state=0).fit(data.train.texts)
    rows = [contend("ours", partial(ours, hasher), texts, pieces(texts, asked))]
    if given.before:
        rows.append(fresh(before, data, texts, asked, source=given.before))
    others = {"tantivy": tantivy_, "bm25s": bm25s_, "FTS5 porter": fts5_porter}
    rows += [contend(name, fill, texts, {"": asked}) for name, fill in others.items()]
    return {"documents": n, "rows": rows, "wanted": {"median_ms": 2, "p99_ms": 20}}


def contend(name, fill, texts, queries):
    """Have one write and answer."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        search, seconds = timed(fill, Path(folder), texts, stack)
        search(queries[""][0])
        row = {"name": name, "documents_per_second": round(len(texts) / seconds)}
        size = sum(len(text.encode()) for text in texts)
        row |= {"disk_to_texts": round(bytes_of(Path(folder)) / size, 2)}
        for kind, some in queries.items():
            begin = process_time()
            told = summary(times(search, some[:QUERIES]))
            told["cpu_ms"] = round(1000 * (process_time() - begin) / len(some[:QUERIES]), 2)
            row |= {f"{kind} {key}".strip(): value for key, value in told.items()}
    return row


def before(data, texts, asked):
    return contend("vdsh 0.2", partial(ours, small_model(data)), texts, {"": asked})


def pieces(texts, asked):
    """Make queries that peers are not asked: with typos, phrases, and common words."""
    counted = Counter(word for text in texts[:20_000] for word in content_words(text))
    common, rng = [word for word, _ in counted.most_common(60)], np.random.default_rng(1)
    drop = [(title, int(rng.integers(1, max(2, len(title) - 1)))) for title in asked]
    return {
        "": asked,
        "typos": [title[:i] + title[i + 1 :] for title, i in drop],
        "phrases": [f'"{" ".join(text.split()[3:5])}"'.replace('""', '"') for text in texts],
        "common": [" ".join(rng.choice(common, 3, replace=False)) for _ in asked],
    }


def ours(hasher, folder, texts, stack):
    with open_store(folder / "s", hasher) as store:  # closed, for its size at rest
        store.upsert(Document(f"{i:07d}", text) for i, text in enumerate(texts))
    store = stack.enter_context(open_store(folder / "s"))
    return lambda query: store.search(query, k=10)


def tantivy_(folder, texts, stack):
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("x", stored=True, tokenizer_name="en_stem")
    index = tantivy.Index(schema.build(), path=str(folder))
    writer = index.writer(200_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document(x=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query):
        read, _ = index.parse_query_lenient(query, ["x"])
        return [searcher.doc(place) for _, place in searcher.search(read, 10).hits]

    return search


def bm25s_(folder, texts, stack):
    import bm25s
    import Stemmer

    how = {"stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    index = bm25s.BM25(backend="numba", k1=1.2, b=0.75)
    index.index(bm25s.tokenize(texts, **how), show_progress=False)
    index.save(folder)

    def search(query):
        words = bm25s.tokenize([query], **how)
        return index.retrieve(words, k=10, show_progress=False) if words.vocab else None

    return search


def fts5_porter(folder, texts, stack):
    base = stack.enter_context(closing(sqlite3.connect(folder / "fts5.sqlite")))
    base.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
    with base:
        base.executemany("INSERT INTO t (x) VALUES (?)", ((text,) for text in texts))
    best = "SELECT x FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10"

    def search(query):
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        return base.execute(best, (words,)).fetchall() if words else []

    return search


if __name__ == "__main__":
    run({"": measure, "peers": peers}, documents=1_000_000, before=str)
