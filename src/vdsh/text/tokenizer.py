"""Words of a text: of many texts by numba kernels in one buffer of UTF-8 bytes, of one plainly.

The rules, in any language:

- Text is normalised (NFC) and lower-cased; a word is a run of letters, digits and combining marks.
- An apostrophe between letters belongs to the word ("don't", a SMART stop word); a final "'s"
  is cut off. Everything else, the underscore included, separates words.
- Words of more than `LONGEST` (100) characters are dropped: nobody writes those. Models also leave
  out words of one character, which the word index has.
- Han, Hiragana, Katakana, Thai, Lao, Burmese and Khmer are written without spaces: a run of them
  gives its overlapping pairs of characters, a lone one gives itself. Marks, and the vowels after a
  Thai or Lao consonant, count with their letter. Hangul has spaces and follows the first rule.
- An emoji or pictograph is a token by itself.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from os.path import commonprefix
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SEPARATOR, WORD, IDEOGRAPH, SYMBOL, APOSTROPHE, ATTACHED = range(6)
LONGEST = 100  # characters; the longest words of any language have fewer, encoded files more
MOST_ATTACHED = 8  # marks that count with one letter, so that no token is without end
FNV_OFFSET, FNV_PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
_NFC_PIECE = 1000  # characters that are composed together, or up to twice as many
TABLE_SIZE = 0x20000  # code points above are ideographs (planes 2 and 3) or not text
_IDEOGRAPHS = ((0x2E80, 0x2FE0), (0x3005, 0x3008), (0x3041, 0x3100), (0x31F0, 0x3200),
               (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0xFF66, 0xFF9E))  # fmt: skip
_WITHOUT_SPACES = {*range(0x0E00, 0x0F00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800)}
_VOWELS_AFTER = (0x0E30, 0x0E32, 0x0E33, 0x0E45, 0x0EB0, 0x0EB2, 0x0EB3)  # Thai and Lao
_PICTOGRAPHS = ((0x2600, 0x27C0), (0x1F000, 0x1FB00))
_STYLES = ((0xFE00, 0xFE10), (0x1F3FB, 0x1F400))  # variants and skin tones of the emoji before them
# Where they overlap the first counts.
_RANGES = ((_STYLES, SEPARATOR), (_PICTOGRAPHS, SYMBOL), (_IDEOGRAPHS, IDEOGRAPH))


class Tokens(NamedTuple):
    """The tokens of some texts, in order, as spans of one byte buffer.

    Token j is `data[starts[j]:stops[j]]`; document i has the tokens from `documents[i]` to
    `documents[i + 1]`.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    documents: NDArray[np.int64]


def tokenize(text: str, *, shortest: int = 2) -> list[str]:
    """Split a text into its tokens, stop words included, of so many characters at least.

    >>> tokenize("The shuttle's crew didn't see Caf\u00e9 42!")
    ['the', 'shuttle', 'crew', "didn't", 'see', 'caf\u00e9', '42']
    >>> tokenize("\u5bc6\u7801\u5b66 \U0001f600")
    ['\u5bc6\u7801', '\u7801\u5b66', '\U0001f600']
    """
    text = normalize(text)
    if not text.isascii():
        return [text[start:stop] for start, stop in find_plainly(text, shortest)]
    words = _ASCII.findall(text)  # ten times as quick
    if "'" in text:
        words = [word[:-1] if word[-1] == "'" else word.removesuffix("'s") for word in words]
    return [word for word in words if shortest <= len(word) <= LONGEST]


def find_plainly(text: str, shortest: int = 2) -> list[tuple[int, int]]:
    """Find where the tokens of a text are, which is normalised already, without kernels."""
    found: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text.translate(_LETTERS)):
        (start, stop), kind = match.span(), match[0][0]
        if kind == "w":
            stop -= 1 if text[stop - 1] == "'" else 2 * text.endswith("'s", start, stop)
            found += [(start, stop)] if shortest <= stop - start <= LONGEST else []
        elif kind in "im":
            ends = [start + unit.end() for unit in _UNIT.finditer(match[0])]
            pairs = zip([start, *ends[:-2]], ends[1:], strict=False)
            found += list(pairs) or [(start, stop)]
        else:
            found.append((start, stop))
    return found


def find_tokens(texts: Sequence[str], *, shortest: int = 2) -> Tokens:
    """Lay the lower-cased texts end to end as UTF-8 and find their tokens.

    Words of fewer than `shortest` characters are dropped.
    """
    from vdsh.text import token_kernels

    data, offsets = lay_out(texts)
    return Tokens(data, *token_kernels.find_tokens(data, offsets, character_classes(), shortest))


def lay_out(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Lay the lower-cased texts end to end as UTF-8; give where each begins, and the end."""
    return lay_out_as_given(map(normalize, texts))


def lay_out_as_given(texts: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Lay texts end to end as UTF-8; give where each begins, and the end."""
    pieces = [text.encode(errors="replace") for text in texts]
    offsets = np.array([0, *accumulate(map(len, pieces))], np.int64)
    return np.frombuffer(b"".join(pieces), np.uint8), offsets


def hash_words(words: Sequence[str]) -> NDArray[np.uint64]:
    """Hash words by kernels."""
    from vdsh.text.token_kernels import hash_all

    return hash_all(*lay_out_as_given(words))


def hash_plainly(words: Sequence[str]) -> NDArray[np.uint64]:
    """Hash words as the kernels do, without them."""
    prime, most = int(FNV_PRIME), (1 << 64) - 1
    values: dict[str, int] = {}
    for word in words:
        if word not in values:
            value = int(FNV_OFFSET)
            for byte in word.encode(errors="replace"):
                value = (value ^ byte) * prime & most
            values[word] = value
    return np.array([values[word] for word in words], np.uint64)


def normalize(text: str) -> str:
    """Bring a text into the form in which words are told apart: NFC and lower case."""
    if text.isascii():
        return text.lower()
    return to_nfc(text.lower()).replace("\u2019", "'")


def to_nfc(text: str) -> str:
    """Compose letters and their marks (NFC), in time that grows with the length and no faster.

    Python sorts the marks of a letter by insertion: 160,000 in a row take 17 s. So a text is cut
    where no mark follows, or where a thousand do.
    """
    if unicodedata.is_normalized("NFC", text):
        return text
    pieces: list[str] = []
    start = 0
    while start < len(text):
        stop = start + _NFC_PIECE
        longest = stop + _NFC_PIECE
        while stop < min(longest, len(text)) and _may_join(text[stop]):
            stop += 1
        pieces.append(unicodedata.normalize("NFC", text[start:stop]))
        start = stop
    return "".join(pieces)


def _may_join(char: str) -> bool:
    """Say whether a character may be composed with the one before: marks, and Korean letters."""
    return unicodedata.category(char)[0] == "M" or "\u1160" <= char < "\u1200"


class _Letters(dict[int, str]):
    """A letter for the class of each code point, for `str.translate`; filled as they are met."""

    def __missing__(self, point: int) -> str:
        letter = self[point] = " wis'm"[_class(point)]
        return letter


_LETTERS = _Letters()
_ASCII = re.compile("[a-z0-9]+(?:'[a-z0-9]+)*'?")
_UNIT = re.compile(f"[im]m{{0,{MOST_ATTACHED}}}")
_TOKEN = re.compile(f"w+(?:'w+)*'?|{_UNIT.pattern}(?:i{_UNIT.pattern[4:]})*|s")


def _class(point: int) -> int:
    """Tell what a code point is in a text."""
    if point >= TABLE_SIZE:
        return IDEOGRAPH if point < 0x40000 else SEPARATOR
    if point == ord("'"):
        return APOSTROPHE
    for ranges, kind in _RANGES:
        if any(start <= point < stop for start, stop in ranges):
            return kind
    category = unicodedata.category(chr(point))[0]
    if category in "LM" and point in _WITHOUT_SPACES:
        return ATTACHED if category == "M" or point in _VOWELS_AFTER else IDEOGRAPH
    return WORD if category in "LNM" else SEPARATOR


@cache
def character_classes() -> NDArray[np.uint8]:
    """Tell for each code point what it is in a text."""
    classes = np.zeros(TABLE_SIZE, np.uint8)
    for point in range(TABLE_SIZE):
        if unicodedata.category(chr(point))[0] in "LNM":
            classes[point] = WORD
    for point in _WITHOUT_SPACES:
        classes[point] = _class(point)
    for ranges, kind in reversed(_RANGES):
        for start, stop in ranges:
            classes[start:stop] = kind
    classes[ord("'")] = APOSTROPHE
    classes.setflags(write=False)
    return classes


class Span(NamedTuple):
    """A token, and its place: it was made of `text[start:stop]`."""

    start: int
    stop: int
    token: str


def find_spans(text: str, *, shortest: int = 2) -> list[Span]:
    """Find the tokens of a text, as `tokenize` does, and where they are.

    >>> find_spans("The Caf\u00e9's crew")[1]
    Span(start=4, stop=8, token='caf\u00e9')
    """
    whole = normalize(text)
    places = _places(text, whole)
    return [Span(places[i], places[j], whole[i:j]) for i, j in find_plainly(whole, shortest)]


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
