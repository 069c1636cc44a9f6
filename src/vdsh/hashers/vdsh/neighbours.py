"""The documents most like each training document by the cosine of sparse rows.

An inverted index is walked: only documents that share a term are touched. On corpora of some ten
thousand documents all terms are used and the answer is exact. On larger ones the work is bounded:
a document asks with its heaviest terms until their lists hold `_WORK / n_docs` entries, which
leaves out the common, light terms that hardly move the cosine.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.jit import available_threads, in_threads, kernel
from vdsh.text.weighting import weigh

_WORK = 1e11  # list entries to look at in all: a few minutes on two cores
_BLOCK = 1024  # documents a task

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Show = Callable[[float], None]


def nearest(
    inputs: csr_array, k: int, *, work: float = _WORK, progress: Show | None = None
) -> tuple[Ids, Floats]:
    """Find the k documents most similar to each document by cosine, itself left out.

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
    k = _at_most(k, inputs.shape[0])
    blocks = list(_walk(weigh(inputs, "tf"), k, work, progress))  # to unit length
    return np.concatenate([b.ids for b in blocks]), np.concatenate([b.cosines for b in blocks])


class _Found(NamedTuple):
    """The nearest of a block of documents that begins at row `first`."""

    first: int
    ids: Ids
    cosines: Floats


def _at_most(k: int, n_docs: int) -> int:
    return max(0, min(k, n_docs - 1))


def _walk(unit: csr_array, k: int, work: float, progress: Show | None) -> Iterator[_Found]:
    """Go through all documents, rows of unit length, a block at a time and in order."""
    n_docs = unit.shape[0]
    lists = csr_array(unit.T)
    limit = int(work / max(n_docs, 1))

    def block(first: int) -> _Found:
        rows = np.arange(first, min(first + _BLOCK, n_docs), dtype=np.int32)
        ids = np.repeat(rows[:, None], k, axis=1)
        cosines = np.zeros((len(rows), k), np.float32)
        _nearest(
            unit.indptr, unit.indices, unit.data, lists.indptr, lists.indices, lists.data,
            limit, first, ids, cosines,
        )  # fmt: skip
        return _Found(first, ids, cosines)

    threads = available_threads()
    starts = range(0, n_docs, _BLOCK)
    for group in (starts[i : i + 4 * threads] for i in range(0, len(starts), 4 * threads)):
        yield from in_threads(block, group, threads)
        if progress:
            progress(min(group[-1] + _BLOCK, n_docs) / n_docs)


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
    ids: Ids,
    cosines: Floats,
) -> None:
    """Fill `ids` and `cosines` of the documents from row `first` on."""
    n_docs, k = len(indptr) - 1, ids.shape[1]
    sums = np.empty(n_docs, np.float32)
    touched = np.empty(n_docs, np.int32)
    seen_by = np.full(n_docs, -1, np.int32)  # no sum tells this: weights may be 0 or cancel out
    for row in range(first, first + len(ids)):
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
                if seen_by[other] != row:
                    seen_by[other] = row
                    sums[other] = 0
                    touched[n_touched] = other
                    n_touched += 1
                sums[other] += weight * list_data[entry]
        best, values = ids[row - first], cosines[row - first]
        found = 0
        for i in range(n_touched):
            other, value = touched[i], sums[touched[i]]
            if other == row or value <= 0:
                continue
            if found == k and (k == 0 or value < values[k - 1]):
                continue
            if found == k and value == values[k - 1] and other > best[k - 1]:
                continue
            at = found if found < k else k - 1
            while at > 0 and (
                values[at - 1] < value or (values[at - 1] == value and best[at - 1] > other)
            ):
                values[at], best[at] = values[at - 1], best[at - 1]
                at -= 1
            values[at], best[at] = value, other
            found = min(found + 1, k)
