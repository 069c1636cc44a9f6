"""Exact Hamming search: `HammingIndex` by id, `RowIndex` by row number."""

from vdsh.search.index import HammingIndex, Hits
from vdsh.search.rows import RowIndex
from vdsh.search.scan import RowHits

__all__ = ["HammingIndex", "Hits", "RowHits", "RowIndex"]
