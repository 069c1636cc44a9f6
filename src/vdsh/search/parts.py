"""Where codes lie in memory, what a search is given and what it answers.

Codes lie in strips of 64, each strip byte plane by byte plane: byte 0 of sixty-four codes, then
byte 1 of the same codes, and so on. A scan reads memory from front to back, and one vector
instruction works on the same byte of many codes.

A hit travels as one integer, `query << 51 | distance << 40 | row`, so that sorting the integers
sorts the hits.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes

STRIP = 64
IN_CACHE = 64  # strips compared with all queries of a block before the scan moves on
NARROW_BITS = 248  # up to here a distance fits one byte
QUERY_SHIFT, DISTANCE_SHIFT = 51, 40
MAX_QUERIES = 1 << (63 - QUERY_SHIFT)  # so many queries can be told apart
PLACE = (1 << DISTANCE_SHIFT) - 1
ALL = PLACE  # as k: no index has so many rows
DISTANCE = (1 << (QUERY_SHIFT - DISTANCE_SHIFT)) - 1

Positions = NDArray[np.int64]
Rows = NDArray[np.int64]
Distances = NDArray[np.int32]
Mask = NDArray[np.bool_]
Found = NDArray[np.int64]


class Strips:
    """A growing array of codes.

    `data` (n_strips, n_bytes, 64) are strips already laid out, such as those of a mapped file, and
    `size` is how many codes they hold; the rest of the last strip is room to grow.
    """

    def __init__(self, n_bytes: int, data: Codes | None = None, size: int = 0) -> None:
        self.data = np.zeros((0, n_bytes, STRIP), np.uint8) if data is None else data
        self.size = size

    def __len__(self) -> int:
        return self.size

    def append(self, codes: Codes) -> None:
        """Add codes of shape (n, n_bytes) at the end."""
        needed = -(-(self.size + len(codes)) // STRIP)
        if needed > len(self.data):
            # The first codes get just their room; later ones half as much again.
            room = max(needed, len(self.data) * 3 // 2)
            grown = np.zeros((room, *self.data.shape[1:]), np.uint8)
            grown[: len(self.data)] = self.data
            self.data = grown
        first = min(-self.size % STRIP, len(codes))  # they fill the last strip
        last = len(codes) - (len(codes) - first) % STRIP  # the others begin a new one
        strips = codes[first:last].reshape(-1, STRIP, codes.shape[1])
        at = (self.size + first) // STRIP
        self.data[at : at + len(strips)] = strips.transpose(0, 2, 1)
        edges = np.r_[:first, last : len(codes)]
        positions = self.size + edges
        self.data[positions // STRIP, :, positions % STRIP] = codes[edges]
        self.size += len(codes)

    def take(self, positions: Positions) -> Codes:
        """Gather the codes at some positions, as an array of shape (n, n_bytes)."""
        taken: Codes = self.data[positions // STRIP, :, positions % STRIP]
        return taken

    def all(self) -> Codes:
        """Return all codes, as an array of shape (n, n_bytes)."""
        return self.data.transpose(0, 2, 1).reshape(-1, self.data.shape[1])[: self.size]

    def trimmed(self) -> Codes:
        """Return the strips in use, without room to grow."""
        return self.data[: -(-self.size // STRIP)]


def scratch(n_bytes: int) -> NDArray[Any]:
    """Make room for the distances of a strip, of the smallest type that holds any of them."""
    return np.empty(STRIP, np.uint8 if 8 * n_bytes <= NARROW_BITS else np.uint16)


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


def in_order(hits: Found, k: int, rules: Rules) -> Found:
    """Sort hits by query, distance and key; keep the first k of each query."""
    if rules.keys.size:
        hits = hits[np.lexsort((rules.keys[hits & PLACE], hits >> DISTANCE_SHIFT))]
    else:
        hits = np.sort(hits)
    if k == ALL:
        return hits
    queries = hits >> QUERY_SHIFT
    return hits[np.arange(len(hits)) - np.searchsorted(queries, queries) < k]


def by_query(hits: Found, n_queries: int) -> list[RowHits]:
    """Cut hits that are in order into those of each query."""
    starts = np.searchsorted(hits, np.arange(n_queries) << QUERY_SHIFT)
    rows, distances = as_hits(hits)
    bounds = pairwise([*starts, len(hits)])
    return [RowHits(rows[begin:end], distances[begin:end]) for begin, end in bounds]


def as_hits(found: Found) -> RowHits:
    """Read rows and distances from hits."""
    return RowHits(found & PLACE, ((found >> DISTANCE_SHIFT) & DISTANCE).astype(np.int32))
