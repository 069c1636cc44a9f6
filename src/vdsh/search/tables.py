"""Multi-index hashing: find codes within a small radius without looking at all of them.

Cut each code into m pieces. If two codes differ in at most r bits, then for any piece radii whose
sum of (radius + 1) is r + 1, at least one piece differs by no more than its own radius. So it is
enough to look up the pieces near the query's in one table per piece, then check each candidate.
Reference: Norouzi, Punjani and Fleet, "Fast search in Hamming space with multi-index hashing",
CVPR 2012.
"""

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel, popcount
from vdsh.search.radius import DISTANCE_SHIFT, QUERY_SHIFT, Found, grown
from vdsh.search.strips import STRIP, Positions, Strips

MIN_BITS = 24  # shorter codes have so few distinct values that a scan takes microseconds
# Measured on one core of a Neoverse-N1, in nanoseconds; only their proportions matter.
SCAN_BYTE, PROBE, CANDIDATE, CANDIDATE_BYTE = 0.055, 15.0, 40.0, 12.0
LOOK_UP = 100_000.0  # what a call costs before anything is looked up


class Tables(NamedTuple):
    """For each piece, the positions sorted by the leading bits of that piece.

    `positions[t, starts[t, v]:starts[t, v + 1]]` are those whose piece t reads v. Four bytes a
    code and table, and about one more for `starts`.
    """

    starts: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    width: int

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.starts.nbytes + self.positions.nbytes


def table_width(strips: Strips, n_tables: int) -> int:
    """Choose how many bits of a piece to look up: about four codes a bucket if bits were random."""
    n_bits = 8 * int(strips.data.shape[1])
    return min(n_bits // n_tables, max(1, len(strips).bit_length() - 3))


def build_tables(strips: Strips, n_tables: int) -> Tables:
    """Sort all positions by each piece."""
    width = table_width(strips, n_tables)
    starts = np.zeros((n_tables, 2**width + 1), np.uint32)
    positions = np.empty((n_tables, len(strips)), np.uint32)
    for t in range(n_tables):
        _sort(_pieces(strips, t, n_tables, width), starts[t], positions[t])
    return Tables(starts, positions, width)


def piece_radii(radius: int, n_tables: int) -> list[int]:
    """Share a radius out among the pieces; -1 means that a piece need not be looked up.

    >>> piece_radii(2, 2), piece_radii(0, 2), piece_radii(5, 2)
    ([1, 0], [0, -1], [2, 2])
    """
    each, rest = divmod(radius + 1, n_tables)
    return [each - 1 + (t < rest) for t in range(n_tables)]


def _flips(width: int, radius: int) -> NDArray[np.uint64]:
    """List every way to flip at most `radius` of `width` bits."""
    flips = [
        sum(1 << bit for bit in bits)
        for n_flips in range(radius + 1)
        for bits in combinations(range(width), n_flips)
    ]
    return np.array(flips, np.uint64)


class Probe(NamedTuple):
    """What to look up for one radius: ways to flip each piece's bits, all pieces in one array."""

    radii: NDArray[np.int64]
    flips: NDArray[np.uint64]
    ends: NDArray[np.int64]


def plan(strips: Strips, n_tables: int, radius: int, n_queries: int) -> Probe | None:
    """List what to look up, or nothing where a scan of all codes takes no longer."""
    n_bits = 8 * strips.data.shape[1]
    if n_tables == 0 or n_bits < MIN_BITS or radius >= n_bits:
        return None
    if _scan_cost(strips) * n_queries < LOOK_UP:
        return None
    radii, width = piece_radii(radius, n_tables), table_width(strips, n_tables)
    n_probes = sum(comb(width, i) for piece in radii for i in range(piece + 1))
    return _probes(width, tuple(radii)) if n_probes * PROBE < _scan_cost(strips) else None


@lru_cache(maxsize=64)
def _probes(width: int, radii: tuple[int, ...]) -> Probe:
    flips = [_flips(width, radius) for radius in radii]
    return Probe(np.array(radii), np.concatenate(flips), np.cumsum([len(f) for f in flips]))


def cheaper(
    tables: Tables, strips: Strips, queries: Codes, probe: Probe, threads: int
) -> NDArray[np.bool_]:
    """Say for each query whether checking its candidates takes less time than a shared scan."""
    candidates = _count_candidates(tables, queries, probe)
    each = CANDIDATE + CANDIDATE_BYTE * queries.shape[1]
    cost = LOOK_UP / len(queries) + len(probe.flips) * PROBE + candidates * each
    lower: NDArray[np.bool_] = cost < _scan_cost(strips) / threads
    return lower


def probe_within(
    tables: Tables, data: Codes, queries: Codes, owners: Positions, radius: int, probe: Probe
) -> Found:
    """Find every position within `radius` of each query by looking pieces up.

    `owners` are the numbers under which the queries' hits are reported.
    """
    found: Found = _probe(
        tables.starts,
        tables.positions,
        tables.width,
        data,
        queries,
        owners,
        radius,
        probe.radii,
        probe.flips,
        probe.ends,
    )
    return found


def _scan_cost(strips: Strips) -> float:
    return float(SCAN_BYTE * strips.data.shape[1] * len(strips))


def _pieces(strips: Strips, table: int, n_tables: int, width: int) -> NDArray[np.uint32]:
    """Read the leading `width` bits of a piece of every code; `_piece` does it for one code."""
    start = table * (8 * strips.data.shape[1] // n_tables)
    end_byte = (start + width + 7) // 8
    wide = np.uint32 if end_byte - start // 8 <= 4 else np.uint64
    values = np.zeros((len(strips.data), STRIP), wide)
    for byte in range(start // 8, end_byte):
        values <<= wide(8)
        values |= strips.data[:, byte]
    values >>= wide(8 * end_byte - start - width)
    values &= wide((1 << width) - 1)
    return values.reshape(-1)[: len(strips)].astype(np.uint32, copy=False)


@kernel()
def _piece(code: Codes, table: int, n_tables: int, width: int) -> np.uint64:
    start = table * (8 * code.shape[0] // n_tables)
    end_byte = (start + width + 7) // 8
    value = np.uint64(0)
    for byte in range(start // 8, end_byte):
        value = (value << np.uint64(8)) | np.uint64(code[byte])
    value >>= np.uint64(8 * end_byte - start - width)
    return value & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))


@kernel()
def _sort(
    values: NDArray[np.uint32], starts: NDArray[np.uint32], positions: NDArray[np.uint32]
) -> None:
    """Sort positions by value: count, add up, put in place."""
    for value in values:
        starts[value + 1] += 1
    for v in range(starts.size - 1):
        starts[v + 1] += starts[v]
    filled = starts.copy()
    for i in range(values.size):
        positions[filled[values[i]]] = i
        filled[values[i]] += 1


@kernel()
def _count_candidates(tables: Tables, queries: Codes, probe: Probe) -> NDArray[np.int64]:
    starts, _, width = tables
    _, flips, ends = probe
    n_tables = starts.shape[0]
    counts = np.zeros(queries.shape[0], np.int64)
    for q in range(queries.shape[0]):
        begin = 0
        for t in range(n_tables):
            value = _piece(queries[q], t, n_tables, width)
            for f in range(begin, ends[t]):
                near = np.int64(value ^ flips[f])
                counts[q] += np.int64(starts[t, near + 1]) - np.int64(starts[t, near])
            begin = ends[t]
    return counts


@kernel()
def _found_before(
    code: Codes, query: Codes, table: int, n_tables: int, width: int, radii: Positions
) -> bool:
    """Say whether an earlier table leads to the same code."""
    for t in range(table):
        differing = _piece(code, t, n_tables, width) ^ _piece(query, t, n_tables, width)
        if np.int64(popcount(differing)) <= radii[t]:
            return True
    return False


@kernel()
def _probe(
    starts: NDArray[np.uint32],
    positions: NDArray[np.uint32],
    width: int,
    data: Codes,
    queries: Codes,
    owners: Positions,
    radius: int,
    radii: Positions,
    flips: NDArray[np.uint64],
    ends: Positions,
) -> Found:
    found = np.empty(STRIP, np.int64)
    size = 0
    n_tables = starts.shape[0]
    for q in range(queries.shape[0]):
        query = queries[q]
        begin = 0
        for t in range(n_tables):
            value = _piece(query, t, n_tables, width)
            for f in range(begin, ends[t]):
                near = np.int64(value ^ flips[f])
                for j in range(starts[t, near], starts[t, near + 1]):
                    position = np.int64(positions[t, j])
                    strip, lane = position // STRIP, position % STRIP
                    distance = np.int64(0)
                    for byte in range(query.size):
                        differing = np.uint8(data[strip, byte, lane] ^ query[byte])
                        distance += np.int64(popcount(differing))
                    if distance > radius or _found_before(
                        data[strip, :, lane].copy(), query, t, n_tables, width, radii
                    ):
                        continue
                    if size == found.size:
                        found = grown(found)
                    found[size] = (
                        (owners[q] << QUERY_SHIFT) | (distance << DISTANCE_SHIFT) | position
                    )
                    size += 1
            begin = ends[t]
    return found[:size]
