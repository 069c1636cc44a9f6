"""Corpora to learn and measure on: `load(name)` gives train, validation and test documents."""

import difflib
import os
from pathlib import Path

from vdsh.datasets import docstrings, newsgroups, reuters
from vdsh.datasets.base import Dataset, Split, random_split
from vdsh.errors import InputError

DATASETS = {
    "20newsgroups": newsgroups.load,
    "reuters": reuters.load,
    "reuters20": reuters.load_20,
    "docstrings": docstrings.load,
}

__all__ = ["DATASETS", "Dataset", "Split", "load", "random_split"]


def load(name: str, *, root: str | os.PathLike[str] | None = None, seed: int = 0) -> Dataset:
    """Load a corpus, split at random into 80 % training, 10 % validation and 10 % test documents.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    root : path, optional
        The folder that holds the corpora; by default the environment variable VDSH_DATA.
        `docstrings` needs none.
    seed : int
        Of the split.
    """
    if name not in DATASETS:
        close = difflib.get_close_matches(name, DATASETS, 1)
        hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(DATASETS)}."
        raise InputError(f"No dataset '{name}'. {hint}")
    root = root or os.environ.get("VDSH_DATA")
    return DATASETS[name](Path(root) if root else None, seed)
