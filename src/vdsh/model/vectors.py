"""Vectors as people give them: one row a document, checked, and as the rows that encoders take."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import InputError
from vdsh.text.counts import Counts


def check_vectors(
    vectors: Any, n_docs: int | None = None, n_dimensions: int | None = None, *, zeros: bool = False
) -> NDArray[np.float32]:
    """Return vectors as float32 of shape (n_docs, n_dimensions), or say what is wrong with them.

    `zeros` says whether a row may be zero.

    >>> check_vectors([[1, 0], [0.5, 2]], 2).dtype
    dtype('float32')
    """
    try:
        rows = np.asarray(vectors)
        if rows.dtype.kind not in "fiu":
            rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "vectors must be numbers, not sparse, with one row a document and all of one length."
        ) from None
    if rows.ndim != 2 or not rows.shape[1]:
        shape = " x ".join(str(size) for size in rows.shape) or "one number"
        raise InputError(f"vectors must have one row a document and a column or more. Got {shape}.")
    if n_docs is not None and len(rows) != n_docs:
        raise InputError(
            f"Got {n_docs:,} documents but {len(rows):,} vectors. Give one per document, in order."
        )
    if n_dimensions is not None and rows.shape[1] != n_dimensions:
        raise InputError(
            f"The model takes vectors of {n_dimensions:,} dimensions. Got {rows.shape[1]:,}. Use "
            "the embedding model that it was trained with."
        )
    with np.errstate(over="ignore"):  # said below
        rows = rows.astype(np.float32)
    _check_rows(~np.isfinite(rows).all(axis=1), "has a value that is not a finite number")
    if not zeros:
        _check_rows(~rows.any(axis=1), "is zero, which is near to nothing")
    return rows


def as_rows(vectors: NDArray[np.float32]) -> Counts:
    """Write vectors down as rows.

    >>> as_rows(np.array([[0.5, 0.0]], np.float32)).indices
    array([0, 1], dtype=int32)
    """
    n_docs, n_dimensions = vectors.shape
    columns = np.tile(np.arange(n_dimensions, dtype=np.int32), n_docs)
    kind = np.int64 if vectors.size > 2**31 - 1 else np.int32
    starts = np.arange(0, vectors.size + 1, n_dimensions, dtype=kind)
    return Counts(np.ascontiguousarray(vectors).ravel(), columns, starts, vectors.shape)


def _check_rows(marked: Any, what: str) -> None:
    bad = np.asarray(marked)
    if bad.any():
        first, n_more = int(bad.argmax()) + 1, int(bad.sum()) - 1
        more = f", and {n_more:,} more" if n_more else ""
        raise InputError(
            f"Vector {first:,} {what}{more}. Leave such documents out, or the vectors."
        )
