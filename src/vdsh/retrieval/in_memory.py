"""A searcher over texts in memory, as for measuring how well a model finds them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.retrieval.searcher import Searcher
from vdsh.search import HammingIndex
from vdsh.text.languages import Language
from vdsh.words import Segment, WordIndex

# A segment of the word index numbers its documents in sixteen bits.
SEGMENT = 2**16

Rows = NDArray[np.int64]


class TextsInMemory:
    """Texts known by their places in a list; see `vdsh.retrieval.searcher.Documents`."""

    is_filtered = False

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def few_rows(self) -> Rows | None:
        """Return None: there is no filter."""
        return None

    def passing(self, rows: Rows) -> Rows:
        """Return all of them."""
        return rows

    def all_rows(self) -> Rows:
        """Return all rows."""
        return np.arange(len(self._texts))

    def texts(self, rows: Rows, phrases: Sequence[Sequence[str]]) -> tuple[Rows, list[str]]:
        """Return the texts of rows."""
        return rows, [self._texts[row] for row in rows.tolist()]

    def id_order(self, rows: Rows) -> Rows:
        """Return the rows, which are their own ids."""
        return rows


def search_in_memory(
    texts: Sequence[str], codes: Codes, language: Language, *, corrects: bool = True
) -> Searcher:
    """Make a searcher over texts and their codes; their rows are their places."""
    rows = np.arange(len(texts))
    segments = [
        Segment.of(texts[first : first + SEGMENT], language, first)
        for first in range(0, len(texts), SEGMENT)
    ]
    n_bytes = max(1, codes.shape[1])
    numbered = codes if codes.shape[1] else np.zeros((0, n_bytes), np.uint8)
    index = HammingIndex(numbered, numbers=rows[: len(numbered)])
    return Searcher(WordIndex(segments, language), index, TextsInMemory(texts), corrects=corrects)
