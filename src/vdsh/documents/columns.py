"""Which fields of a table hold its text, where nobody has said so."""

from collections.abc import Mapping, Sequence
from typing import Any

from vdsh.documents.source import Source

SEEN = 100  # records that the guess is made of
PROSE = 4  # words of letters in a cell, on average


def guess_text_fields(records: Sequence[Mapping[str, Any]], source: Source) -> tuple[str, ...]:
    """Choose the fields of the text: `text`, or all prose, or else the longest strings.

    Prose is a field whose cells have several words and do not repeat from record to record.
    A field `title` is searched as metadata anyway, so it is text only where there is no other.
    """
    others = {source.id_field, source.labels_field, *source.drop_fields}
    cells: dict[str, list[str]] = {}
    for name, value in (pair for record in records for pair in record.items()):
        if isinstance(value, str) and value and name not in others:
            cells.setdefault(name, []).append(value)
    if "text" in cells or not cells:
        return ("text",)
    words = {name: _count_words(some) for name, some in cells.items()}
    prose = [name for name in cells if words[name] >= PROSE and name != "title"]
    longest = max(cells, key=lambda name: (words[name], sum(map(len, cells[name]))))
    return tuple(prose) or (longest,)


def _count_words(cells: Sequence[str]) -> float:
    """Count the words of letters in a cell on average; 0 where half of the cells repeat."""
    repeat = 2 * len(set(cells)) <= len(cells)
    words = " ".join(cells).split()
    return 0 if repeat else sum(word.strip(".,;:!?()'\"").isalpha() for word in words) / len(cells)
