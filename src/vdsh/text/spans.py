"""Where the tokens of a text are, in characters of the text as it was given."""

import unicodedata
from collections.abc import Sequence
from os.path import commonprefix
from typing import NamedTuple

from vdsh.text.tokenizer import find_plainly, normalize


class Span(NamedTuple):
    """A token, and its place: it was made of `text[start:stop]`."""

    start: int
    stop: int
    token: str


def find_spans(text: str) -> list[Span]:
    """Find the tokens of a text, as `tokenize` does, and where they are.

    >>> find_spans("The Caf\u00e9's crew")[1]
    Span(start=4, stop=8, token='caf\u00e9')
    """
    whole = normalize(text)
    places = _places(text, whole)
    return [Span(places[i], places[j], whole[i:j]) for i, j in find_plainly(whole)]


def _places(text: str, whole: str) -> Sequence[int]:
    """Tell for each character of the normalised text where in the text it comes from.

    Lower case and NFC may change the number of characters. What belongs together is then found
    group by group: a character and the combining marks that follow it.
    """
    if len(whole) == len(text) and unicodedata.is_normalized("NFC", text):
        return range(len(text) + 1)
    firsts = [i for i, char in enumerate(text) if not i or not unicodedata.combining(char)]
    places: list[int] = []
    for first, end in zip(firsts, [*firsts[1:], len(text)], strict=True):
        given, made = text[first:end], normalize(text[first:end])
        n_same = len(commonprefix([given[::-1], made[::-1]]))  # marks at the end that are as before
        places += [first] * (len(made) - n_same) + list(range(end - n_same, end))
    # Korean letters join across groups; then the places are near, not exact.
    places = places[: len(whole)] + [len(text)] * (len(whole) - len(places))
    return [*places, len(text)]
