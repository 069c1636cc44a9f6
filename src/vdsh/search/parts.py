"""What a search is told and what it answers.

A hit within a radius travels as one integer, `query << 51 | distance << 40 | position`, so that
sorting the integers sorts the hits.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes

QUERY_SHIFT, DISTANCE_SHIFT = 51, 40
MAX_QUERIES = 1 << (63 - QUERY_SHIFT)  # so many queries can be told apart
PLACE = (1 << DISTANCE_SHIFT) - 1
DISTANCE = (1 << (QUERY_SHIFT - DISTANCE_SHIFT)) - 1

Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]
Found = NDArray[np.int64]


class Part(NamedTuple):
    """Positions to scan, and the rows that lie at each of them.

    Position p holds row `base + p`; or row `members[p]`, where there are members; or, where there
    are offsets, `members[offsets[p]:offsets[p + 1]]`, in the order that breaks ties.
    """

    data: Codes
    start: int
    stop: int
    base: int
    offsets: NDArray[np.uint32]
    members: NDArray[np.uint32]


class Rules(NamedTuple):
    """Which rows may be returned, and how equal distances are ordered.

    An empty `allowed` allows every row; an empty `keys` orders by row number. `in_order` says
    that positions are met in that very order, so that a later tie can be dropped at once.
    """

    allowed: Mask
    keys: NDArray[np.int64]
    in_order: bool


class RowHits(NamedTuple):
    """Row numbers, nearest first, and their distances."""

    rows: Rows
    distances: Distances


def to_rows(part: Part, allowed: Mask, found: Found) -> Found:
    """Replace each position by the allowed rows that lie there."""
    if part.offsets.size:
        from vdsh.search.scan_kernels import expand

        found = expand(found, part.offsets, part.members)
    elif part.members.size:
        found = (found & ~PLACE) | part.members[found & PLACE]
    else:
        found = found + part.base
    return found[allowed[found & PLACE]] if allowed.size else found


def sort_found(found: Sequence[Found], n_queries: int, rules: Rules) -> list[RowHits]:
    """Order what was found by query, distance and key, and cut it into one answer a query."""
    hits = np.concatenate([np.empty(0, np.int64), *found])
    if rules.keys.size:
        hits = hits[np.lexsort((rules.keys[hits & PLACE], hits >> DISTANCE_SHIFT))]
    else:
        hits.sort()
    rows = hits & PLACE
    distances = ((hits >> DISTANCE_SHIFT) & DISTANCE).astype(np.int32)
    starts = np.searchsorted(hits, np.arange(n_queries) << QUERY_SHIFT)
    bounds = pairwise([*starts, len(hits)])
    return [RowHits(rows[begin:end], distances[begin:end]) for begin, end in bounds]
