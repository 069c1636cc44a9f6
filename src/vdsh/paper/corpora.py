"""Corpora as counts, as much of their labels as a method may see, and the map of figure 4."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from vdsh.codes import Scores
from vdsh.corpus_map import lay_out
from vdsh.paper.datasets import Dataset, load
from vdsh.text import BagOfWords

# Table 3 of the paper. Of the second post the bydate version has only answers ("Re: ...").
TITLES = (
    "Trade rumor: Montreal/Ottawa/Phillie",
    "NHL team leaders in +/-",
    "Books For Sale [Ann Arbor, MI]",
    "*** NeXTstation 8/105 For Sale ***",
)


class Part(NamedTuple):
    """Documents as counts, with their labels."""

    counts: csr_array
    labels: Sequence[Any]


class Counted(NamedTuple):
    """A corpus as counts; the vocabulary is the training documents'."""

    train: Part
    validation: Part
    test: Part
    note: str


def count(dataset: str, seed: int, root: str | None = None) -> Counted:
    """Load a corpus and count its terms; the last one is kept for the next cell."""
    return _count(dataset, seed, root or os.environ.get("VDSH_DATA"))


@lru_cache(maxsize=1)
def _count(dataset: str, seed: int, root: str | None) -> Counted:
    data = load(dataset, root=root, seed=seed, quiet=True)
    splits = (data.train, data.validation, data.test)
    if data.train.features is not None:
        terms_in_training = np.flatnonzero(np.bincount(data.train.features.indices, minlength=1))
        matrices = [
            split.features[:, terms_in_training] for split in splits if split.features is not None
        ]
    else:
        texts = [split.texts for split in splits if split.texts is not None]
        bag = BagOfWords().fit(texts[0])
        matrices = [bag.transform(part) for part in texts]
    train, validation, test = (
        Part(counts, split.labels) for counts, split in zip(matrices, splits, strict=True)
    )
    return Counted(train, validation, test, data.note)


def show_some(part: Part, percent: int, seed: int) -> Part:
    """Hide the labels of all but a share of the documents; of all, for a share of 0."""
    if percent == 100:
        return part
    n_docs = len(part.labels)
    n_shown = n_docs * percent // 100
    if percent > 0:
        n_shown = max(1, n_shown)
    order = np.random.RandomState(seed).permutation(n_docs)
    shown = set(order[:n_shown].tolist())
    labels = [label if row in shown else None for row, label in enumerate(part.labels)]
    return Part(part.counts, labels)


def place(
    dataset: str, seed: int, root: str | None, scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Lay scores out by t-SNE; return the points, their classes, and which have the titles.

    The points are the test documents, which no method has seen, and the four posts that the paper
    names.
    """
    corpus = load(dataset, root=root, seed=seed, quiet=True)
    parts = (corpus.train, corpus.validation, corpus.test)
    titles, rows = _posts_on_the_map(corpus)
    vectors = np.concatenate([scores[name] for name in ("train", "validation", "test")])
    labels = [labels for part in parts for labels in part.labels]
    class_names = [(labels[row] or ("none",))[0] for row in rows]
    classes = sorted(set(class_names))
    return {
        "titles": titles,
        "classes": classes,
        "class_of_point": [classes.index(name) for name in class_names],
        "points": lay_out(vectors[rows], seed=seed).round(2).tolist(),
    }


def _posts_on_the_map(corpus: Dataset) -> tuple[dict[str, int], list[int]]:
    """List the rows of the test documents and the named posts, and where in it the latter are."""
    parts = (corpus.train, corpus.validation, corpus.test)
    texts = [text for part in parts for text in part.texts or ()]
    n_before_test = len(texts) - len(corpus.test.ids)
    rows = list(range(n_before_test, len(texts)))
    titles = {}
    for title in TITLES:
        post = _find_post(title, texts)
        if post is None:
            continue
        if post < n_before_test:
            rows.append(post)
        titles[title] = rows.index(post)
    return titles, rows


def _find_post(title: str, texts: Sequence[str]) -> int | None:
    """Find the first post with this subject, or else the first answer to it."""
    for line in (f"Subject: {title}\n", f"Subject: Re: {title}\n"):
        for row, text in enumerate(texts):
            if line in text:
                return row
    return None
