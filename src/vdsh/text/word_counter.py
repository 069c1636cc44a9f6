"""`WordCounter`: texts to counts of known words; all that serving needs of a vocabulary."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import while_wanted
from vdsh.errors import InputError
from vdsh.jit import compiled, spread
from vdsh.text.counts import Counts
from vdsh.text.tokenizer import (
    character_classes,
    find_tokens,
    hash_words,
    lay_out,
    tokenize,
)

Hashes = NDArray[np.uint64]
Terms = NDArray[np.int32]


class WordTable(NamedTuple):
    """A vocabulary as an open-addressing hash table; hashes stand for words, as in the index."""

    slots: Terms  # term number, or -1 where the slot is free; a power of two of them
    hashes: Hashes


def build_table(terms: list[str]) -> WordTable:
    """Make the hash table of a vocabulary."""
    from vdsh.text.token_kernels import place

    hashes = hash_words(terms)
    size = 1 << (2 * len(terms)).bit_length()  # at most half full
    return WordTable(place(hashes, size), hashes)


def document_frequencies(texts: Sequence[str]) -> dict[bytes, int]:
    """Count in how many documents each distinct token occurs."""
    from vdsh.text.token_kernels import count_words

    tokens = find_tokens(texts)
    firsts, counts = count_words(tokens.hashes, tokens.documents)
    data = tokens.data.tobytes()
    starts, stops = tokens.starts[firsts].tolist(), tokens.stops[firsts].tolist()
    spans = (data[i:j] for i, j in zip(starts, stops, strict=True))
    return dict(zip(spans, counts.tolist(), strict=True))


T = TypeVar("T")
_BLOCK = 2000  # documents a thread counts at a time: a few megabytes of text
_PLAIN = 1e-7  # seconds a character without kernels


class WordCounter:
    """Counts the words of a vocabulary: column j counts word j.

    `stop_words` are passed over on purpose, so that nobody is told they are unknown.
    """

    def __init__(self, words: Sequence[str], stop_words: frozenset[str] = frozenset()) -> None:
        self.words = words
        self.stop_words = stop_words

    def count(self, texts: Sequence[str]) -> Counts:
        """Count the known words of each text."""
        if compiled(_PLAIN * sum(map(len, texts))):
            parts = over_texts(texts, self._count_compiled)
        else:
            parts = [self._count_plainly(text) for text in while_wanted(texts)]
        if len(parts) == 1:
            data, indices, lengths = parts[0]
        else:
            columns = zip(*parts, strict=True) if parts else [[np.zeros(0, np.int32)]] * 3
            data, indices, lengths = (np.concatenate(part) for part in columns)
        indptr = np.zeros(len(texts) + 1, np.int64 if len(data) > 2**31 - 1 else np.int32)
        lengths.cumsum(out=indptr[1:])
        return Counts(data, indices, indptr, (len(texts), len(self.words)))

    def unknown(self, text: str) -> list[str]:
        """List the words of a text that are neither counted nor stop words, each once."""
        words = (word for word in dict.fromkeys(tokenize(text)) if word not in self._columns)
        return [word for word in words if word not in self.stop_words]

    def unknown_shares(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return for each text the share of its words, stop words left out, that are not counted.

        A text without any other words has none.
        """
        shares = np.zeros(len(texts), np.float32)
        for row, text in enumerate(texts):
            words = [w for w in tokenize(text) if w in self._columns or w not in self.stop_words]
            n_unknown = sum(word not in self._columns for word in words)
            shares[row] = n_unknown / max(1, len(words))
        return shares

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.words)}

    @cached_property
    def _table(self) -> WordTable:
        return build_table(list(self.words))

    def _count_compiled(self, texts: Sequence[str]) -> tuple[Terms, Terms, Terms]:
        """Give data, indices and row lengths of a CSR matrix."""
        from vdsh.text.token_kernels import count_texts

        data, offsets = lay_out(texts)
        return count_texts(data, offsets, character_classes(), *self._table)

    def _count_plainly(self, text: str) -> tuple[Terms, Terms, Terms]:
        found = Counter(tokenize(text))
        row = sorted((self._columns[word], n) for word, n in found.items() if word in self._columns)
        pairs = np.array(row, np.int32).reshape(-1, 2)
        return pairs[:, 1], pairs[:, 0], np.array([len(row)], np.int32)


def over_texts(texts: Sequence[str], count: Callable[[Sequence[str]], T]) -> list[T]:
    """Apply `count` to each block of texts, on all cores."""
    if 0 < len(texts) < _BLOCK // 8:  # as most often: one
        return [count(texts)]

    def blocks(start: int, stop: int) -> list[T]:
        edges = [*range(start, stop, _BLOCK), stop]
        return [count(texts[i:j]) for i, j in pairwise(edges)]

    return [part for parts in spread(blocks, len(texts), least=_BLOCK // 8) for part in parts]


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """Return texts as a list, or say what is wrong with them."""
    if type(texts) is list and all(type(text) is str for text in texts):
        return texts
    if isinstance(texts, str | bytes):
        raise InputError("Expected a list of texts, got one string. Put it into a list: [text].")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        kind = type(texts).__name__
        raise InputError(f"Expected a list of texts, got a {kind}. Give one of its columns.")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Document {i} is not a string but {type(text).__name__}.")
    return texts


def is_missing(value: Any) -> bool:
    """Tell whether a cell of a table is empty: None, NaN, or a missing value of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA, which is neither equal to itself nor unequal
        return True
