"""`BagOfWords`: texts to a sparse matrix of word counts, fast."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import InputError
from vdsh.estimator import Estimator, check_is_fitted
from vdsh.text.stopwords import stop_words
from vdsh.text.word_counter import WordCounter, check_texts, document_frequencies, over_texts


class BagOfWords(Estimator):
    """Count the words of documents.

    Parameters
    ----------
    vocabulary_size : int, default=10_000
        Keep at most this many words: those in the most documents (ties in alphabetical order).
    min_df, max_df : int or float, default=1 and 1.0
        Keep words that occur in at least / at most so many documents; a float is a share of them.
    stop_words : "smart", None or a list or set of str, default="smart"
        Words that are never counted.

    Attributes
    ----------
    vocabulary_ : object ndarray of shape (n_terms,)
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
        stop_words: str | Iterable[str] | None = "smart",
    ) -> None:
        self.vocabulary_size = vocabulary_size
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary of the texts `X`."""
        texts = check_texts(X)
        frequencies: Counter[bytes] = Counter()
        for block in over_texts(texts, document_frequencies):
            frequencies.update(block)
        return self.know(self._choose(frequencies, len(texts)))

    def _choose(self, frequencies: Mapping[bytes, int], n_docs: int) -> list[str]:
        """Choose the vocabulary by the number of documents that have each word, of n_docs."""
        stop = {word.encode(errors="replace") for word in stop_words(self.stop_words)}
        low, high = _bound(self.min_df, n_docs, "min_df"), _bound(self.max_df, n_docs, "max_df")
        if self.vocabulary_size < 1:
            raise InputError(f"vocabulary_size must be at least 1. Got {self.vocabulary_size}.")
        kept = [w for w, df in frequencies.items() if low <= df <= high and w not in stop]
        if not kept:
            raise InputError(
                f"No word is left to count in {n_docs} documents with {len(frequencies)} distinct "
                f"words: check stop_words, min_df={self.min_df} and max_df={self.max_df}."
            )
        if len(kept) > self.vocabulary_size:  # numbers are sorted ten times as fast as words
            least = sorted(map(frequencies.__getitem__, kept))[-self.vocabulary_size]
            kept = [word for word in kept if frequencies[word] >= least]
        kept.sort(key=lambda word: (-frequencies[word], word))  # UTF-8 keeps the order of letters
        return [word.decode() for word in sorted(kept[: self.vocabulary_size])]

    def know(self, words: Sequence[str]) -> Self:
        """Take a vocabulary as it is: column j counts word j."""
        self.vocabulary_ = np.array(words, object)  # fixed-width strings are all as long as one
        self.__dict__.pop("_counter", None)
        return self

    def transform(self, X: Iterable[str]) -> csr_array:
        """Count the known words of each text: int32 csr_array of shape (n_docs, n_terms)."""
        check_is_fitted(self, "vocabulary_")
        texts = check_texts(X)
        return self._counter.count(texts).to_csr()

    def fit_transform(self, X: Iterable[str], y: Any = None) -> csr_array:
        """Learn the vocabulary of the texts and count them."""
        texts = check_texts(X)
        return self.fit(texts).transform(texts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the word of each column."""
        check_is_fitted(self, "vocabulary_")
        return self.vocabulary_.copy()

    @cached_property
    def _counter(self) -> WordCounter:
        return WordCounter(self.vocabulary_.tolist())

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_counter"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _bound(value: float, n_docs: int, name: str) -> float:
    """Turn min_df or max_df into a number of documents."""
    share = isinstance(value, float | np.floating)
    if value < 0 or (share and value > 1):
        raise InputError(f"{name} must be a share from 0.0 to 1.0 or a whole number. Got {value}.")
    return value * n_docs if share else value
