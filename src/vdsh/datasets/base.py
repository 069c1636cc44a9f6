"""What a data set is, and how it is split."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.documents import Document, read_documents
from vdsh.errors import MissingFileError


class Split(NamedTuple):
    """Some documents, as parallel lists."""

    ids: list[str]
    texts: list[str]
    labels: list[tuple[str, ...] | None]


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


def random_split(name: str, documents: Sequence[Document], seed: int, note: str) -> Dataset:
    """Shuffle documents and cut them 80 / 10 / 10, as the paper does."""
    order = np.random.RandomState(seed).permutation(len(documents))
    first, second = int(0.8 * len(documents)), int(0.9 * len(documents))

    def part(rows: NDArray[np.intp]) -> Split:
        chosen = [documents[i] for i in rows]
        return Split([d.id for d in chosen], [d.text for d in chosen], [d.labels for d in chosen])

    return Dataset(
        name,
        part(order[:first]),
        part(order[first:second]),
        part(order[second:]),
        f"{note}; random 80/10/10 split, seed {seed}",
    )


def read_corpus(root: Path | None, name: str) -> list[Document]:
    """Read `documents.jsonl.gz` of a corpus below the data folder."""
    path = None if root is None else root / name / "documents.jsonl.gz"
    if path is None or not path.exists():
        where = f"no '{path}'" if path else "no data folder was given"
        raise MissingFileError(
            f"The corpus '{name}' is not here ({where}). Give the folder that holds it with root= "
            "or the environment variable VDSH_DATA."
        )
    return list(read_documents(path))
