"""How often a document counts as having a word: the opening says what it is about.

A word among the first eight that are not stop words counts four times, one among the next sixteen
twice. `docs/relevance.md` has what that is worth.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import find_tokens, tokenize

OPENING = ((8, 2), (24, 1))  # the first so many words count so much more
_BLOCK = 2000  # texts: a few megabytes
_PLAIN = 1e-6  # seconds a character without kernels


def weigh_places(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Say how much each word counts, for documents of some sizes, laid end to end.

    >>> weigh_places(np.array([2, 9])).tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2]
    """
    places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    weights = np.ones(len(places), np.int64)
    for first, more in OPENING:
        weights += more * (places < first)
    return weights


def weigh_words(words: Sequence[str]) -> dict[str, int]:
    """Count the words of a document, in their order of appearance.

    >>> weigh_words(["moon", "mars", "moon"])
    {'moon': 8, 'mars': 4}
    """
    counts = Counter(words)
    for first, more in OPENING:
        for word in words[:first]:
            counts[word] += more
    return dict(counts)


def document_words(text: str) -> dict[str, int]:
    """Count the words of a document's text that are not stop words."""
    return weigh_words([word for word in tokenize(text) if word not in SMART])


class Counted(NamedTuple):
    """The words of some texts that are not stop words, each text's in any order.

    Text i has the words `words[numbers[j]]`, each `counts[j]` times, for j from `ends[i]` to below
    `ends[i + 1]`.
    """

    words: list[str]
    numbers: list[int]
    counts: list[int]
    ends: list[int]


def worth_counting(texts: Sequence[str]) -> bool:
    """Say whether to count the words of texts at once is faster than one text after the other."""
    return bool(texts) and compiled(_PLAIN * sum(map(len, texts)))


def count_blocks(texts: Sequence[str]) -> Iterator[tuple[Sequence[str], Counted]]:
    """Count the words of texts, some at a time; give those texts and their words."""
    for first in range(0, len(texts), _BLOCK):
        some = texts[first : first + _BLOCK]
        yield some, _count(some)


def _count(texts: Sequence[str]) -> Counted:
    """Count words; each different one is looked at once."""
    tokens = find_tokens(texts)
    _, firsts, at = np.unique(tokens.hashes, return_index=True, return_inverse=True)
    data = tokens.data.tobytes()
    spans = zip(tokens.starts[firsts].tolist(), tokens.stops[firsts].tolist(), strict=True)
    words = [data[start:stop].decode() for start, stop in spans]
    n_words = max(1, len(words))
    owners = np.repeat(np.arange(len(texts)), np.diff(tokens.documents))
    counted = np.array([word not in SMART for word in words], bool)[at]
    weights = weigh_places(np.bincount(owners[counted], minlength=len(texts)))
    pairs, places = np.unique((owners * n_words + at)[counted], return_inverse=True)
    counts = np.bincount(places, weights, minlength=len(pairs)).astype(np.int64)
    owners, numbers = np.divmod(pairs, n_words)
    ends = np.searchsorted(owners, np.arange(len(texts) + 1))
    return Counted(words, numbers.tolist(), counts.tolist(), ends.tolist())
