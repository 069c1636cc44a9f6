"""Exact Hamming search: `HammingIndex` by id, `RowIndex` by row number."""

from vdsh.search.index import HammingIndex, Hits
from vdsh.search.parts import RowHits
from vdsh.search.rows import RowIndex

__all__ = ["HammingIndex", "Hits", "RowHits", "RowIndex"]
