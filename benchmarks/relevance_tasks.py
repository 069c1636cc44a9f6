"""The tasks of `bench_relevance.py`: documents, and queries whose answers are known."""

import gzip
import json
import os
import re
import sysconfig
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vdsh.documents import Document, read_documents
from vdsh.paper.datasets.newsgroups import keep_headers
from vdsh.paper.datasets.reuters import most_frequent
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize

QUERIES = Path(__file__).parent / "relevance" / "snippets.json"
N_QUERIES = 1000  # to choose the rule with, as was done once, and as many to test it
SEVEN = ("cacm", "cranfield", "med", "nfcorpus", "scifact", "squad-dev", "trecqa")
KINDS = (".txt", ".md", ".rst", "LICENSE", "copyright")  # of documentation
LANGUAGES = {"xquad-de": "german", "xquad-ru": "russian", "xquad-zh": ""}  # others are English


class Task(NamedTuple):
    """Documents, and queries for them.

    Attributes
    ----------
    texts : list of str
    queries : list of str
        None of them chose the rule, but for those of the seven collections: `docs/relevance.md`.
    judged : list of (dict of int to int)
        The grades of some rows, for each query: a title asks for its own text.
    labels, query_labels : list of (set of str)
        The topics of documents and queries, where they have some.
    """

    texts: list
    queries: list
    judged: list
    labels: list = ()
    query_labels: list = ()


def data(name: str) -> Path:
    return Path(os.environ["VDSH_DATA"]) / name


def read(name: str) -> list[Document]:
    """Read a corpus as it is."""
    return list(read_documents(data(name) / "documents.jsonl.gz"))


def collection(name: str) -> Task:
    """Read one of the judged test collections; a title is the first line of its document."""
    folder = data("ir") / name
    rows, asked = (
        [json.loads(line) for line in gzip.open(folder / f"{part}.jsonl.gz", "rt")]
        for part in ("corpus", "queries")
    )
    places = {row["id"]: i for i, row in enumerate(rows)}
    judged = {row["id"]: {} for row in asked}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if query in judged and document in places:
            judged[query][places[document]] = int(grade)
    texts = [f"{row['title']}\n{row['text']}".strip() for row in rows]
    return Task(texts, [row["text"] for row in asked], list(judged.values()))


def content_words(text: str) -> list[str]:
    return [word for word in tokenize(text) if word not in SMART]


def titled(texts: list[str], titles: list[str], labels: list) -> Task:
    """Ask for documents by their titles: those that have one, and words left without it."""
    able = [i for i, text in enumerate(texts) if content_words(titles[i]) and text.strip()]
    rows = np.random.RandomState(0).permutation(able)[N_QUERIES : 2 * N_QUERIES].tolist()
    asked = [labels[i] for i in rows]
    return Task(texts, [titles[i] for i in rows], [{i: 1} for i in rows], labels, asked)


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
    """Ask with a tenth of the documents themselves, 1,000 at most."""
    order = np.random.RandomState(0).permutation(len(documents))
    tenth = len(order) // 10
    asked = [documents[i] for i in order[tenth : 2 * tenth][:N_QUERIES]]
    rest = [documents[i] for i in order[2 * tenth :]]
    topics = [[set(document.labels) for document in some] for some in (rest, asked)]
    return Task([d.text for d in rest], [d.text for d in asked], [{}] * len(asked), *topics)


def reuters_documents() -> Task:
    return held_out(most_frequent(read("reuters"), 20))


def newsgroups_documents() -> Task:
    posts = read("20newsgroups")
    return held_out([Document(d.id, keep_headers(d.text), d.labels, {}) for d in posts])


def snippets_documents() -> Task:
    return held_out(read("snippets"))


def snippets_judged() -> Task:
    """Ask as a person would; the answers were judged by hand, and what was not is wrong."""
    documents = read("snippets")
    places = {document.id: i for i, document in enumerate(documents)}
    asked = json.loads(QUERIES.read_text())["queries"]
    judged = [{places[id]: 1 for id in one["relevant"]} for one in asked]
    return Task([d.text for d in documents], [one["query"] for one in asked], judged)


def long_documents(n: int) -> tuple[list[str], list[tuple[int, str]]]:
    """Read the documentation that is installed here, and draw sentences of the long ones.

    Each is of the second half of a document above 5,000 words, and in no other document.
    """
    folders = (*(sysconfig.get_path(name) for name in ("purelib", "stdlib")), "/usr/share/doc")
    found = [file for folder in folders for file in Path(folder).rglob("*")
             if file.suffix in KINDS or file.name in KINDS]  # fmt: skip
    files = [file for file in sorted(found) if 2000 < file.stat().st_size < 2**21]
    texts = sorted({file.read_text(errors="replace") for file in files})
    flat = [" ".join(text.split()) for text in texts]
    rng, asked = np.random.RandomState(0), dict[str, int]()
    long = [i for i, text in enumerate(flat) if text.count(" ") > 5000]
    while len(asked) < n:
        row = int(rng.choice(long))
        sentences = re.split(r"(?<=[.!?]) ", flat[row][len(flat[row]) // 2 :])
        some = sentences[rng.randint(len(sentences))]
        if 8 <= some.count(" ") <= 25 and sum(some in text for text in flat) == 1:
            asked[some] = row
    return texts, [(row, sentence) for sentence, row in asked.items()]


TASKS = {
    **{name: partial(collection, name) for name in (*SEVEN, *LANGUAGES)},
    "reuters_titles": reuters_titles,
    "newsgroups_titles": newsgroups_titles,
    "reuters_documents": reuters_documents,
    "newsgroups_documents": newsgroups_documents,
    "snippets_documents": snippets_documents,
    "snippets_judged": snippets_judged,
}


@cache
def load(name: str) -> Task:
    return TASKS[name]()
