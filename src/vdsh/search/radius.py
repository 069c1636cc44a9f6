"""Hits within a radius, on their way from a scan to answers.

A hit travels as one integer, `query << 51 | distance << 40 | position`, so that sorting the
integers sorts the hits.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vdsh.search.parts import Mask, Part, RowHits, Rules

QUERY_SHIFT, DISTANCE_SHIFT = 51, 40
MAX_QUERIES = 1 << (63 - QUERY_SHIFT)  # so many queries can be told apart
PLACE = (1 << DISTANCE_SHIFT) - 1
DISTANCE = (1 << (QUERY_SHIFT - DISTANCE_SHIFT)) - 1

Found = NDArray[np.int64]


def to_rows(part: Part, allowed: Mask, found: Found) -> Found:
    """Replace each position by the allowed rows that lie there."""
    if part.offsets.size:
        from vdsh.search.radius_kernels import expand

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
