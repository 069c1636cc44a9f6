"""One form for equal matrices of counts."""

import numpy as np
from scipy.sparse import csr_array

_NOTHING = 1e-30  # a smaller count is none: one over it would be more than a float can hold


def canonical(counts: csr_array) -> csr_array:
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
