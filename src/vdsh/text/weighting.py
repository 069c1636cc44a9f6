"""Term weighting: counts to the encoder's input (section 5.5 of the paper)."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import InputError
from vdsh.text.counts import Counts, Sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FIRST = np.zeros(1, np.int64)
WEIGHTINGS = ("tfidf", "tf", "binary", "given")


def inverse_document_frequency(counts: Sparse) -> NDArray[np.float32]:
    """Compute ln((1 + n) / (1 + df)) + 1 for each term.

    The smoothed form of Manning, Raghavan and Schuetze, "Introduction to Information Retrieval"
    (2008), section 6.2, as scikit-learn has it: a term that every document has still counts.
    """
    n_docs, n_terms = counts.shape
    df = np.bincount(counts.indices[counts.data != 0], minlength=n_terms)
    return (np.log((1 + n_docs) / (1 + df)) + 1).astype(np.float32)


def weigh(counts: Sparse, weighting: str, idf: NDArray[np.float32] | None = None) -> "csr_array":
    """Weigh counts and scale each row to unit length; `given` leaves the values as they are.

    Parameters
    ----------
    counts : csr_array of shape (n_docs, n_terms)
    weighting : {"tfidf", "tf", "binary", "given"}
    idf : ndarray of shape (n_terms,)
        From `inverse_document_frequency`; needed for `tfidf`.
    """
    values = weights(counts, weighting, idf)
    return Counts(values, counts.indices, counts.indptr, counts.shape).to_csr()


def weights(
    counts: Sparse, weighting: str, idf: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Compute the values of `weigh` alone: its rows and columns are those of the counts."""
    if weighting not in WEIGHTINGS:
        raise InputError(f"weighting must be one of {', '.join(WEIGHTINGS)}. Got {weighting!r}.")
    values = counts.data.astype(np.float32)
    if weighting == "given":
        return values
    if weighting == "binary":
        values = (values != 0).astype(np.float32)
    elif weighting == "tfidf":
        assert idf is not None
        values *= idf[counts.indices]
    values *= _inverse_lengths(values, counts.indptr)
    return values


def _inverse_lengths(
    values: NDArray[np.float32], indptr: NDArray[np.int32]
) -> NDArray[np.float32] | np.float32:
    """Give each entry 1 over its row's Euclidean length."""
    if len(indptr) == 2 and len(values):  # a single text need not wait for what batches need
        square = np.add.reduceat(np.square(values, dtype=np.float64), _FIRST)[0]
        return np.float32(1 / math.sqrt(square or 1.0))
    sizes = np.diff(indptr)
    # float64 running sums keep a row's result independent of the rows around it
    squares = np.zeros(len(sizes), np.float64)
    filled = sizes > 0
    if filled.any():
        squares[filled] = np.add.reduceat(np.square(values, dtype=np.float64), indptr[:-1][filled])
    lengths = np.sqrt(squares)
    lengths[lengths == 0] = 1
    return np.repeat((1 / lengths).astype(np.float32), sizes)
