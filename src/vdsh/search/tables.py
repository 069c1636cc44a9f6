"""Multi-index hashing: tables that lead to the codes near a query without reading all of them.

Cut codes into m substrings. If two codes differ in at most r bits, then for any radii whose sum of
(radius + 1) is r + 1, at least one substring differs by no more than its own radius. So it is
enough to look up the substrings near the query's in one table a substring (Norouzi, Punjani and
Fleet, "Fast exact search in Hamming space with multi-index hashing", TPAMI 2014).

The first table is the order of the codes themselves: they are sorted by their first substring, so
a bucket is a range of them. Another table has, sorted by its own substring, an entry for each
code: what its first substring reads, which leads to the bucket, and further bits, which tell most
codes that are too far without going there. Entries lie in strips and are scanned as codes are.
Bits that agree often make large buckets, so each substring takes, in turn, the bit that is least
correlated with those it has.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, unpack
from vdsh.search.parts import STRIP, Strips

ROW = 4  # bytes of a row number
MOST = 3  # an index takes at most so many times the memory of its codes
FULL = 5  # a bucket holds about 2**5 codes, if bits were random: half a strip
NARROWEST, WIDEST = 8, 24  # bits of a substring
WORD = 8  # bytes that are read of a code at once
SAMPLE = 1 << 15  # codes whose bits are compared
CHUNK = 1 << 20  # codes put in order at a time

Luts = NDArray[np.uint64]
Order = NDArray[np.uint32]


class Shape(NamedTuple):
    """How many tables there are, how many bits each looks up, how many bytes it keeps of a code."""

    n_tables: int
    width: int
    entry: int


def table_shape(n_bytes: int, n_codes: int) -> Shape | None:
    """Choose as many tables as memory and bits allow; None where a scan does as well.

    An entry needs so many bytes that few codes that are far look near: five of 8, nine of 16.

    >>> table_shape(8, 100_000_000), table_shape(16, 100_000_000), table_shape(2, 1_000_000)
    (Shape(n_tables=3, width=21, entry=5), Shape(n_tables=4, width=21, entry=9), None)
    """
    width = max(0, min(WIDEST, 4 * n_bytes, (n_codes >> FULL).bit_length() - 1))
    entry = min(n_bytes - width // 8, 1 + n_bytes // 2)
    n_tables = 1 + ((MOST - 1) * n_bytes - ROW) // entry
    n_tables = min(n_tables, 8 * n_bytes // max(width, 1))
    return Shape(n_tables, width, entry) if width >= NARROWEST and n_tables >= 2 else None


def choose_luts(strips: Strips, shape: Shape) -> Luts:
    """Say for each table, byte and value of that byte which bits it adds to what a table reads.

    A table reads its own substring, as one number, and then an entry, eight bytes a number: the
    bits of the first substring and as many others as fit.
    """
    step = max(1, len(strips) // SAMPLE)
    bits = unpack(strips.take(np.arange(0, len(strips), step)[:SAMPLE]))
    substrings = _uncorrelated(bits.astype(np.float32), shape)
    n_bytes = int(strips.data.shape[1])
    return np.stack(
        [_luts(substring, substrings[0], n_bytes, shape.entry) for substring in substrings]
    )


def _uncorrelated(bits: NDArray[np.float32], shape: Shape) -> list[list[int]]:
    """Deal bits out to substrings in turn, each taking the one that keeps its buckets smallest.

    With bits x = -1 or 1, two codes agree in bits b and c with a probability of
    (1 + E[x_b]^2 + E[x_c]^2 + E[x_b x_c]^2) / 4: these squares are what to keep small.
    """
    signs = 2 * bits - 1
    alone, together = signs.mean(axis=0) ** 2, (signs.T @ signs / len(signs)) ** 2
    left = list(range(bits.shape[1]))
    substrings: list[list[int]] = [[] for _ in range(shape.n_tables)]
    for _ in range(shape.width):
        for substring in substrings:
            agreement = alone[left] + together[np.ix_(left, substring)].sum(axis=1)
            substring.append(left.pop(int(np.argmin(agreement))))
    return substrings


def _luts(substring: list[int], first: list[int], n_bytes: int, n_entry: int) -> Luts:
    known = set(substring)
    rest = [bit for bit in first if bit not in known]
    rest += [bit for bit in range(8 * n_bytes) if bit not in known | set(first)]
    rest = rest[: 8 * n_entry]
    words = [rest[i : i + 8 * WORD] for i in range(0, 8 * n_entry, 8 * WORD)]
    luts = [_lut(substring, len(substring), n_bytes)]
    for i, word in enumerate(words):
        luts.append(_lut(word, 8 * min(WORD, n_entry - i * WORD), n_bytes))
    return np.stack(luts)


def _lut(bits: list[int], width: int, n_bytes: int) -> NDArray[np.uint64]:
    """Map each value of each byte to its share of a number that has some bits of the code."""
    lut = np.zeros((n_bytes, 256), np.uint64)
    values = np.arange(256)
    for place, bit in enumerate(bits):
        ones = (values >> (7 - bit % 8)) & 1
        lut[bit // 8] |= ones.astype(np.uint64) << np.uint64(width - 1 - place)
    return lut


class Tables(NamedTuple):
    """One table a substring."""

    luts: Luts  # (n_tables, 1 + n_words, n_bytes, 256): what each table reads of a code
    width: int  # bits of a substring
    # (n_tables, 2**width + 1): the bucket of substring v in table t goes from `starts[t, v]` to
    # `starts[t, v + 1]`.
    starts: NDArray[np.uint32]
    # (n_tables - 1, n_strips, n_entry, 64): strips of entries, of all tables but the first.
    entries: Codes

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.luts.nbytes + self.starts.nbytes + self.entries.nbytes


def build_tables(strips: Strips) -> tuple[Order, Strips, Tables] | None:
    """Sort codes by their first substring and make their tables; None where those would not help.

    It gives the old position of each code, the codes in the new order, and the tables.
    """
    from vdsh.search.table_kernels import place_entries, read_all, sort_by_substring

    n_codes, n_bytes = len(strips), int(strips.data.shape[1])
    shape = table_shape(n_bytes, n_codes)
    if shape is None:
        return None
    luts = choose_luts(strips, shape)
    starts = np.zeros((shape.n_tables, 2**shape.width + 1), np.uint32)
    entries = np.zeros((shape.n_tables - 1, -(-n_codes // STRIP), shape.entry, STRIP), np.uint8)
    order = sort_by_substring(read_all(strips.data, n_codes, luts[0, 0]), starts[0])
    ordered = _put_in_order(strips, order)
    for t in range(1, shape.n_tables):
        places = sort_by_substring(read_all(ordered.data, n_codes, luts[t, 0]), starts[t])
        for word, lut in enumerate(luts[t, 1:]):
            values = read_all(ordered.data, n_codes, lut)
            planes = entries[t - 1, :, WORD * word : WORD * (word + 1)]
            place_entries(values, places, planes)
    return order, ordered, Tables(luts, shape.width, starts, entries)


def _put_in_order(strips: Strips, order: Order) -> Strips:
    codes = strips.all()
    ordered = Strips(codes.shape[1], np.zeros_like(strips.trimmed()))
    for i in range(0, len(codes), CHUNK):
        ordered.append(codes[order[i : i + CHUNK]])
    return ordered
