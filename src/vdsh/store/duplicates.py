"""Near-duplicates by leader clustering over distinct codes.

Documents with one code always fall into one group, because a leader takes everything near its
code that is in no group yet. So codes are grouped instead of documents, each at its lowest id.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, to_words
from vdsh.search import RowHits, RowIndex
from vdsh.store.base import Duplicates

MANY_HITS = 2_000_000  # aimed at for one batch of queries: some tens of megabytes
MOST_QUERIES = 2048

Numbers = NDArray[np.int64]


def find_duplicates(ids: Sequence[str], codes: Codes, radius: int) -> Iterator[Duplicates]:
    """Group documents within `radius` of a leader, in the order of ids.

    Parameters
    ----------
    ids : sequence of str
        In ascending order.
    codes : ndarray of uint8 of shape (n_docs, n_bytes)
    radius : int
    """
    if not ids:
        return
    first, members, ends = _by_code(codes)
    sizes = np.diff(ends, prepend=0)
    groups = _lead(codes[first], radius) if radius else _alone(np.flatnonzero(sizes > 1))
    for numbers, distances in groups:
        if len(numbers) > 1 or sizes[numbers[0]] > 1:
            rows = [members[ends[n] - sizes[n] : ends[n]] for n in numbers.tolist()]
            yield _group(ids, np.concatenate(rows), np.repeat(distances, sizes[numbers]))


def _by_code(codes: Codes) -> tuple[Numbers, Numbers, Numbers]:
    """Group rows by code, codes in the order of their first rows.

    Returns
    -------
    first : ndarray of shape (n_codes,)
        The first row of each code, ascending.
    members, ends : ndarray of shape (n_docs,) and (n_codes,)
        All rows, code by code, and where those of each code end.
    """
    words = to_words(codes)
    values = words[:, 0] if words.shape[1] == 1 else words
    _, first, inverse = np.unique(values, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    numbers = rank[inverse.reshape(-1)]
    ends = np.cumsum(np.bincount(numbers, minlength=len(order)))
    return first[order], np.argsort(numbers, kind="stable"), ends


def _alone(numbers: Numbers) -> Iterator[RowHits]:
    for number in numbers:
        yield RowHits(np.array([number]), np.zeros(1, np.int32))


def _lead(codes: Codes, radius: int) -> Iterator[RowHits]:
    """Yield the numbers and distances of the codes in each group, the leader first."""
    index = RowIndex(codes)
    free = np.ones(len(codes), np.bool_)
    first, n_queries = 0, 16
    while first < len(codes):
        leaders = first + np.flatnonzero(free[first : first + 8 * n_queries])[:n_queries]
        if not len(leaders):
            first += 8 * n_queries
            continue
        found = index.within(codes[leaders], radius, allowed=free)
        n_hits = sum(len(hits.rows) for hits in found)
        for leader, (numbers, distances) in zip(leaders, found, strict=True):
            if free[leader]:
                still = free[numbers]
                free[numbers] = False
                yield RowHits(numbers[still], distances[still])
        first = int(leaders[-1]) + 1
        n_queries = max(1, min(MOST_QUERIES, 2 * n_queries, MANY_HITS * n_queries // (n_hits + 1)))


def _group(ids: Sequence[str], rows: Numbers, distances: NDArray[np.int32]) -> Duplicates:
    order = np.lexsort((rows, distances))
    rows, distances = rows[order], distances[order]
    keep = int(np.argmin(rows))  # the leader: nothing free has a lower id
    pairs = zip(rows.tolist(), distances.tolist(), strict=True)
    others = [(ids[row], distance) for i, (row, distance) in enumerate(pairs) if i != keep]
    return Duplicates(ids[rows[keep]], others)
