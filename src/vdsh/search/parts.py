"""What a search is told and what it answers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes

Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]


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
