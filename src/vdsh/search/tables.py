"""Multi-index hashing: tables that lead to the codes near a query without reading all of them.

Cut codes into m pieces. If two codes differ in at most r bits, then for any piece radii whose sum
of (radius + 1) is r + 1, at least one piece differs by no more than its own radius. So it is enough
to look up the pieces near the query's in one table a piece.

The first table is the order of the codes themselves: they are sorted by their first piece, so a
bucket is a stretch of them. Another table has, sorted by its own piece, an entry for each
code: what its first piece reads, which leads to the bucket, and further bits, which tell most
codes that are too far without going there. Entries lie in strips and are scanned as codes are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.search.pieces import WORD, Luts, choose_luts, read_all, table_shape
from vdsh.search.strips import STRIP, Strips

Order = NDArray[np.uint32]


class Tables(NamedTuple):
    """One table a piece."""

    luts: Luts  # (n_tables, 1 + n_words, n_bytes, 256): what each table reads of a code
    width: int  # bits of a piece
    # (n_tables, 2**width + 1): the bucket of piece v in table t goes from `starts[t, v]` to
    # `starts[t, v + 1]`.
    starts: NDArray[np.uint32]
    # (n_tables - 1, n_strips, n_entry, 64): strips of entries, of all tables but the first.
    entries: Codes

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.luts.nbytes + self.starts.nbytes + self.entries.nbytes


def build_tables(strips: Strips) -> tuple[Order, Strips, Tables] | None:
    """Sort codes and make their tables; None where tables would not help.

    Returns
    -------
    order : ndarray of uint32
        The old position of each code.
    strips : Strips
        The codes, sorted by their first piece.
    tables : Tables
    """
    n_codes, n_bytes = len(strips), int(strips.data.shape[1])
    shape = table_shape(n_bytes, n_codes)
    if shape is None:
        return None
    luts = choose_luts(strips, shape)
    starts = np.zeros((shape.n_tables, 2**shape.width + 1), np.uint32)
    entries = np.zeros((shape.n_tables - 1, -(-n_codes // STRIP), shape.entry, STRIP), np.uint8)
    order = _sort(read_all(strips.data, n_codes, luts[0, 0]), starts[0])
    ordered = Strips(n_bytes, np.zeros_like(strips.trimmed()), n_codes)
    _move(_rows(strips.data, n_codes), order, ordered.data)
    for t in range(1, shape.n_tables):
        places = _sort(read_all(ordered.data, n_codes, luts[t, 0]), starts[t])
        for word, lut in enumerate(luts[t, 1:]):
            values = read_all(ordered.data, n_codes, lut)
            planes = entries[t - 1, :, WORD * word : WORD * (word + 1)]
            _place(values, places, planes)
    return order, ordered, Tables(luts, shape.width, starts, entries)


@kernel()
def _sort(pieces: NDArray[np.uint64], starts: NDArray[np.uint32]) -> Order:
    """List positions by piece: count, add up, put in place."""
    for piece in pieces:
        starts[np.int64(piece) + 1] += 1
    for v in range(starts.size - 1):
        starts[v + 1] += starts[v]
    filled = starts.copy()
    order = np.empty(pieces.size, np.uint32)
    for i in range(pieces.size):
        piece = np.int64(pieces[i])
        order[filled[piece]] = i
        filled[piece] += 1
    return order


@kernel()
def _rows(data: Codes, n_codes: int) -> Codes:
    """Lay codes out one after the other, where any of them is read at once."""
    n_bytes = data.shape[1]
    codes = np.empty((n_codes, n_bytes), np.uint8)
    for strip in range((n_codes + STRIP - 1) // STRIP):
        for lane in range(min(STRIP, n_codes - strip * STRIP)):
            for byte in range(n_bytes):
                codes[strip * STRIP + lane, byte] = data[strip, byte, lane]
    return codes


@kernel()
def _move(codes: Codes, order: Order, data: Codes) -> None:
    """Write codes into strips in another order."""
    for i in range(order.size):
        code = codes[order[i]]
        for byte in range(code.size):
            data[i // STRIP, byte, i % STRIP] = code[byte]


@kernel()
def _place(values: NDArray[np.uint64], order: Order, planes: Codes) -> None:
    """Write the entries of a table into its strips."""
    n_entry = planes.shape[1]
    for i in range(order.size):
        value = values[order[i]]
        for byte in range(n_entry):
            planes[i // STRIP, n_entry - 1 - byte, i % STRIP] = value & np.uint64(0xFF)
            value >>= np.uint64(8)
