"""The tasks of `bench_relevance.py`: documents, and queries whose answers are known."""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vdsh.datasets.newsgroups import keep_headers
from vdsh.datasets.reuters import most_frequent
from vdsh.documents import Document, read_documents
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
    """Read a corpus as it is."""
    return list(read_documents(Path(os.environ["VDSH_DATA"]) / name / "documents.jsonl.gz"))


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


@cache
def load(name: str) -> Task:
    return TASKS[name]()
