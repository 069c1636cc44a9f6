"""Kernels of related documents: the nearest by cosine, the most alike of candidates, products."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Rows = tuple[Ids, Ids, Floats]  # a sparse matrix: indptr, indices and data


@kernel()
def fill_nearest(
    rows: Rows, lists: Rows, limit: int, first: int, ids: Ids, cosines: Floats
) -> None:
    """Fill `ids` and `cosines` of the documents from row `first` on."""
    indptr, indices, data = rows
    list_indptr, list_indices, list_data = lists
    n_docs, k = len(indptr) - 1, ids.shape[1]
    sums = np.empty(n_docs, np.float32)
    for row in range(first, first + len(ids)):
        start, stop = indptr[row], indptr[row + 1]
        order = np.argsort(-data[start:stop])
        for other in range(n_docs):  # quicker than to remember which were touched
            sums[other] = 0
        walked, longest = 0, 0
        for place in order:
            term, weight = indices[start + place], data[start + place]
            begin, end = list_indptr[term], list_indptr[term + 1]
            walked += end - begin
            if walked > limit and longest > k:
                break
            longest = max(longest, end - begin)
            for entry in range(begin, end):
                sums[list_indices[entry]] += weight * list_data[entry]
        sums[row] = 0
        best, values = ids[row - first], cosines[row - first]
        found, least = 0, np.float32(0 if k else np.inf)
        for other in range(n_docs):
            value = sums[other]
            if value <= least:
                continue
            at = found if found < k else k - 1
            while at > 0 and values[at - 1] < value:
                values[at], best[at] = values[at - 1], best[at - 1]
                at -= 1
            values[at], best[at] = value, other
            found = min(found + 1, k)
            if found == k:
                least = values[k - 1]


@kernel(fastmath=True)  # sums of places by eights
def most_like(
    words: Rows, places: Floats, candidates: Ids, first: int, chosen: Ids, likeness: Floats
) -> None:
    """Fill `chosen` and `likeness` of the documents from row `first` on.

    Rows of words have the length 1: where places are so far apart that the best of words could
    not help, these are not looked at.
    """
    indptr, indices, data = words
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
            for i in range(places.shape[1]):
                value += places[row, i] * places[other, i]
            if found == k and k > 0 and value + np.float32(1.001) < values[k - 1]:
                continue
            for entry in range(indptr[other], indptr[other + 1]):
                value += data[entry] * row_words[indices[entry]]
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


@kernel()
def add_products(matrix: Rows, dense: Floats, first: int, out: Floats) -> None:
    """Add to `out` the rows from `first` on of a sparse matrix times a dense one."""
    indptr, indices, data = matrix
    for row in range(len(out)):
        for entry in range(indptr[first + row], indptr[first + row + 1]):
            value, column = data[entry], indices[entry]
            for i in range(dense.shape[1]):
                out[row, i] += value * dense[column, i]
