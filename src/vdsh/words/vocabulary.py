"""The words of a segment, for those that are mistyped or not finished yet.

A vocabulary is the words in order, with line breaks between them, as UTF-8: so it is searched where
it lies, by bisection, and takes no memory but its own. A word with accents stands behind itself
without them and a tab, since people type both; its stem is that of the word as it is written.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled, once
from vdsh.text.languages import fold

SHORTEST, LONGEST = 2, 40  # characters of a word that is kept
_UNSPACED = "\u2e80"  # from here on: scripts that are written without spaces
_PLAIN = 1e-6  # seconds a byte without kernels


# How many edits a word of so many letters may have. The first letter is taken as right: it mostly
# is, and other words need not be looked at.
EDITS = {8: 2, 4: 1}


def to_vocabulary(words: Iterable[str]) -> bytes:
    r"""Write words as a vocabulary.

    >>> to_vocabulary({"moon", "mars", "3"})
    b'mars\nmoon'
    """
    return join_words(map(to_line, words))


def to_line(word: str) -> bytes:
    r"""Write a word as a line; an empty one for those that are left out: numbers, ideographs.

    >>> to_line("caf\u00e9")
    b'cafe\tcaf\xc3\xa9'
    """
    form = fold(word)
    if SHORTEST <= len(form) <= LONGEST and form[0].isalpha() and form[0] < _UNSPACED:
        return (form if form == word else f"{form}\t{word}").encode(errors="replace")
    return b""


def join_words(words: Iterable[bytes]) -> bytes:
    """Write words of several vocabularies as one."""
    return b"\n".join(sorted({*filter(None, words)}))


def begin_with(vocabulary: bytes, prefix: str) -> Iterator[str]:
    """Give the words that begin with some letters, which have no accents, in order."""
    wanted = prefix.encode(errors="replace")
    at = _first_from(vocabulary, wanted)
    while vocabulary.startswith(wanted, at):
        end = vocabulary.find(b"\n", at)
        yield vocabulary[at : end if end >= 0 else None].decode().rpartition("\t")[2]
        if end < 0:
            return
        at = end + 1


class Initial:
    """The words of some vocabularies that begin with one letter.

    `text` has them with line breaks between them, `letters` its characters.
    """

    def __init__(self, vocabularies: Iterable[bytes], letter: str) -> None:
        first, after = letter.encode(), chr(ord(letter) + 1).encode()
        parts = [one[_first_from(one, first) : _first_from(one, after)] for one in vocabularies]
        self.text = "\n".join(part.decode().rstrip("\n") for part in parts if part)
        self.letters: NDArray[np.uint8 | np.uint32]
        try:
            self.letters = np.frombuffer(self.text.encode("latin-1"), np.uint8)
        except UnicodeEncodeError:
            self.letters = np.frombuffer(self.text.encode("utf-32-le"), np.uint32)

    @once
    def words(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Where each word begins, and which letters it has."""
        from vdsh.words.vocabulary_kernels import letters_of

        return letters_of(self.letters)


def nearest_words(words: Initial, word: str) -> dict[str, int]:
    """Find words that may be meant by a mistyped one, with the number of edits: the fewest.

    They begin as it does. Accents count nothing: the mistyped word has none.
    """
    most = next((edits for letters, edits in EDITS.items() if len(word) >= letters), 0)
    if not most or any(map(str.isdigit, word)):  # E0382 is no other error, mistyped
        return {}
    found = _within_edits(words, word, most)
    fewest = min(found.values(), default=0)
    return {other: edits for other, edits in found.items() if edits == fewest}


def _within_edits(words: Initial, word: str, most: int) -> dict[str, int]:
    if compiled(_PLAIN * len(words.text)):
        from vdsh.words.vocabulary_kernels import within_edits

        wanted = np.frombuffer(word.encode("utf-32-le"), np.uint32)
        rows = within_edits(words.letters, *words.words, wanted, most).tolist()
        return {words.text[i:j]: edits for i, j, edits in rows}
    lines = [line.partition("\t") for line in words.text.split("\n")]
    near = [line for line in lines if abs(len(line[0]) - len(word)) <= most]
    counts = {other or form: count_edits(word, form, most) for form, _, other in near}
    return {other: edits for other, edits in counts.items() if edits <= most}


def count_edits(word: str, other: str, most: int) -> int:
    """Count letters to insert, leave out, replace or swap with the next, up to most + 1.

    >>> count_edits("serach", "search", 2)
    1
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        new = [i]
        for j, one in enumerate(other, 1):
            cost = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (letter != one))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == one:
                cost = min(cost, before[j - 2] + 1)
            new.append(cost)
        if min(new) > most:
            return most + 1
        before, row = row, new
    return row[-1]


def _first_from(vocabulary: bytes, wanted: bytes) -> int:
    """Return where the first word lies that is not before another one."""
    low, high = 0, len(vocabulary)
    while low < high:
        middle = vocabulary.rfind(b"\n", 0, (low + high) // 2) + 1
        middle = max(middle, low)
        end = vocabulary.find(b"\n", middle)
        end = len(vocabulary) if end < 0 else end
        if vocabulary[middle:end] < wanted:
            low = end + 1
        else:
            high = middle
    return min(low, len(vocabulary))
