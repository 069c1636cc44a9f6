"""A segment: strips of codes, and which rows lie at each position.

Real codes repeat, supervised ones a hundredfold. A segment that holds many repeats keeps each
distinct code once, with the list of its rows, so that a scan compares it once.
"""

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, to_words
from vdsh.jit import compiled, kernel
from vdsh.search.nearest import Part, Rows
from vdsh.search.strips import Strips
from vdsh.search.tables import Tables, build_tables

NO_OFFSETS = np.empty(0, np.uint32)
REPEATS_PAY = 0.7  # group when distinct codes are at most this share of all
SMALL = 1024  # not worth grouping
PLAIN_SEARCH = 2e-9  # seconds a byte of a code and query that a search takes in numpy alone
CHUNK = 1 << 18  # bounds the memory for hashes
SAMPLE_BITS = 6  # look at one distinct code in 2**6

Offsets = NDArray[np.uint32]


class Segment:
    """Codes to scan and the rows they stand for.

    Parameters
    ----------
    strips : Strips
        The codes, all of them or only the distinct ones.
    base : int, default=0
        Row of the first code, where each position holds one row.
    offsets, members : ndarray, optional
        Position p holds the rows `members[offsets[p]:offsets[p + 1]]`, or `members[p]` without
        offsets.
    tables : Tables, optional
        Lead to codes near a query; the codes are in their order.

    Attributes
    ----------
    grouped : bool
        Whether each distinct code is kept once.
    """

    def __init__(
        self,
        strips: Strips,
        base: int = 0,
        offsets: Offsets = NO_OFFSETS,
        members: Offsets = NO_OFFSETS,
        tables: Tables | None = None,
    ) -> None:
        self.strips = strips
        self.base = base
        self.offsets = offsets
        self.members = members
        self.grouped = len(offsets) > 0
        self.tables = tables

    @property
    def n_rows(self) -> int:
        """How many rows the segment holds."""
        return len(self.members) if self.grouped else len(self.strips)

    @property
    def nbytes(self) -> int:
        """Bytes of memory for codes, row lists and tables."""
        tables = self.tables.nbytes if self.tables else 0
        return self.strips.nbytes + self.offsets.nbytes + self.members.nbytes + tables

    def part(self, start: int = 0, stop: int | None = None) -> Part:
        """Describe a stretch of positions to the kernels."""
        stop = len(self.strips) if stop is None else stop
        return Part(self.strips.data, start, stop, self.base, self.offsets, self.members)

    def with_tables(self) -> "Segment | None":
        """Return the same rows in the order of tables; None where these would not help."""
        built = build_tables(self.strips)
        if built is None:
            return None
        order, strips, tables = built
        if not self.grouped:
            members = self.members[order] if len(self.members) else order
            return Segment(strips, self.base, NO_OFFSETS, members, tables)
        offsets = np.zeros_like(self.offsets)
        np.cumsum(np.diff(self.offsets)[order], out=offsets[1:], dtype=np.uint32)
        members = _regroup(self.offsets, self.members, order)
        return Segment(strips, self.base, offsets, members, tables)

    def rows(self) -> Rows:
        """Return the rows at all positions, one position after the other."""
        if len(self.members):
            return self.members.astype(np.int64)
        return np.arange(self.base, self.base + len(self.strips))

    def all_codes(self) -> Codes:
        """Return the code of every row, in row order."""
        codes = self.strips.take(np.arange(len(self.strips)))
        if self.grouped:
            codes = np.repeat(codes, np.diff(self.offsets), axis=0)
        if len(self.members):
            spread = np.empty_like(codes)
            spread[self.members] = codes
            return spread
        return codes

    def select(self, allowed: NDArray[np.bool_]) -> tuple[Codes, Rows]:
        """Return the codes and row numbers of the allowed rows; `allowed` covers all rows."""
        rows = self.rows()
        chosen = np.flatnonzero(allowed[rows])
        if not self.grouped:
            return self.strips.take(chosen), rows[chosen]
        positions = np.searchsorted(self.offsets, chosen, side="right") - 1
        return self.strips.take(positions), rows[chosen]

    def sort_members(self, keys: NDArray[np.int64]) -> None:
        """Order the rows of each code by key."""
        self.members = self.members.copy()
        _sort_members(self.offsets, self.members, keys)


def make_segment(codes: Codes) -> Segment:
    """Lay codes out plainly, or grouped where enough of them repeat."""
    strips = Strips(codes.shape[1])
    plainly = len(codes) < SMALL or not compiled(PLAIN_SEARCH * codes.size)
    if plainly or distinct_share(codes) > REPEATS_PAY:
        strips.append(codes)
        return Segment(strips)
    words = to_words(codes)
    groups, first = _group(words, _hash(words))
    offsets = np.zeros(len(first) + 1, np.uint32)
    np.cumsum(np.bincount(groups, minlength=len(first)), out=offsets[1:], dtype=np.uint32)
    strips.append(codes[first])
    return Segment(strips, 0, offsets, _members(groups, offsets))


def one_row_each(codes: Codes, rows: Rows) -> Segment:
    """Make a segment of chosen rows, for a search among few of them."""
    strips = Strips(codes.shape[1])
    strips.append(codes)
    return Segment(strips, 0, np.arange(len(rows) + 1, dtype=np.uint32), rows.astype(np.uint32))


def distinct_share(codes: Codes) -> float:
    """Estimate which share of the codes is distinct.

    The sample is drawn by the code's own hash: all repeats of a code are in it or none, so the
    share of distinct codes in the sample is that of the whole, on average.
    """
    rare = SAMPLE_BITS if len(codes) > 64 * SMALL else 0
    sample = []
    for start in range(0, len(codes), CHUNK):
        hashes = _hash(to_words(codes[start : start + CHUNK]))
        sample.append(hashes[hashes < np.uint64(2 ** (64 - rare) - 1)])
    return float(len(np.unique(np.concatenate(sample))) * 2**rare / len(codes))


@kernel()
def _hash(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = np.empty(words.shape[0], np.uint64)
    for i in range(words.shape[0]):
        mixed = np.uint64(0)
        for j in range(words.shape[1]):
            # The finishing steps of splitmix64, once a word.
            mixed = (mixed ^ words[i, j]) + np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
        hashes[i] = mixed
    return hashes


@kernel()
def _group(words: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> tuple[Offsets, Offsets]:
    """Find the distinct codes; return the number of each row's code and where it first appears."""
    n = words.shape[0]
    size = 1
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    groups = np.empty(n, np.uint32)
    first = np.empty(n, np.uint32)
    n_groups = 0
    for i in range(n):
        slot = np.int64(hashes[i] & np.uint64(size - 1))
        while slots[slot] >= 0 and not _same(words, first[slots[slot]], i):
            slot = (slot + 1) % size
        if slots[slot] < 0:
            slots[slot] = n_groups
            first[n_groups] = i
            n_groups += 1
        groups[i] = slots[slot]
    return groups, first[:n_groups].copy()


@kernel()
def _same(words: NDArray[np.uint64], i: int, j: int) -> bool:
    for w in range(words.shape[1]):
        if words[i, w] != words[j, w]:
            return False
    return True


@kernel()
def _members(groups: Offsets, offsets: Offsets) -> Offsets:
    """List the rows of each group, in row order."""
    members = np.empty(groups.size, np.uint32)
    filled = offsets.copy()
    for row in range(groups.size):
        members[filled[groups[row]]] = row
        filled[groups[row]] += 1
    return members


@kernel()
def _regroup(offsets: Offsets, members: Offsets, order: Offsets) -> Offsets:
    """List the rows of each group, groups in another order."""
    listed = np.empty(members.size, np.uint32)
    size = 0
    for group in order:
        for j in range(offsets[group], offsets[group + 1]):
            listed[size] = members[j]
            size += 1
    return listed


@kernel()
def _sort_members(offsets: Offsets, members: Offsets, keys: NDArray[np.int64]) -> None:
    for p in range(offsets.size - 1):
        if offsets[p + 1] - offsets[p] > 1:
            group = members[offsets[p] : offsets[p + 1]].copy()
            order = np.argsort(np.array([keys[row] for row in group]))
            members[offsets[p] : offsets[p + 1]] = group[order]
