"""Word counts as three arrays: what a sparse matrix holds, without loading scipy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Sparse(Protocol):
    """What `Counts` and scipy's `csr_array` have in common."""

    @property
    def data(self) -> NDArray[Any]:
        """The values, row after row."""

    @property
    def indices(self) -> NDArray[Any]:
        """The column of each value."""

    @property
    def indptr(self) -> NDArray[Any]:
        """Where each row begins, and the end."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""


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
        found: NDArray[np.bool_] = np.diff(self.indptr) == 0
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
