"""Documents to learn from, or to validate with, as a hasher sees them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.labels import Labels


class Examples(NamedTuple):
    """Documents to learn from, or to validate with, as a hasher sees them."""

    inputs: csr_array  # (n_docs, n_terms): weighted terms, the `d` of the paper
    counts: csr_array  # (n_docs, n_terms): the same documents as they were given
    labels: Labels | None
    # (n_docs, n_dimensions): what else is known of the documents in training.
    vectors: NDArray[np.float32] | None = None
