"""Corpora to learn and measure on: another name of `vdsh.paper.datasets`, and a stable one.

`from vdsh.datasets import load; load("20newsgroups", root=...)`
"""

from vdsh.documents import docstrings as docstrings
from vdsh.paper.datasets import DATASETS, Dataset, Source, Split, find, load, random_split

__all__ = [
    "DATASETS",
    "Dataset",
    "Source",
    "Split",
    "find",
    "load",
    "random_split",
]
