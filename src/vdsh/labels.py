"""Labels as users give them, turned into one sparse 0/1 matrix."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import InputError
from vdsh.text.word_counter import is_missing


class Labels(NamedTuple):
    """Which document carries which label."""

    # (n_docs, n_labels), uint8: 1 where the document has the label; an unlabelled one has an empty
    # row. Sparse, because every document may have a label of its own.
    sparse: csr_array
    known: NDArray[np.bool_]  # (n_docs,): False where the labels were missing
    names: list[str]  # the label of each column

    @property
    def matrix(self) -> NDArray[np.uint8]:
        """The same with all its zeros; for few documents or few labels."""
        dense: NDArray[np.uint8] = self.sparse.toarray()
        return dense

    def take(self, rows: NDArray[np.intp | np.bool_]) -> "Labels":
        """Keep some documents."""
        return Labels(self.sparse[rows], self.known[rows], self.names)

    def only(self, columns: NDArray[np.intp]) -> "Labels":
        """Keep some labels."""
        names = [self.names[j] for j in columns]
        return Labels(csr_array(self.sparse[:, columns]), self.known, names)

    def frequencies(self) -> NDArray[np.intp]:
        """Count the documents that have each label."""
        return np.bincount(self.sparse.indices, minlength=len(self.names))


def in_common(one: Labels, two: Labels) -> tuple[Labels, Labels]:
    """Leave out labels that documents of one side alone have: no two documents share them."""
    columns = np.flatnonzero(np.minimum(one.frequencies(), two.frequencies()))
    columns = columns if len(columns) else np.arange(min(1, len(one.names)))
    return one.only(columns), two.only(columns)


def read_labels(labels: Any, names: Sequence[str] | None = None) -> Labels:
    """Turn labels, or a 0/1 array of shape (n_docs, n_labels), into a sparse 0/1 matrix.

    For each document there is a label, a list of labels, or None when its labels are not known; NaN
    and what pandas has for missing values mean the same. An empty list says that the document has
    none of the labels. `names` are the columns, in this order, labels not among them are left out;
    without it, the sorted labels that occur.

    >>> read_labels(["b", ["a", "b"], None]).matrix
    array([[0, 1],
           [1, 1],
           [0, 0]], dtype=uint8)
    """
    array = np.asarray(labels) if hasattr(labels, "__array__") else None
    if array is not None and array.ndim == 2:
        return _from_indicator(array, names)
    # a column of whole numbers with gaps is one of floats as an array, but not as a list
    given = labels if hasattr(labels, "tolist") or array is None else array
    rows = [_as_list(label) for label in (given.tolist() if array is not None else given)]
    known = np.array([row is not None for row in rows], bool)
    every = list(chain.from_iterable(row for row in rows if row))
    names = sorted(set(every)) if names is None else list(names)
    column = {name: j for j, name in enumerate(names)}
    i = np.repeat(np.arange(len(rows)), [len(row or ()) for row in rows])
    j = np.array([column.get(name, -1) for name in every], np.intp)
    places, shape = (i[j >= 0], j[j >= 0]), (len(rows), len(names))
    matrix = csr_array((np.ones(len(places[0]), np.uint8), places), shape=shape)
    matrix.data[:] = 1  # a label that a document names twice
    return Labels(matrix, known, names)


def _from_indicator(array: NDArray[Any], names: Sequence[str] | None) -> Labels:
    columns = [str(j) for j in range(array.shape[1])] if names is None else list(names)
    gaps = array.dtype == object and any(map(is_missing, array.flat))
    if gaps or not np.isin(array, (0, 1)).all() or len(columns) != array.shape[1]:
        raise InputError(
            "Two-dimensional labels must be a 0/1 matrix with one column per label "
            f"({len(columns)}), without gaps. Got shape {array.shape}."
        )
    return Labels(csr_array(array.astype(np.uint8)), np.ones(len(array), bool), columns)


def _as_list(label: Any) -> Sequence[str] | None:
    """Settle one document's labels: None, one label or several."""
    if isinstance(label, Iterable) and not isinstance(label, str | bytes):
        names = list(label)
        kept = [str(name) for name in names if not is_missing(name)]
        return kept if kept or not names else None
    return None if is_missing(label) else [str(label)]
