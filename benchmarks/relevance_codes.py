"""Train the models of `bench_relevance.py` and keep the codes of its documents and queries.

    VDSH_DATA=path/to/data python benchmarks/relevance_codes.py FOLDER [--processes 6] [--seeds 3]

Codes and probabilities are kept, so that a new way to combine them with words needs no training.
With a GPU it takes minutes. `vdsh` learns without labels; every model holds a tenth of the
documents out to choose its epoch, as `vdsh fit` does.
"""

import argparse
import gzip
import json
import os
import re
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vdsh.datasets.newsgroups import keep_headers
from vdsh.datasets.reuters import most_frequent
from vdsh.documents import Document
from vdsh.pipeline import TextHasher
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import find_tokens

QUERIES = Path(__file__).parent / "relevance" / "snippets.json"
N_QUERIES = 1000  # to choose the rule with, and as many to test it


class Task(NamedTuple):
    """Documents, and queries for them.

    Attributes
    ----------
    texts, labels : list
        Of the documents.
    queries : list of str
        The first half is for choosing, the second for testing.
    query_labels : list of (set of str)
    answers : list of int
        The row of the document that a title belongs to; -1 where there is none.
    """

    texts: list
    labels: list
    queries: list
    query_labels: list
    answers: list


def read(name: str) -> list[Document]:
    path = Path(os.environ["VDSH_DATA"]) / name / "documents.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [Document(row["id"], row["text"], tuple(row["labels"]), {}) for row in rows]


def content_words(texts: list[str]) -> list[list[str]]:
    """Split texts into all their words but stop words, known to a model or not."""
    tokens = find_tokens(texts)
    data, rows = tokens.data.tobytes(), tokens.documents.tolist()
    spans = zip(tokens.starts.tolist(), tokens.stops.tolist(), strict=True)
    words = [data[i:j].decode() for i, j in spans]
    return [
        [word for word in words[i:j] if word not in SMART]
        for i, j in zip(rows[:-1], rows[1:], strict=True)
    ]


def titled(texts: list[str], titles: list[str], labels: list) -> Task:
    """Ask for documents by their titles: those that have one, and words left without it."""
    words = content_words(titles)
    able = [i for i in range(len(texts)) if words[i] and texts[i].strip()]
    rows = np.random.RandomState(0).permutation(able)[: 2 * N_QUERIES].tolist()
    return Task(texts, labels, [titles[i] for i in rows], [labels[i] for i in rows], rows)


def reuters_titles() -> Task:
    """Ask for a story's text by its title; 831 of the 10,788 stories have no text."""
    stories = [(*d.text.partition("\n"), set(d.labels)) for d in read("reuters")]
    titles, _, bodies, labels = (list(part) for part in zip(*stories, strict=True))
    return titled(bodies, titles, labels)


def newsgroups_titles() -> Task:
    """Ask for a post by its subject, for posts that do not answer another; no headers."""
    posts, subjects, labels = [], [], []
    for document in read("20newsgroups"):
        header, _, body = document.text.partition("\n\n")
        match = re.search(r"^subject:(.*)$", header, re.IGNORECASE | re.MULTILINE)
        first = match is not None and not re.match(r"\s*re\b", match[1], re.IGNORECASE)
        posts.append(body)
        subjects.append(match[1].strip() if match and first else "")
        labels.append(set(document.labels))
    return titled(posts, subjects, labels)


def held_out(documents: list[Document]) -> Task:
    """Ask with documents themselves: a tenth to choose and a tenth to test, 1,000 at most each."""
    order = np.random.RandomState(0).permutation(len(documents))
    tenth = len(order) // 10
    rows = [*order[:tenth][:N_QUERIES], *order[tenth : 2 * tenth][:N_QUERIES]]
    texts = lambda rows: [documents[i].text for i in rows]  # noqa: E731
    labels = lambda rows: [set(documents[i].labels) for i in rows]  # noqa: E731
    rest = order[2 * tenth :]
    return Task(texts(rest), labels(rest), texts(rows), labels(rows), [-1] * len(rows))


def reuters_documents() -> Task:
    return held_out(most_frequent(read("reuters"), 20))


def newsgroups_documents() -> Task:
    posts = read("20newsgroups")
    return held_out([Document(d.id, keep_headers(d.text), d.labels, {}) for d in posts])


def snippets_documents() -> Task:
    return held_out(read("snippets"))


def snippets_judged() -> Task:
    """Ask as a person would; the answers were judged by hand."""
    documents = read("snippets")
    queries = [judgement["query"] for judgement in json.loads(QUERIES.read_text())["queries"]]
    texts, labels = [d.text for d in documents], [set(d.labels) for d in documents]
    return Task(texts, labels, queries, [set()] * len(queries), [-1] * len(queries))


TASKS = {
    task.__name__: task
    for task in (
        reuters_titles,
        newsgroups_titles,
        reuters_documents,
        newsgroups_documents,
        snippets_documents,
        snippets_judged,
    )
}
MODELS = (("vdsh", 32), ("vdsh", 64), ("vdsh", 128), ("vdsh-s", 32))


@cache
def load(name: str) -> Task:
    return TASKS[name]()


def shortened(queries: list[str], n_words: int) -> list[str]:
    """Keep the first content words of each query."""
    return [" ".join(words[:n_words]) for words in content_words(queries)]


def encode(job: tuple[str, str, int, int]) -> dict[str, np.ndarray]:
    """Train one model; return codes of documents and probabilities of queries' bits."""
    name, model, bits, seed = job
    warnings.simplefilter("ignore")
    task, start = load(name), time.perf_counter()
    order = np.random.RandomState(seed).permutation(len(task.texts))
    tenth = len(order) // 10
    chosen, rest = np.sort(order[tenth:]), order[:tenth]
    parts = []
    for rows in (chosen, rest):
        labels = [sorted(task.labels[i]) for i in rows] if model == "vdsh-s" else None
        parts.append(([task.texts[i] for i in rows], labels))
    hasher = TextHasher(model, bits, random_state=seed)
    hasher.fit(*parts[0], validation=parts[1], progress=False)
    took = time.perf_counter() - start
    inner, bag = hasher.hasher_, hasher.vectorizer_
    chances = lambda texts: inner.bit_probabilities(bag.transform(texts))  # noqa: E731
    key = f"{model}-{bits}-{seed}"
    found = {
        f"{key}/codes": hasher.encode(task.texts),
        f"{key}/queries": chances(task.queries).astype(np.float16),
        f"{key}/terms": np.diff(bag.transform(task.queries).indptr).astype(np.int32),
    }
    if bits == 32 and name.endswith("_documents"):
        for n in (6, 25):
            short = chances(shortened(task.queries, n))
            found[f"{key}/queries{n}"] = short.astype(np.float16)
    if bits == 32 and seed == 0:
        found[f"{key}/vocabulary"] = bag.vocabulary_
        found[f"{key}/documents"] = (255 * chances(task.texts)).round().astype(np.uint8)
    print(f"{name} {key} {took:.1f} s, {len(inner.history_)} epochs", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (name, model, bits, seed)
        for seed in range(given.seeds)
        for name in given.tasks
        for model, bits in MODELS
    ]
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        found: dict[str, dict[str, np.ndarray]] = {name: {} for name in given.tasks}
        for job, arrays in zip(jobs, pool.map(encode, jobs), strict=True):
            found[job[0]] |= arrays
            last = job == [other for other in jobs if other[3] == job[3] and other[0] == job[0]][-1]
            if last:
                np.savez_compressed(given.folder / f"{job[0]}.npz", **found[job[0]])


if __name__ == "__main__":
    main()
