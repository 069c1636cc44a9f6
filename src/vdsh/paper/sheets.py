"""Tables of text, written for Markdown and a terminal."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Sheet(NamedTuple):
    """A table whose cells are texts."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""  # what the reader must know to read it: the data, the marks


def number(value: float | None) -> str:
    """Write three digits, or a dash where there is no number.

    >>> number(0.5), number(None)
    ('0.500', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def markdown(sheets: Sequence[Sheet], *, level: int = 3) -> str:
    """Write tables as Markdown, each below its title.

    >>> print(markdown([Sheet("T", ["a", "b"], [["1", "2"]])]))
    ### T
    <BLANKLINE>
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    return "\n\n".join(_markdown(sheet, level) for sheet in sheets)


def _markdown(sheet: Sheet, level: int) -> str:
    lines = [_row(sheet.header), "|---" * len(sheet.header) + "|", *map(_row, sheet.rows)]
    note = f"\n\n{sheet.note}" if sheet.note else ""
    return f"{'#' * level} {sheet.title}\n\n" + "\n".join(lines) + note


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(sheets: Sequence[Sheet], console: Console) -> None:
    """Print tables on a terminal."""
    for sheet in sheets:
        table = Table(
            *sheet.header, title=sheet.title, caption=sheet.note or None, title_justify="left"
        )
        for row in sheet.rows:
            table.add_row(*(cell.replace("**", "") for cell in row))
        console.print(table)
