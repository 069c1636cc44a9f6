"""What words become in the index, remembered: most words of new documents were met before."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import FNV_OFFSET, hash_words
from vdsh.words.vocabulary import to_line

MOST = 300_000  # words that are remembered
NO_WORD = FNV_OFFSET  # the hash of a stem without letters

Hashes = NDArray[np.uint64]


class Known(NamedTuple):
    """What some words become."""

    stems: Hashes  # of their stems, as terms
    exacts: Hashes  # of themselves, as terms; 0 where their stems say as much
    stops: NDArray[np.bool_]  # whether they are stop words, or combining marks alone
    forms: NDArray[np.object_]  # as a vocabulary has them, in bytes; empty where it does not
    terms: dict[int, str]  # terms by their hashes, of these words and others


class Lexicon:
    """The words of a language that were met, with their terms."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._hashes = none = np.zeros(0, np.uint64)  # of all words, in order, as what is known
        # Who was given the terms of before keeps them: others may look words up meanwhile.
        self._known = Known(none, none, np.zeros(0, bool), np.zeros(0, object), {})

    def look_up(self, hashes: Hashes, words: Callable[[Sequence[int]], list[str]]) -> Known:
        """Say what words become, given their hashes; `words` gives those of some places."""
        with self._lock:
            if len(self._hashes) > MOST:
                self._forget()
            at = np.searchsorted(self._hashes, hashes)
            known = at < len(self._hashes)
            known[known] = self._hashes[at[known]] == hashes[known]
            new = np.flatnonzero(~known)
            if len(new):
                self._add(hashes[new], words(new.tolist()))
                at = np.searchsorted(self._hashes, hashes)
            stems, exacts, stops, forms, terms = self._known
        return Known(stems[at], exacts[at], stops[at], forms[at], terms)

    def _add(self, hashes: Hashes, words: list[str]) -> None:
        language = self._language
        stems = language.stems(words)
        exacts = [exact_term(word, stem, language) for word, stem in zip(words, stems, strict=True)]
        stem_hashes = hash_words(stems)
        exact_hashes = hash_words([term or "" for term in exacts])
        exact_hashes[[term is None for term in exacts]] = 0
        old = self._known
        for values, terms in ((stem_hashes, stems), (exact_hashes, exacts)):
            pairs = zip(values.tolist(), terms, strict=True)
            old.terms.update((value, term) for value, term in pairs if term)
        stops = np.array([not is_content(word, language) for word in words])
        forms = np.array([*map(to_line, words)], object)
        order = np.argsort(hashes)
        places = np.searchsorted(self._hashes, hashes[order])
        self._hashes = np.insert(self._hashes, places, hashes[order])
        self._known = Known(
            np.insert(old.stems, places, stem_hashes[order]),
            np.insert(old.exacts, places, exact_hashes[order]),
            np.insert(old.stops, places, stops[order]),
            np.insert(old.forms, places, forms[order]),
            old.terms,
        )


@lru_cache(maxsize=8)
def lexicon_of(language: Language) -> Lexicon:
    """Return the lexicon of a language, which all in this process share."""
    return Lexicon(language)


def has_letters(word: str) -> bool:
    """Say whether a word is more than combining marks, which are nothing without their letter."""
    return word.isascii() or fold(word) != ""


def is_content(word: str, language: Language) -> bool:
    """Say whether a word of a text is looked for: stop words and lone marks are not."""
    return word not in language.stop_words and has_letters(word)


def exact_term(word: str, stem: str, language: Language) -> str | None:
    """Give the term of the very word; None where its stem says as much."""
    form = fold(word)
    return None if form == stem or word in language.stop_words else f"={form}"
