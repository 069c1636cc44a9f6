"""Words: which documents have which, how well a document answers a query, and where it does."""

from vdsh.words.blocks import DamagedWordsError
from vdsh.words.index import Matches, WordIndex
from vdsh.words.query import Term, WordQuery, read_query
from vdsh.words.segment import Segment
from vdsh.words.stored import IndexReader

__all__ = [
    "DamagedWordsError",
    "IndexReader",
    "Matches",
    "Segment",
    "Term",
    "WordIndex",
    "WordQuery",
    "read_query",
]
