"""What a data set is: where it comes from and how it gets here, its documents and their split."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.documents import Document
from vdsh.errors import MissingFileError
from vdsh.files import cache_folder
from vdsh.paper.datasets.download import File, fetch

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Seeds whose validation parts chose the defaults of version 0.2, when each seed cut the whole
# corpus anew. None of those documents is a test document now.
TUNED = range(6)


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
    """All documents of a corpus, before they are split; the note says what was used."""

    documents: Split
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
    """Turn documents into parallel lists."""
    split = Split(
        ids=[document.id for document in documents],
        texts=[document.text for document in documents],
        labels=[document.labels for document in documents],
    )
    return Corpus(split, note)


def random_split(name: str, documents: Sequence[Document], seed: int, note: str) -> Dataset:
    """Cut documents 80 / 10 / 10 at random, as the paper does; see `cut`."""
    return cut(name, as_corpus(documents, note), seed=seed)


def cut(name: str, corpus: Corpus, *, seed: int) -> Dataset:
    """Split a corpus at random: 80 / 10 / 10.

    The test documents are the same for every seed, so that nothing that is tuned on the validation
    documents of one seed is tested by another. The seed deals out the others.
    """
    n_docs = len(corpus.documents.ids)
    test = _test_rows(n_docs)
    others = np.random.RandomState(seed).permutation(np.setdiff1d(np.arange(n_docs), test))
    rows = [*np.split(others, [int(0.8 * n_docs)]), test]
    train, validation, tested = (corpus.documents.take(part) for part in rows)
    note = f"{corpus.note}; random 80/10/10 split, one test part, seed {seed}"
    return Dataset(name, train, validation, tested, note)


def _test_rows(n_docs: int) -> NDArray[np.intp]:
    """Choose a tenth of the documents, none of which has ever chosen a setting."""
    first = int(0.8 * n_docs)
    last = int(0.9 * n_docs)
    tuned = [np.random.RandomState(seed).permutation(n_docs)[first:last] for seed in TUNED]
    fresh = np.setdiff1d(np.arange(n_docs), np.concatenate(tuned))
    return np.random.RandomState(0).permutation(fresh)[: n_docs - last]


@dataclass(frozen=True)
class Source:
    """What is known about a corpus.

    Attributes
    ----------
    name, title : str
    home : str
        The page that publishes it.
    licence, citation : str
    used : str
        Which version, and what of it, `load` gives.
    documents, labels : int
        As published, complete.
    read : callable
        Reads the corpus from its folder.
    folder : str
        Its folder below the data folder or the cache.
    layout : tuple of str
        Files of which one is the corpus, the preferred first.
    files : tuple of File
        The original files, to be downloaded.
    parse : callable
        Turns the original files in a folder into one of `layout`.
    """

    name: str
    title: str
    home: str
    licence: str
    citation: str
    used: str
    documents: int
    labels: int
    read: Callable[[Path], Corpus]
    folder: str
    layout: tuple[str, ...]
    files: tuple[File, ...]
    parse: Callable[[Path], None]

    def is_in(self, folder: Path) -> bool:
        """Tell whether a folder holds the corpus, ready to be read."""
        return any((folder / name).is_file() for name in self.layout)


def data_folder(root: str | os.PathLike[str] | None) -> Path | None:
    """Settle the data folder: what was given, else the environment variable VDSH_DATA."""
    chosen = root or os.environ.get("VDSH_DATA")
    return Path(chosen) if chosen else None


def locate(source: Source, root: str | os.PathLike[str] | None, *, quiet: bool) -> Path:
    """Find the folder of a corpus; without a data folder it is downloaded into the cache."""
    all_corpora = data_folder(root)
    if all_corpora is None:
        return download(source, quiet=quiet)
    folder = all_corpora / source.folder
    if not source.is_in(folder):
        places = " or ".join(f"'{folder / name}'" for name in source.layout)
        raise MissingFileError(
            f"The corpus '{source.name}' is not here: no {places}. Give the folder that holds it "
            "with root= or the environment variable VDSH_DATA, or neither to download it."
        )
    return folder


def download(source: Source, *, quiet: bool = False) -> Path:
    """Download and parse a corpus into the cache unless it is there; return its folder."""
    folder = cache_folder() / source.folder
    if source.is_in(folder):
        return folder
    for file in source.files:
        fetch(file, folder, home=source.home, quiet=quiet)
    source.parse(folder)
    return folder
