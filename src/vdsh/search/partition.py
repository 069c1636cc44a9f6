"""A partition: strips of codes, and which rows lie at each position.

Real codes repeat, supervised ones a hundredfold. A partition that holds many repeats keeps each
distinct code once, with the list of its rows, so that a scan compares it once.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, to_words
from vdsh.jit import once
from vdsh.search.parts import Part, Rows, Strips
from vdsh.search.tables import Tables, build_tables

NO_OFFSETS = np.empty(0, np.uint32)
REPEATS_PAY = 0.7  # group when distinct codes are at most this share of all
SMALL = 1024  # not worth grouping
CHUNK = 1 << 18  # bounds the memory for hashes
SAMPLE_BITS = 6  # look at one distinct code in 2**6

Offsets = NDArray[np.uint32]


@dataclass(eq=False)
class Partition:
    """Codes to scan, all or only the distinct ones, and the rows they stand for.

    Where each position holds one row, `base` is the first; else position p holds the rows
    `members[offsets[p]:offsets[p + 1]]`, or `members[p]` without offsets. Where there are `tables`,
    which lead to codes near a query, the codes are in their order.
    """

    strips: Strips
    base: int = 0
    offsets: Offsets = field(default_factory=lambda: NO_OFFSETS)
    members: Offsets = field(default_factory=lambda: NO_OFFSETS)
    tables: Tables | None = None
    grouped: bool = field(init=False)  # whether each distinct code is kept once

    def __post_init__(self) -> None:
        self.grouped = len(self.offsets) > 0

    @property
    def n_rows(self) -> int:
        """How many rows the partition holds."""
        return len(self.members) if self.grouped else len(self.strips)

    @property
    def nbytes(self) -> int:
        """Bytes of memory for codes, row lists and tables."""
        tables = self.tables.nbytes if self.tables else 0
        return self.strips.data.nbytes + self.offsets.nbytes + self.members.nbytes + tables

    def part(self) -> Part:
        """Describe all positions to the kernels."""
        size = len(self.strips)
        return Part(self.strips.data, 0, size, self.base, self.offsets, self.members)

    def with_tables(self) -> "Partition | None":
        """Return the same rows in the order of tables; None where these would not help."""
        built = build_tables(self.strips)
        if built is None:
            return None
        order, strips, tables = built
        if not self.grouped:
            members = self.members[order] if len(self.members) else order
            return replace(self, strips=strips, members=members, tables=tables)
        sizes = np.diff(self.offsets)[order]
        offsets = np.append(np.uint32(0), np.cumsum(sizes, dtype=np.uint32))
        members = self.members[_ranges(self.offsets[order], sizes)]
        return Partition(strips, self.base, offsets, members, tables)

    def rows(self) -> Rows:
        """Return the rows at all positions, one position after the other."""
        if len(self.members):
            return self.members.astype(np.int64)
        return np.arange(self.base, self.base + len(self.strips))

    def all_codes(self) -> Codes:
        """Return the code of every row, in row order."""
        codes = self.strips.all()
        if self.grouped:
            codes = np.repeat(codes, np.diff(self.offsets), axis=0)
        if len(self.members):
            spread = np.empty_like(codes)
            spread[self.members] = codes
            return spread
        return codes

    @once
    def positions(self) -> NDArray[np.uint32]:
        """Where the code of each row lies, where there are members; else none."""
        if not len(self.members):
            return NO_OFFSETS
        positions = np.empty(len(self.members), np.uint32)
        sizes = np.diff(self.offsets) if self.grouped else 1
        positions[self.members] = np.repeat(np.arange(len(self.strips)), sizes)
        return positions

    def take(self, rows: Rows) -> Codes:
        """Return the codes of some rows, which count from the first one here."""
        at = self.positions[rows].astype(np.int64) if len(self.members) else rows
        return self.strips.take(at)

    def in_order_of(self, keys: NDArray[np.int64] | None) -> "Partition":
        """Order the rows of each code by key."""
        if keys is None or not self.grouped:
            return self
        codes = np.repeat(np.arange(len(self.strips)), np.diff(self.offsets))
        return replace(self, members=self.members[np.lexsort((keys[self.members], codes))])


def make_partition(codes: Codes) -> Partition:
    """Lay codes out plainly, or grouped where enough of them repeat."""
    strips = Strips(codes.shape[1])
    if len(codes) < SMALL or distinct_share(codes) > REPEATS_PAY:
        strips.append(codes)
        return Partition(strips)
    offsets, members = _group(codes)
    strips.append(codes[members[offsets[:-1]]])
    return Partition(strips, 0, offsets, members)


def one_row_each(codes: Codes, rows: Rows) -> Partition:
    """Make a partition of chosen rows, for a search among few of them."""
    strips = Strips(codes.shape[1])
    strips.append(codes)
    return Partition(strips, members=rows.astype(np.uint32))


def distinct_share(codes: Codes) -> float:
    """Estimate which share of the codes is distinct.

    The sample is drawn by the code's own hash: all repeats of a code are in it or none, so the
    share of distinct codes in the sample is that of the whole, on average.
    """
    rare = SAMPLE_BITS if len(codes) > 64 * SMALL else 0
    sample = []
    for start in range(0, len(codes), CHUNK):
        hashes = _hash(to_words(codes[start : start + CHUNK]))
        sample.append(hashes[hashes <= np.uint64(2 ** (64 - rare) - 1)])
    return float(len(np.unique(np.concatenate(sample))) * 2**rare / len(codes))


def _hash(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the words of each code: the upper bits of a product depend on all lower ones."""
    mixed = np.zeros(len(words), np.uint64)
    for word in words.T:
        mixed = ((mixed ^ (mixed >> np.uint64(32))) ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return mixed


def _group(codes: Codes) -> tuple[Offsets, Offsets]:
    """List the rows of each distinct code, one code after the other.

    Rows are sorted by hash and row in one number. Where the hashes of two codes are equal in what
    is left of them, a code may stand at several positions, which takes a little longer to search.
    """
    words = to_words(codes)
    mask = np.uint64((1 << len(codes).bit_length()) - 1)
    keys = (_hash(words) & ~mask) | np.arange(len(codes), dtype=np.uint64)
    keys.sort()
    members = (keys & mask).astype(np.uint32)
    words = words[members]
    starts = np.flatnonzero((words[1:] != words[:-1]).any(axis=1)) + 1
    return np.concatenate([[0], starts, [len(codes)]]).astype(np.uint32), members


def _ranges(starts: Offsets, sizes: Offsets) -> NDArray[np.int64]:
    """Lay ranges of numbers end to end."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
