"""Where the tokens of a text are, in characters of the text as it was given."""

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.text.tokenizer import find_tokens, normalize


class Spans(NamedTuple):
    """The tokens of one text: token j is `text[starts[j]:stops[j]]`, of hash `hashes[j]`."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    hashes: NDArray[np.uint64]


def find_spans(text: str) -> Spans:
    """Find the tokens of a text, as `tokenize` does, and where they are.

    >>> text = "The Caf\u00e9's crew"
    >>> spans = find_spans(text)
    >>> [text[i:j] for i, j in zip(spans.starts, spans.stops)]
    ['The', 'Caf\u00e9', 'crew']
    """
    tokens = find_tokens([text])
    starts, stops = tokens.starts, tokens.stops
    if not text.isascii():
        # Bytes to characters of the normalised text, and those to characters of the text.
        characters = np.cumsum(np.append((tokens.data & 0xC0) != 0x80, True)) - 1
        places = _places(text)
        starts, stops = places[characters[starts]], places[characters[stops]]
    return Spans(starts, stops, tokens.hashes)


def _places(text: str) -> NDArray[np.int64]:
    """Tell for each character of the normalised text where in the text it comes from.

    Lower case and NFC may change the number of characters. What belongs together is then found
    group by group: a character and the combining marks that follow it.
    """
    whole = normalize(text)
    if len(whole) == len(text) and unicodedata.is_normalized("NFC", text):
        return np.arange(len(text) + 1)
    firsts = [i for i, char in enumerate(text) if not i or not unicodedata.combining(char)]
    places: list[int] = []
    for first, end in zip(firsts, [*firsts[1:], len(text)], strict=True):
        places += [first] * len(normalize(text[first:end]))
    # Korean letters join across groups; then the places are near, not exact.
    places = places[: len(whole)] + [len(text)] * (len(whole) - len(places))
    return np.array([*places, len(text)])
