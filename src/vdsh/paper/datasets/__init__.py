"""Corpora to learn and measure on: `load(name)` gives train, validation and test documents."""

import os

from vdsh.errors import InputError, suggest
from vdsh.paper.datasets import newsgroups, rcv1, reuters, titles, tmc
from vdsh.paper.datasets.base import Dataset, Source, Split, cut, locate, random_split

_SOURCES = (
    newsgroups.SOURCE,
    reuters.SOURCE,
    reuters.SOURCE_20,
    tmc.SOURCE,
    rcv1.SOURCE,
    titles.SOURCE,
)
DATASETS = {source.name: source for source in _SOURCES}

__all__ = ["DATASETS", "Dataset", "Source", "Split", "find", "load", "random_split"]


def load(
    name: str, *, root: str | os.PathLike[str] | None = None, seed: int = 0, quiet: bool = False
) -> Dataset:
    """Load a corpus in three parts: training, validation and test documents.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    root : path, optional
        The folder that holds the corpora; by default the environment variable VDSH_DATA. Without
        either, the corpus is downloaded into the cache, once.
    seed : int
        Of the split, 80 / 10 / 10 at random, as the paper does.
    quiet : bool
        Show no progress of a download.

    Returns
    -------
    Dataset
        Its note says what was used and how it was cut.
    """
    source = find(name)
    corpus = source.read(locate(source, root, quiet=quiet))
    return cut(name, corpus, seed=seed)


def find(name: str) -> Source:
    """Look up what is known about a corpus."""
    if name not in DATASETS:
        known = "See `vdsh research datasets`."
        raise InputError(f"No dataset '{name}'. {suggest(name, DATASETS)} {known}")
    return DATASETS[name]
