"""How often a document counts as having a word: the opening says what it is about.

A word among the first eight that are not stop words counts four times, one among the next sixteen
twice. `docs/relevance.md` has what that is worth.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize

OPENING = ((8, 2), (24, 1))  # the first so many words count so much more


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
