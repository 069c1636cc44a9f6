"""`BagOfWords`: texts to a sparse matrix of word counts, fast."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vdsh.errors import InputError
from vdsh.jit import spread
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import Tokens, find_tokens, tokenize
from vdsh.text.vocabulary import WordTable, build_table, count_terms, document_frequencies

T = TypeVar("T")
_BLOCK = 2000  # documents a thread counts at a time: a few megabytes of text


class BagOfWords(BaseEstimator):  # type: ignore[misc]
    """Count the words of documents.

    Parameters
    ----------
    vocabulary_size : int, default=10_000
        Keep at most this many words: those in the most documents (ties in alphabetical order).
    min_df, max_df : int or float, default=1 and 1.0
        Keep words that occur in at least / at most so many documents; a float is a share of them.
    stop_words : "smart", None or list of str, default="smart"
        Words that are never counted.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_terms,)
        The counted words in alphabetical order; column j counts word j.

    Examples
    --------
    >>> bag = BagOfWords().fit(["a shuttle launch", "the launch of a launch pad"])
    >>> [str(word) for word in bag.vocabulary_]
    ['launch', 'pad', 'shuttle']
    >>> bag.transform(["launch, launch!"]).toarray()
    array([[2, 0, 0]], dtype=int32)
    """

    def __init__(
        self,
        vocabulary_size: int = 10_000,
        *,
        min_df: float = 1,
        max_df: float = 1.0,
        stop_words: str | Sequence[str] | None = "smart",
    ) -> None:
        self.vocabulary_size = vocabulary_size
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary of the texts `X`."""
        texts = _check_texts(X)
        n_docs, frequencies = len(texts), _document_frequencies(texts)
        stop = self._stop_words()
        low, high = _bound(self.min_df, n_docs, "min_df"), _bound(self.max_df, n_docs, "max_df")
        if self.vocabulary_size < 1:
            raise InputError(f"vocabulary_size must be at least 1. Got {self.vocabulary_size}.")
        kept = [w for w, df in frequencies.items() if low <= df <= high and w not in stop]
        if not kept:
            raise InputError(
                f"No word is left to count in {n_docs} documents with {len(frequencies)} distinct "
                f"words: check stop_words, min_df={self.min_df} and max_df={self.max_df}."
            )
        kept.sort(key=lambda word: (-frequencies[word], word))
        self.vocabulary_ = np.array(sorted(kept[: self.vocabulary_size]))
        self.__dict__.pop("_table", None)
        return self

    def transform(self, X: Iterable[str]) -> csr_array:
        """Count the known words of each text: int32 csr_array of shape (n_docs, n_terms)."""
        check_is_fitted(self)
        texts = _check_texts(X)
        table = self._table
        parts = _over_blocks(texts, lambda tokens: count_terms(tokens, table))
        if not parts:
            return csr_array(np.zeros((0, len(self.vocabulary_)), np.int32))
        data, indices, lengths = (np.concatenate(part) for part in zip(*parts, strict=True))
        indptr = np.zeros(len(texts) + 1, np.int64 if len(data) > 2**31 - 1 else np.int32)
        np.cumsum(lengths, out=indptr[1:])
        return csr_array((data, indices, indptr), shape=(len(texts), len(self.vocabulary_)))

    def fit_transform(self, X: Iterable[str], y: Any = None) -> csr_array:
        """Learn the vocabulary of the texts and count them."""
        texts = _check_texts(X)
        return self.fit(texts).transform(texts)

    def unknown_words(self, text: str) -> list[str]:
        """List the words of a text that are not counted, in order, each once.

        Stop words, which nobody would count, are left out.
        """
        check_is_fitted(self)
        stop = self._stop_words()
        words = [word for word in dict.fromkeys(tokenize(text)) if word not in stop]
        n_known = np.diff(self.transform(words).indptr)
        return [word for word, n in zip(words, n_known, strict=True) if not n]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the word of each column."""
        check_is_fitted(self)
        return self.vocabulary_.astype(object)

    @cached_property
    def _table(self) -> WordTable:
        return build_table([str(word) for word in self.vocabulary_])

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_table"}

    def _stop_words(self) -> frozenset[str]:
        if isinstance(self.stop_words, str):
            if self.stop_words != "smart":
                raise InputError(
                    f'stop_words must be "smart", None or a list of words. Got {self.stop_words!r}.'
                )
            return SMART
        return frozenset(self.stop_words or ())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _check_texts(texts: Iterable[str]) -> Sequence[str]:
    if isinstance(texts, str | bytes):
        raise InputError("Expected a list of texts, got one string. Put it into a list: [text].")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"Document {i} is not a string but {type(text).__name__}.")
    return texts


def _bound(value: float, n_docs: int, name: str) -> float:
    """Turn min_df or max_df into a number of documents."""
    share = isinstance(value, float | np.floating)
    if value < 0 or (share and value > 1):
        raise InputError(f"{name} must be a share from 0.0 to 1.0 or a whole number. Got {value}.")
    return value * n_docs if share else value


def _over_blocks(texts: Sequence[str], count: Callable[[Tokens], T]) -> list[T]:
    """Apply `count` to the tokens of each block of texts, on all cores."""

    def blocks(start: int, stop: int) -> list[T]:
        edges = [*range(start, stop, _BLOCK), stop]
        return [count(find_tokens(texts[i:j])) for i, j in pairwise(edges)]

    return [part for parts in spread(blocks, len(texts), least=_BLOCK // 8) for part in parts]


def _document_frequencies(texts: Sequence[str]) -> dict[str, int]:
    """Count in how many texts each word occurs."""
    total: dict[bytes, int] = {}
    for block in _over_blocks(texts, document_frequencies):
        for word, n in block.items():
            total[word] = total.get(word, 0) + n
    return {word.decode(): n for word, n in total.items()}
