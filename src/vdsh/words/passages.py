"""Where a text answers a query: the words it has, its best passage in one line, its marks."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vdsh.jit import compiled
from vdsh.text.languages import Language
from vdsh.text.tokenizer import Span, find_spans, find_tokens, tokenize
from vdsh.words.query import is_joined

LENGTH = 240  # characters of a passage, about two lines
LONGEST = 50_000  # characters of a text that are looked at
_BEFORE = 40  # characters before the first word that matters, at most; of short passages fewer
_PLAIN = 1e-7  # seconds a character without kernels

# Control characters would command the terminal, and marks of direction turn a line around.
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
DOTS = "\u2026"


class Passage(NamedTuple):
    """A stretch of a text."""

    start: int  # in characters of the text, as all that follows
    stop: int
    marks: list[tuple[int, int]]  # where words begin and end, in order


def words_in(texts: Sequence[str], words: Collection[str], language: Language) -> list[list[str]]:
    """List for each text the words, as it has them, that are forms of some words, in order."""
    stems = set(language.stems(list(words)))
    letters = {stem[:1] for stem in stems} | {word[:1] for word in words}
    if not stems or not texts:
        return [[] for _ in texts]
    if not compiled(_PLAIN * sum(map(len, texts))):
        listed = [dict.fromkeys(tokenize(text, shortest=1)) for text in texts]
        with_stems = [zip(some, language.stems(some), strict=True) for some in listed]
        return [[word for word, stem in some if stem in stems] for some in with_stems]
    found = find_tokens(texts, shortest=1)
    first = np.zeros(256, bool)  # a form begins as its stem does, or not with a letter of ASCII
    first[128:] = True
    first[[ord(letter) for letter in letters if letter and letter.isascii()]] = True
    at = np.flatnonzero(first[found.data[found.starts]])
    data, spans = found.data.tobytes(), (found.starts[at].tolist(), found.stops[at].tolist())
    tokens = [data[start:stop] for start, stop in zip(*spans, strict=True)]
    words_of = {token: token.decode() for token in set(tokens)}
    pairs = zip(words_of.items(), language.stems(words_of.values()), strict=True)
    forms = {token: word for (token, word), stem in pairs if stem in stems}
    bounds = pairwise(np.searchsorted(at, found.documents).tolist())
    listed_in = [dict.fromkeys(filter(forms.__contains__, tokens[i:j])) for i, j in bounds]
    return [[forms[token] for token in some] for some in listed_in]


def find_passage(
    text: str, words: Collection[str], length: int = LENGTH, *, ranked: bool = False
) -> Passage:
    """Find the stretch of a text that has the most of some words, each counted once.

    `ranked`: whether they come by rank. The stretch then has the first one that is in the text.

    >>> find_passage("The probe sent pictures of Mars.", {"mars"}).marks
    [(27, 31)]
    """
    if not words:
        return Passage(*cut_passage(text, 0, length), [])
    text_seen = text[:LONGEST]
    spans = [span for span in find_spans(text_seen, shortest=1) if span.token in words]
    names = [span for word in words for span in find_name(text_seen, word)]
    spans = sorted([*spans, *names]) if names else spans
    weights = weigh_words(spans, words if ranked else ())
    start, stop = cut_passage(text, best_start(spans, weights, length), length)
    return Passage(start, stop, [(a, b) for a, b, _ in spans if start <= a and b <= stop])


def find_name(text: str, name: str) -> list[Span]:
    """Find where a text has a name that signs join; nowhere where the name is a plain word.

    >>> find_name("call foo.bar(1), not afoo.bar", "foo.bar")
    [Span(start=5, stop=12, token='foo.bar')]
    """
    if not is_joined(name):
        return []
    pattern = re.compile(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", re.IGNORECASE)
    return [Span(*match.span(), name) for match in pattern.finditer(text)]


def weigh_words(spans: Sequence[Span], ranked: Collection[str] = ()) -> dict[str, float]:
    """Weigh the words that a text has: alike, but the best ranked of them above all others."""
    weights = dict.fromkeys((span.token for span in spans), 1.0)
    first = next((word for word in ranked if word in weights), None)
    return weights if first is None else weights | {first: 2.0 * len(weights)}


def best_start(spans: Sequence[Span], weights: Mapping[str, float], length: int = LENGTH) -> int:
    """Return the place after which a passage has the most weight, each word counted once."""
    starts, stops = [span.start for span in spans], [span.stop for span in spans]
    words = [(span.token, weights[span.token]) for span in spans]
    best, most = 0, 0.0
    for i, start in enumerate(starts):
        # What ends later may be cut off, since a passage may begin a little earlier.
        end = max(i + 1, bisect_right(stops, start + length - 3 * _before(length) // 2))
        weight = sum(dict(words[i:end]).values())
        if weight > 1.05 * most:  # an earlier passage is the better one of two alike
            best, most = start, weight
    return best


def cut_passage(text: str, at: int, length: int = LENGTH) -> tuple[int, int]:
    """Cut a passage around a place, between words where there are spaces."""
    start, before = 0, _before(length)
    if at > 3 * before // 2:  # near its beginning, the text is shown from there
        first = max(0, min(at - before, len(text) - length))  # the end is shown with all before it
        start = first and max(first, text.find(" ", first, at) + 1)
    stop = min(len(text), start + length)
    if stop < len(text):
        stop = max(text.rfind(" ", stop - before, stop), 0) or stop
    return start, stop


def _before(length: int) -> int:
    """Say how many characters are shown before the first word that matters, at most."""
    return min(_BEFORE, length // 4)


class Fragment(NamedTuple):
    """A part of a line, and whether it is a word to mark."""

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


def show_passage(
    text: str, words: Collection[str], width: int = LENGTH, *, ranked: bool = False
) -> list[Fragment]:
    """Show where a text has the most of some words, in one line of so many places at most.

    `ranked`: as in `find_passage`.

    >>> [piece.text for piece in show_passage("Pictures of Mars, sent home.", {"mars"})]
    ['Pictures of ', 'Mars', ', sent home.']
    """
    line, shown = one_line(text[:LONGEST]), list[Fragment]()
    room, over = width, 1
    while over > 0 and room > 0:
        shown = _show(line, words, room, ranked)
        over = sum(n_cells(piece.text) for piece in shown) - width
        room -= max(1, over // 2)  # characters take two places at most
    return shown


def _show(line: str, words: Collection[str], width: int, ranked: bool) -> list[Fragment]:
    room = width if len(line) <= width else width - 2 * len(DOTS)
    start, stop, marks = find_passage(line, words, max(1, room), ranked=ranked)
    pieces = [Fragment(DOTS)] if start else []
    at = start
    for first, last in marks:
        first = max(first, at)  # pairs of ideographs overlap
        pieces += [Fragment(line[at:first]), Fragment(line[first:last], True)]
        at = max(at, last)
    pieces += [Fragment(line[at:stop]), Fragment(DOTS if stop < len(line) else "")]
    return [piece for piece in pieces if piece.text]
