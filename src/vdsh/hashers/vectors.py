"""Vectors that teach: one row a document, to say in training which documents are alike."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import InputError


def check_vectors(vectors: Any, n_docs: int) -> NDArray[np.float32]:
    """Return vectors as float32 of shape (n_docs, n_dimensions), or say what is wrong with them.

    >>> check_vectors([[1, 0], [0.5, 2]], 2).dtype
    dtype('float32')
    """
    try:
        rows = np.asarray(vectors)
        if rows.dtype.kind not in "fiu":
            rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "vectors must be an array of numbers, one row a document and all of one length."
        ) from None
    if rows.ndim != 2 or not rows.shape[1]:
        shape = " x ".join(str(size) for size in rows.shape) or "one number"
        raise InputError(f"vectors must have one row a document and a column or more. Got {shape}.")
    if len(rows) != n_docs:
        raise InputError(
            f"Got {n_docs:,} documents but {len(rows):,} vectors. Give one per document, in order."
        )
    with np.errstate(over="ignore"):  # told below
        rows = rows.astype(np.float32)
    _check_rows(~np.isfinite(rows).all(axis=1), "has a value that is no finite number")
    _check_rows(~rows.any(axis=1), "is zero, which is near to nothing")
    return rows


def _check_rows(marked: Any, what: str) -> None:
    bad = np.asarray(marked)
    if bad.any():
        first, n_more = int(bad.argmax()) + 1, int(bad.sum()) - 1
        more = f", and {n_more:,} more" if n_more else ""
        raise InputError(
            f"Vector {first:,} {what}{more}. Leave such documents out, or the vectors."
        )
