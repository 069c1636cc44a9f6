"""The kernel of `related`: which candidates are most like a document, by words and by place."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]


@kernel()
def most_like(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Floats,
    places: Floats,
    candidates: Ids,
    first: int,
    chosen: Ids,
    likeness: Floats,
) -> None:
    """Fill `chosen` and `likeness` of the documents from row `first` on."""
    n_docs, k = len(places), chosen.shape[1]
    row_words = np.zeros(indices.max() + 1 if len(indices) else 1, np.float32)
    seen_by = np.full(n_docs, -1, np.int32)
    for row in range(first, first + len(chosen)):
        for entry in range(indptr[row], indptr[row + 1]):
            row_words[indices[entry]] = data[entry]
        seen_by[row] = row
        best, values, found = chosen[row - first], likeness[row - first], 0
        for other in candidates[row - first]:
            if seen_by[other] == row:
                continue
            seen_by[other] = row
            value = np.float32(0)
            for entry in range(indptr[other], indptr[other + 1]):
                value += data[entry] * row_words[indices[entry]]
            for i in range(places.shape[1]):
                value += places[row, i] * places[other, i]
            if found == k and (k == 0 or value <= values[k - 1]):
                continue
            at = found if found < k else k - 1
            while at > 0 and values[at - 1] < value:
                values[at], best[at] = values[at - 1], best[at - 1]
                at -= 1
            values[at], best[at] = value, other
            found = min(found + 1, k)
        for entry in range(indptr[row], indptr[row + 1]):
            row_words[indices[entry]] = 0
