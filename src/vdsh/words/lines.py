"""Texts in one line, for tables: the passage that answers a query, its words marked."""

import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

from vdsh.words.passages import LENGTH, LONGEST, find_passage

# Control characters would command the terminal, and marks of direction turn a line around.
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
DOTS = "\u2026"


class Piece(NamedTuple):
    """A piece of a line, and whether it is a word to mark."""

    text: str
    marked: bool = False


def one_line(text: str) -> str:
    r"""Join the lines of a text; what is not to be seen in it becomes a space.

    >>> one_line("The probe\n   sent\x1b[2J pictures. ")
    'The probe sent [2J pictures.'
    """
    return _BREAKS.sub(" ", text).strip()


def n_cells(text: str) -> int:
    """Count the places that a line takes on a terminal: ideographs and emojis take two.

    >>> n_cells("Mars"), n_cells("\u706b\u661f"), n_cells("cafe\u0301")
    (4, 4, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def show_passage(text: str, words: Collection[str], width: int = LENGTH) -> list[Piece]:
    """Show where a text has the most of some words, in one line of so many places at most.

    >>> [piece.text for piece in show_passage("Pictures of Mars, sent home.", {"mars"})]
    ['Pictures of ', 'Mars', ', sent home.']
    """
    line, shown = one_line(text[:LONGEST]), list[Piece]()
    room, over = width, 1
    while over > 0 and room > 0:
        shown = _show(line, words, room)
        over = sum(n_cells(piece.text) for piece in shown) - width
        room -= max(1, over // 2)  # characters take two places at most
    return shown


def _show(line: str, words: Collection[str], width: int) -> list[Piece]:
    room = width if len(line) <= width else width - 2 * len(DOTS)
    start, stop, marks = find_passage(line, words, max(1, room))
    pieces = [Piece(DOTS)] if start else []
    at = start
    for first, last in marks:
        first = max(first, at)  # pairs of ideographs overlap
        pieces += [Piece(line[at:first]), Piece(line[first:last], True)]
        at = max(at, last)
    pieces += [Piece(line[at:stop]), Piece(DOTS if stop < len(line) else "")]
    return [piece for piece in pieces if piece.text]
