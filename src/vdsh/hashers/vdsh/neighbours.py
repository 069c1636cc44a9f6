"""The documents most like each training document by the cosine of sparse rows.

An inverted index is walked: only documents that share a term are touched. On corpora of some
thousand documents all terms are used and the answer is exact. On larger ones the work is bounded:
a document asks with its heaviest terms until their lists hold `work / n_docs` entries, which
leaves out the common, light terms that hardly move the cosine. The lists hold at most `MOST_LISTED`
documents: with all of ten million, a single list would be more than the work allows.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.jit import available_threads, in_threads
from vdsh.model.health import sample
from vdsh.text.counts import weigh

MOST_LISTED = 100_000  # documents among which neighbours are looked for
_WORK = 1e11  # list entries to look at in all: a few minutes on two cores
_BLOCK = 1024  # documents a task

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Show = Callable[[float], None]


def nearest(
    inputs: csr_array, k: int, *, work: float = _WORK, progress: Show | None = None
) -> tuple[Ids, Floats]:
    """Find the k documents most similar to each document by cosine, itself left out.

    Of more than 100,000 documents, they are found among a random sample of so many.

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
    k = max(0, min(k, inputs.shape[0] - 1))
    blocks = _walk(weigh(inputs, "tf"), k, work, progress)  # to unit length
    ids, cosines = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return ids, cosines


def _walk(
    unit: csr_array, k: int, work: float, progress: Show | None
) -> Iterator[tuple[Ids, Floats]]:
    """Go through all documents, rows of unit length, a block at a time and in order."""
    from vdsh.hashers.vdsh.related_kernels import fill_nearest

    n_docs = unit.shape[0]
    listed = sample(n_docs, MOST_LISTED).astype(np.int32)
    lists = csr_array(unit[listed].T)
    lists.indices = listed[lists.indices]
    limit = int(work / max(n_docs, 1))

    def block(first: int) -> tuple[Ids, Floats]:
        rows = np.arange(first, min(first + _BLOCK, n_docs), dtype=np.int32)
        ids = np.repeat(rows[:, None], k, axis=1)
        cosines = np.zeros((len(rows), k), np.float32)
        fill_nearest(
            unit.indptr, unit.indices, unit.data, lists.indptr, lists.indices, lists.data,
            limit, first, ids, cosines,
        )  # fmt: skip
        return ids, cosines

    threads = available_threads()
    starts = range(0, n_docs, _BLOCK)
    for group in (starts[i : i + 4 * threads] for i in range(0, len(starts), 4 * threads)):
        yield from in_threads(block, group, threads)
        if progress:
            progress(min(group[-1] + _BLOCK, n_docs) / n_docs)
