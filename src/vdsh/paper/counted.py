"""Corpora as counts, and as much of their labels as a method may see."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from vdsh.datasets import load
from vdsh.text import BagOfWords


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
