"""Hits as people read them: the lines of a table, and a table in a notebook."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vdsh.notebook import html_table
from vdsh.words.lines import DOTS, Piece, n_cells, one_line

if TYPE_CHECKING:
    from vdsh.store.hits import Hit

WIDTH = 100  # where there is no terminal
_LEAST = 40  # places for a passage; where there are fewer, it has a line of its own
_GAP = "  "


def table(
    hits: "Sequence[Hit]", width: int = WIDTH, words: Collection[str] | None = None
) -> list[list[Piece]]:
    """Lay hits out in lines: score or distance, id, labels where there are some, best passage.

    Parameters
    ----------
    hits : sequence of Hit
    width : int
        Places in a line.
    words : collection of str, optional
        What to mark; by default the words of the query that each hit is known to have.
    """
    starts = _starts(hits, 3 * width // 10, width // 6)
    room = width - max(map(n_cells, starts), default=0)
    if room < _LEAST:
        starts = _starts(hits, width // 2, width // 4)
        indent = max(len(_number(hit)) for hit in hits) + len(_GAP)
        starts = [f"{start.rstrip()}\n{' ' * indent}" for start in starts]
        room = max(_LEAST, width - indent)
    return [
        [Piece(start), *hit.pieces(room, words)] for hit, start in zip(hits, starts, strict=True)
    ]


def html(hits: "Sequence[Hit]") -> str:
    """Lay hits out for a notebook."""
    first = "distance" if any(hit.score is None for hit in hits) else "score"
    rows = [(_number(hit), hit.id, ", ".join(hit.labels or ()), hit.pieces()) for hit in hits]
    return html_table(rows, (first, "id", "labels", "passage"))


def describe_store(info: Mapping[str, Any]) -> str:
    """Lay out what a store says about itself, for a notebook."""
    rows = [
        ("store", info["path"]),
        ("documents", f"{info['documents']:,}"),
        ("bits", str(info["bits"])),
        ("labels", f"{info['labels']:,}"),
        ("fields", ", ".join(info["fields"])),
        ("size", f"{info['bytes'] / 1e6:,.1f} MB"),
    ]
    return html_table([row for row in rows if row[1]])


def _starts(hits: "Sequence[Hit]", id_width: int, label_width: int) -> list[str]:
    """Lay out the columns before the passage, each with a gap after it."""
    columns = [
        _column([_number(hit) for hit in hits], 8, right=True),
        _column([hit.id for hit in hits], id_width),
        _column([", ".join(hit.labels or ()) for hit in hits], label_width),
    ]
    filled = [column for column in columns if any(column)]
    return ["".join(cell + _GAP for cell in row) for row in zip(*filled, strict=True)]


def _number(hit: "Hit") -> str:
    if hit.score is not None:
        return f"{hit.score:.3f}"
    return str(hit.distance) if hit.expected is None else f"{hit.expected:.1f}"


def _column(values: Sequence[str], most: int, *, right: bool = False) -> list[str]:
    """Bring values to one width; what is too long loses its middle, since both ends tell more."""
    cells = [_cut(one_line(value), max(8, most)) for value in values]
    width = max(map(n_cells, cells), default=0)
    spaces = [" " * (width - n_cells(cell)) for cell in cells]
    return [f"{b}{a}" if right else f"{a}{b}" for a, b in zip(cells, spaces, strict=True)]


def _cut(text: str, width: int) -> str:
    if n_cells(text) <= width:
        return text
    kept = (width - len(DOTS)) * len(text) // n_cells(text)
    return f"{text[: kept // 3]}{DOTS}{text[len(text) - kept + kept // 3 :]}"
