"""The nearest training documents of each training document, by the cosine of sparse rows.

An inverted index is walked: only documents that share a term are touched. On corpora of some ten
thousand documents all terms are used and the answer is exact. On larger ones the work is bounded:
a document asks with its heaviest terms until their lists hold `_WORK / n_docs` entries, which
leaves out the common, light terms that hardly move the cosine.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.jit import available_threads, in_threads, kernel
from vdsh.text.weighting import weigh

_WORK = 1e11  # list entries to look at in all: a few minutes on two cores
_BLOCK = 1024  # documents a task

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]


def nearest(
    inputs: csr_array,
    k: int,
    *,
    work: float = _WORK,
    progress: Callable[[float], None] | None = None,
) -> tuple[Ids, Floats]:
    """Find the k documents most similar to each document, itself left out.

    Parameters
    ----------
    inputs : csr_array of shape (n_docs, n_terms)
        Weighted terms; rows need not have unit length.
    k : int
        How many; with fewer other documents, all of them.
    work : float
        Bound on the list entries to look at.
    progress : callable, optional
        Called with the finished share.

    Returns
    -------
    ids : int32 ndarray of shape (n_docs, k)
        Nearest first, equal ones by row; a document that shares a term with fewer than k others
        has its own row in the places left.
    cosines : float32 ndarray of shape (n_docs, k)
        0 in those places.
    """
    n_docs = inputs.shape[0]
    unit = weigh(inputs, "tf")  # to unit length
    lists = csr_array(unit.T)
    k = max(0, min(k, n_docs - 1))
    ids = np.repeat(np.arange(n_docs, dtype=np.int32)[:, None], k, axis=1)
    cosines = np.zeros((n_docs, k), np.float32)
    limit = int(work / max(n_docs, 1))

    def block(first: int) -> int:
        last = min(first + _BLOCK, n_docs)
        _nearest(
            unit.indptr, unit.indices, unit.data, lists.indptr, lists.indices, lists.data,
            limit, first, last, ids, cosines,
        )  # fmt: skip
        return last

    threads = available_threads()
    starts = range(0, n_docs, _BLOCK)
    for group in (starts[i : i + 4 * threads] for i in range(0, len(starts), 4 * threads)):
        done = in_threads(block, group, threads)
        if progress:
            progress(done[-1] / n_docs)
    return ids, cosines


@kernel()
def _nearest(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Floats,
    list_indptr: NDArray[np.int32],
    list_indices: NDArray[np.int32],
    list_data: Floats,
    limit: int,
    first: int,
    last: int,
    ids: Ids,
    cosines: Floats,
) -> None:
    """Fill the rows `first` to `last` of `ids` and `cosines`."""
    n_docs, k = ids.shape
    sums = np.zeros(n_docs, np.float32)
    touched = np.empty(n_docs, np.int32)
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        order = np.argsort(-data[start:stop])
        n_touched, walked = 0, 0
        for place in order:
            term, weight = indices[start + place], data[start + place]
            walked += list_indptr[term + 1] - list_indptr[term]
            if walked > limit and n_touched > k:
                break
            for entry in range(list_indptr[term], list_indptr[term + 1]):
                other = list_indices[entry]
                if sums[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                sums[other] += weight * list_data[entry]
        found = 0
        for i in range(n_touched):
            other, value = touched[i], sums[touched[i]]
            sums[other] = 0
            if other == row or value <= 0:
                continue
            if found == k and (k == 0 or value < cosines[row, k - 1]):
                continue
            if found == k and value == cosines[row, k - 1] and other > ids[row, k - 1]:
                continue
            at = found if found < k else k - 1
            while at > 0 and (
                cosines[row, at - 1] < value
                or (cosines[row, at - 1] == value and ids[row, at - 1] > other)
            ):
                cosines[row, at], ids[row, at] = cosines[row, at - 1], ids[row, at - 1]
                at -= 1
            cosines[row, at], ids[row, at] = value, other
            found = min(found + 1, k)
