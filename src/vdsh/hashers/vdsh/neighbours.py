"""The documents most like each training document by the cosine of sparse rows.

An inverted index is walked: only documents that share a term are touched. On corpora of some
thousand documents all terms are used and the answer is exact. On larger ones the work is bounded:
a document asks with its heaviest terms until their lists hold `work / n_docs` entries, which
leaves out the common, light terms that hardly move the cosine. The lists hold at most `MOST_LISTED`
documents: with all of ten million, a single list would be more than the work allows.
"""

from collections.abc import Callable

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


def parts(matrix: csr_array) -> tuple[Ids, Ids, Floats]:
    """Give the arrays of a sparse matrix, as kernels take it."""
    return matrix.indptr, matrix.indices, matrix.data


def nearest(
    inputs: csr_array, k: int, *, work: float = _WORK, progress: Show | None = None
) -> tuple[Ids, Floats]:
    """Find the k documents most similar to each by cosine, itself left out: (n_docs, k) each.

    Nearest first, equal ones by row; a document that shares a term with fewer than k others has
    its own row, and the cosine 0, in the places left. Rows of `inputs` may have any length. `work`
    bounds the list entries to look at; of more than 100,000 documents, a random sample is listed.
    `progress` is called with the finished share.
    """
    from vdsh.hashers.vdsh.related_kernels import fill_nearest

    n_docs, unit = inputs.shape[0], weigh(inputs, "tf")
    k = max(0, min(k, n_docs - 1))
    listed = sample(n_docs, MOST_LISTED).astype(np.int32)
    lists = csr_array(unit[listed].T)
    lists.indices = listed[lists.indices]
    limit = int(work / max(n_docs, 1))

    ids = np.repeat(np.arange(n_docs, dtype=np.int32)[:, None], k, axis=1)
    cosines = np.zeros((n_docs, k), np.float32)

    def block(first: int) -> None:
        rows = slice(first, first + _BLOCK)
        fill_nearest(parts(unit), parts(lists), limit, first, ids[rows], cosines[rows])

    threads = available_threads()
    starts = range(0, n_docs, _BLOCK)
    for group in (starts[i : i + 4 * threads] for i in range(0, len(starts), 4 * threads)):
        in_threads(block, group, threads)
        if progress:
            progress(min(group[-1] + _BLOCK, n_docs) / n_docs)
    return ids, cosines
