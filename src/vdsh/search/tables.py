"""Multi-index hashing: tables that lead to the codes near a query without reading all of them.

Cut codes into m substrings. If two codes differ in at most r bits, then for any radii whose sum of
(radius + 1) is r + 1, at least one substring differs by no more than its own radius. So it is
enough to look up the substrings near the query's in one table a substring.

The first table is the order of the codes themselves: they are sorted by their first substring, so
a bucket is a range of them. Another table has, sorted by its own substring, an entry for each
code: what its first substring reads, which leads to the bucket, and further bits, which tell most
codes that are too far without going there. Entries lie in strips and are scanned as codes are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.search.strips import STRIP, Strips
from vdsh.search.substrings import WORD, Luts, choose_luts, table_shape

CHUNK = 1 << 20  # codes put in order at a time

Order = NDArray[np.uint32]


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
    """Sort codes and make their tables; None where tables would not help.

    Returns
    -------
    order : ndarray of uint32
        The old position of each code.
    strips : Strips
        The codes, sorted by their first substring.
    tables : Tables
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
