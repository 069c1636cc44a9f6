"""What a data set is, and how it is split."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.documents import Document
from vdsh.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SPLITS = ("random", "official")


class Split(NamedTuple):
    """Some documents, as parallel lists.

    Attributes
    ----------
    ids : list of str
    texts : list of str, or None
        None where the corpus has no text.
    labels : list of (tuple of str, or None)
    features : int32 csr_array of shape (n_docs, n_terms), or None
        Term counts, where the corpus has no text.
    """

    ids: list[str]
    texts: list[str] | None
    labels: list[tuple[str, ...] | None]
    features: "csr_array | None" = None

    def take(self, rows: NDArray[np.intp]) -> "Split":
        """Choose documents by their row numbers."""
        return Split(
            [self.ids[i] for i in rows],
            None if self.texts is None else [self.texts[i] for i in rows],
            [self.labels[i] for i in rows],
            None if self.features is None else self.features[rows],
        )


class Corpus(NamedTuple):
    """All documents of a corpus, before they are split.

    Attributes
    ----------
    documents : Split
    parts : list of str
        The published part of each document, "train" or "test"; "" where none was published.
    note : str
        What was used.
    """

    documents: Split
    parts: list[str]
    note: str


class Dataset(NamedTuple):
    """A corpus in three parts.

    Attributes
    ----------
    name : str
    train, validation, test : Split
    note : str
        What was used and how it was cut, for every result made with it.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    note: str


def as_corpus(documents: Sequence[Document], note: str) -> Corpus:
    """Turn documents into parallel lists; their field `split` is the published part."""
    texts, labels = [d.text for d in documents], [d.labels for d in documents]
    parts = [str(d.metadata.get("split", "")) for d in documents]
    return Corpus(Split([d.id for d in documents], texts, labels), parts, note)


def random_split(name: str, documents: Sequence[Document], seed: int, note: str) -> Dataset:
    """Shuffle documents and cut them 80 / 10 / 10, as the paper does."""
    return cut(name, as_corpus(documents, note), split="random", seed=seed)


def cut(name: str, corpus: Corpus, *, split: str, seed: int) -> Dataset:
    """Split a corpus at random (80 / 10 / 10) or as it was published.

    The published training part gives a tenth of its documents, chosen by the seed, to validation.
    """
    if split == "official":
        rows = _official_rows(name, corpus.parts, seed)
        how = f"official split, a tenth of train for validation, seed {seed}"
    else:
        rows = _random_rows(len(corpus.parts), seed)
        how = f"random 80/10/10 split, seed {seed}"
    train, validation, test = (corpus.documents.take(part) for part in rows)
    return Dataset(name, train, validation, test, f"{corpus.note}; {how}")


def _random_rows(n_docs: int, seed: int) -> list[NDArray[np.intp]]:
    order = np.random.RandomState(seed).permutation(n_docs)
    return np.split(order, [int(0.8 * n_docs), int(0.9 * n_docs)])


def _official_rows(name: str, parts: list[str], seed: int) -> list[NDArray[np.intp]]:
    train, test = (np.flatnonzero(np.array(parts) == part) for part in ("train", "test"))
    if len(train) + len(test) < len(parts) or not len(train) or not len(test):
        raise InputError(
            f"The documents of '{name}' that are here have no official split. Use split='random'."
        )
    order = np.random.RandomState(seed).permutation(len(train))
    first = len(train) // 10
    return [train[np.sort(order[first:])], train[np.sort(order[:first])], test]
