"""Tables for notebooks: everything in them is escaped, words of a query are marked."""

from collections.abc import Iterable, Sequence
from html import escape

from vdsh.words.passages import Fragment

Cell = str | Sequence[Fragment]


def html_table(rows: Iterable[Sequence[Cell]], header: Sequence[str] = ()) -> str:
    """Write a table as HTML.

    >>> html_table([("1 < 2", [Fragment("red "), Fragment("Mars", True)])])
    '<table><tbody><tr><td style="text-align: left">1 &lt; 2</td>\
<td style="text-align: left">red <mark>Mars</mark></td></tr></tbody></table>'
    """
    head = _row("th", header)
    body = "".join(_row("td", row) for row in rows)
    return f"<table>{head and f'<thead>{head}</thead>'}<tbody>{body}</tbody></table>"


def _row(tag: str, cells: Sequence[Cell]) -> str:
    if not cells:
        return ""
    inner = (f'<{tag} style="text-align: left">{_cell(cell)}</{tag}>' for cell in cells)
    return f"<tr>{''.join(inner)}</tr>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    marked = (f"<mark>{escape(text)}</mark>" if on else escape(text) for text, on in cell)
    return "".join(marked)
