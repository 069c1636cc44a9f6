"""Word counts as three arrays, and their weights: the encoder's input (section 5.5 of the paper).

The arrays are what a sparse matrix holds, without loading scipy.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FIRST = np.zeros(1, np.int64)
WEIGHTINGS = ("tfidf", "sqrt-tfidf", "damped-tfidf", "tf", "binary", "given")
# Those that need document frequencies.
WITH_FREQUENCIES = ("tfidf", "sqrt-tfidf", "damped-tfidf")
# Different words in a document up to which "damped-tfidf" takes counts as they are, and from which
# on it takes their square roots. A word that a snippet of ten words repeats is its topic; in a long
# document repeats say less (validation: +0.01 on snippets, roots +0.005 on 20 Newsgroups).
_UNDAMPED, _FULLY_DAMPED = 10, 40
_NOTHING = 1e-30  # a smaller count is none: one over it would be more than a float can hold


class Counts(NamedTuple):
    """Documents as sparse rows, in the terms of `scipy.sparse.csr_array`."""

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[Any]
    shape: tuple[int, int]

    @property
    def n_empty(self) -> int:
        """How many documents have no known word."""
        return int(self.empty.sum())

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which documents have no known word."""
        found: NDArray[np.bool_] = self.indptr[1:] == self.indptr[:-1]
        return found

    def row(self, i: int) -> "Counts":
        """Return one document."""
        own = slice(self.indptr[i], self.indptr[i + 1])
        data = self.data[own]
        indptr = np.array([0, len(data)], self.indptr.dtype)
        return Counts(data, self.indices[own], indptr, (1, self.shape[1]))

    def to_csr(self) -> "csr_array":
        """Make a scipy matrix of the same arrays."""
        return to_csr(self)


Sparse: TypeAlias = "Counts | csr_array"


def stack(parts: Sequence[Counts]) -> Counts:
    """Put the rows of all parts, of which there must be one, under each other."""
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(parts[0].indptr.dtype)
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    return Counts(data, indices, indptr, (len(lengths), parts[0].shape[1]))


def to_csr(counts: Sparse) -> "csr_array":
    """Make a scipy matrix of the same arrays."""
    from scipy.sparse import csr_array

    return csr_array((counts.data, counts.indices, counts.indptr), shape=counts.shape)


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
    weighting : {"tfidf", "sqrt-tfidf", "damped-tfidf", "tf", "binary", "given"}
        "sqrt-tfidf" takes the square root of each count. "damped-tfidf" does so in documents of 40
        different words and more, and takes counts as they are in documents of up to 10; in between
        the exponent is in between.
    idf : ndarray of shape (n_terms,)
        From `inverse_document_frequency`; needed for those two.
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
    elif weighting in WITH_FREQUENCIES:
        assert idf is not None
        if weighting == "sqrt-tfidf":
            values = np.sqrt(values)
        elif weighting == "damped-tfidf":
            values = _damp(values, np.diff(counts.indptr))
        values = values * idf[counts.indices]
    values *= _inverse_lengths(values, counts.indptr)
    return values


def _damp(values: NDArray[np.float32], sizes: NDArray[Any]) -> NDArray[np.float32]:
    """Raise counts to the power 1 in short documents, 1/2 in long ones; `sizes` are their words."""
    share = np.clip((sizes - _UNDAMPED) / (_FULLY_DAMPED - _UNDAMPED), 0, 1)
    exponents = np.repeat(1 - 0.5 * share, sizes)
    damped = values.copy()
    # Most counts are 1. Powers in float64 round to the same float32 alone and among others.
    repeated = values != 1
    damped[repeated] = values[repeated].astype(np.float64) ** exponents[repeated]
    return damped


def _inverse_lengths(
    values: NDArray[np.float32], indptr: NDArray[np.int32]
) -> NDArray[np.float32] | np.float32:
    """Give each entry 1 over its row's Euclidean length."""
    if len(indptr) == 2 and len(values):  # a single text: a quarter of the time to encode it
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


def canonical(counts: "csr_array") -> "csr_array":
    """Sort entries, add up double ones and drop stored zeros: equal matrices become the same.

    A matrix that needs none of this stays as it is; any other is copied, for it is the caller's.
    """
    if counts.has_canonical_format and (np.abs(counts.data) > _NOTHING).all():
        return counts
    counts = counts.copy()
    counts.sum_duplicates()
    counts.data[np.abs(counts.data) <= _NOTHING] = 0
    counts.eliminate_zeros()
    return counts


def halves(counts: "csr_array") -> "tuple[csr_array, csr_array]":
    """Cut documents into halves: occurrences of words go to one and the other by turns.

    Documents too short for two halves are left out.
    """
    ends = np.cumsum(counts.data, dtype=np.float64)
    second = np.minimum(ends // 2 - (ends - counts.data) // 2, counts.data)  # some are fractions
    second = second.astype(counts.data.dtype)
    one, two = (
        to_csr(Counts(part, counts.indices, counts.indptr, counts.shape))
        for part in (counts.data - second, second)
    )
    whole = np.flatnonzero((one.sum(axis=1) > 0) & (two.sum(axis=1) > 0))
    one, two = one[whole], two[whole]
    one.eliminate_zeros()
    two.eliminate_zeros()
    return one, two
