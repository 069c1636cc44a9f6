"""Words as PostgreSQL's text search has them; our tokenizer makes them, in every language.

A text becomes a `tsvector`. A word that it has n times is at the positions 1 to n, which say
nothing else. PostgreSQL has no function for their number, but ranks one word by the sum of
1/1² + 1/2² + … + 1/n², from which n can be told.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from vdsh.jit import compiled
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import Tokens
from vdsh.text.word_counter import over_blocks
from vdsh.words.query import content_words
from vdsh.words.segment import ABSENT

MOST_COUNTED = 255  # of a word, as in the word index of a folder; PostgreSQL keeps 256 positions
LONGEST = ABSENT - 1  # words of a document, as there
MOST_BYTES = 1_000_000  # of a tsvector; PostgreSQL takes 1,048,575
ALWAYS_FIT = MOST_BYTES // 1000  # different words of any length and number
# How often a document has a word. The sum ends in π²/6, so 1/(π²/6 - sum) - 1/2 is just above n.
COUNT = (
    "round(1 / (1.64493406685 * (1 - ts_rank('{{1,1,1,1}}', words, %s::tsquery)::float8)) - 0.5)"
)

_PLAIN = 1e-6  # seconds a character without kernels
_POSITIONS = ["", ""]  # one position need not be said
_POSITIONS += [":" + ",".join(map(str, range(1, n + 1))) for n in range(2, MOST_COUNTED + 1)]


def to_vectors(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Write the words of each text as a tsvector, and count them; stop words are left out.

    >>> to_vectors(["The moon, a moon of Mars"])
    [("'moon':1,2 'mars'", 3)]
    """
    if texts and compiled(_PLAIN * sum(map(len, texts))):
        return [vector for some in over_blocks(texts, _write_vectors) for vector in some]
    return [_vector(content_words(text)) for text in texts]


def _write_vectors(tokens: Tokens) -> list[tuple[str, int]]:
    """Do what `to_vectors` does, many texts at once: each different word is looked at once."""
    _, firsts, at = np.unique(tokens.hashes, return_index=True, return_inverse=True)
    data = tokens.data.tobytes()
    spans = zip(tokens.starts[firsts].tolist(), tokens.stops[firsts].tolist(), strict=True)
    words = [data[start:stop].decode() for start, stop in spans]
    n_docs, n_words = len(tokens.documents) - 1, max(1, len(words))
    owners = np.repeat(np.arange(n_docs), np.diff(tokens.documents))
    counted = np.array([word not in SMART for word in words], bool)[at]
    pairs, counts = np.unique((owners * n_words + at)[counted], return_counts=True)
    owners, numbers = np.divmod(pairs, n_words)
    ends = np.searchsorted(owners, np.arange(n_docs + 1)).tolist()
    lengths = np.bincount(owners, counts, n_docs).astype(int)
    quoted = [quote(word) for word in words]
    shown = zip(numbers.tolist(), np.minimum(counts, MOST_COUNTED).tolist(), strict=True)
    parts = [quoted[i] if n == 1 else quoted[i] + _POSITIONS[n] for i, n in shown]
    vectors = []
    for d, length in enumerate(np.minimum(lengths, LONGEST).tolist()):
        if ends[d + 1] - ends[d] <= ALWAYS_FIT:
            vectors.append((" ".join(parts[ends[d] : ends[d + 1]]), length))
        else:  # the first words of a text are kept, so their order matters
            own = at[tokens.documents[d] : tokens.documents[d + 1]].tolist()
            in_order = Counter(word for i in own if (word := words[i]) not in SMART)
            vectors.append(_vector(in_order))
    return vectors


def _vector(counts: Mapping[str, int]) -> tuple[str, int]:
    kept = counts if len(counts) <= ALWAYS_FIT else _first_that_fit(counts)
    parts = [quote(word) + _POSITIONS[min(n, MOST_COUNTED)] for word, n in kept.items()]
    return " ".join(parts), min(sum(counts.values()), LONGEST)


def quote(word: str) -> str:
    """Write a word so that nothing in it is a sign.

    >>> quote("o'neill")
    "'o''neill'"
    """
    if "'" in word or "\\" in word:
        word = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{word}'"


def any_of(words: Iterable[str]) -> str:
    """Ask for documents that have one of some words at least."""
    return " | ".join(map(quote, words))


def all_of(words: Iterable[str], without: Iterable[str] = ()) -> str:
    """Ask for documents that have all of some words, and none of others."""
    return " & ".join([*map(quote, words), *(f"!{quote(word)}" for word in without)])


def _first_that_fit(counts: Mapping[str, int]) -> Mapping[str, int]:
    kept: dict[str, int] = {}
    size = 0
    for word, n in counts.items():
        size += len(word.encode()) + 4 + 2 * min(n, MOST_COUNTED)
        if size > MOST_BYTES:
            break
        kept[word] = n
    return kept
