"""Documents to learn from, or to validate with, as a hasher sees them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.labels import Labels
from vdsh.text.counts import Counts


class Examples(NamedTuple):
    """Documents to learn from, or to validate with, as a hasher sees them.

    Attributes
    ----------
    inputs : csr_array of shape (n_docs, n_terms)
        Weighted terms, the `d` of the paper.
    counts : csr_array of shape (n_docs, n_terms)
        The same documents as they were given.
    labels : Labels or None
    vectors : float32 ndarray of shape (n_docs, n_dimensions) or None
        What else is known of the documents in training.
    seen : float32 ndarray of shape (n_docs, n_dimensions) or None
        Vectors of unit length that the encoder sees beside words.
    """

    inputs: csr_array
    counts: csr_array
    labels: Labels | None
    vectors: NDArray[np.float32] | None = None
    seen: NDArray[np.float32] | None = None

    def encoder_inputs(self, rows: Any = slice(None)) -> Counts:
        """Return what the encoder makes scores of."""
        some = self.inputs[rows]
        vectors = None if self.seen is None else self.seen[rows]
        return Counts(some.data, some.indices, some.indptr, some.shape, vectors)
