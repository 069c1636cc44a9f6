"""Corpora as counts, as much of their labels as a method may see, and the map of figure 4."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from vdsh import plots
from vdsh.codes import Scores
from vdsh.datasets import Dataset, load
from vdsh.text import BagOfWords

# Table 3 of the paper; of the second there are only answers ("Re: ...") in the bydate version
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
        kept = np.flatnonzero(np.bincount(data.train.features.indices, minlength=1))
        matrices = [split.features[:, kept] for split in splits if split.features is not None]
    else:
        texts = [split.texts for split in splits if split.texts is not None]
        bag = BagOfWords().fit(texts[0])
        matrices = [bag.transform(part) for part in texts]
    parts = [Part(X, split.labels) for X, split in zip(matrices, splits, strict=True)]
    return Counted(parts[0], parts[1], parts[2], data.note)


def show_some(part: Part, percent: int, seed: int) -> Part:
    """Hide the labels of all but a share of the documents; of all, for a share of 0."""
    if percent == 100:
        return part
    n_docs = len(part.labels)
    n_shown = max(percent > 0, n_docs * percent // 100)
    shown = set(np.random.RandomState(seed).permutation(n_docs)[:n_shown].tolist())
    return Part(part.counts, [label if i in shown else None for i, label in enumerate(part.labels)])


def place(
    dataset: str, seed: int, root: str | None, scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Lay scores out by t-SNE; return the points, their labels, and which of them have the titles.

    The points are the test documents, which no method has seen, and the four posts that the paper
    names.
    """
    corpus = load(dataset, root=root, seed=seed, quiet=True)
    titles, rows = _choose(corpus)
    vectors = np.concatenate([scores[name] for name in ("train", "validation", "test")])
    labels = [labels for part in corpus[1:4] for labels in part.labels]
    return {
        "titles": titles,
        "labels": [(labels[row] or ("none",))[0] for row in rows],
        "points": plots.lay_out(vectors[rows], seed=seed).round(2).tolist(),
    }


def _choose(corpus: Dataset) -> tuple[dict[str, int], list[int]]:
    """Take the test documents and the named posts; return the latters' places among them."""
    texts = [text for part in corpus[1:4] for text in part.texts or ()]
    n_seen = len(texts) - len(corpus.test.ids)
    rows = list(range(n_seen, len(texts)))
    titles = {}
    for title in TITLES:
        lines = (f"Subject: {title}\n", f"Subject: Re: {title}\n")
        found = [row for line in lines for row, text in enumerate(texts) if line in text]
        if found:
            rows += [found[0]] if found[0] < n_seen else []
            titles[title] = rows.index(found[0])
    return titles, rows
