"""Word counts as three arrays: what a sparse matrix holds, without loading scipy."""

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
        return int((np.diff(self.indptr) == 0).sum())

    def to_csr(self) -> "csr_array":
        """Make a scipy matrix of the same arrays."""
        return to_csr(self)


def to_csr(counts: Sparse) -> "csr_array":
    """Make a scipy matrix of the same arrays."""
    from scipy.sparse import csr_array

    return csr_array((counts.data, counts.indices, counts.indptr), shape=counts.shape)
