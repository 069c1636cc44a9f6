"""Which texts have the phrases of a query, and nothing that it leaves out."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import check_wanted
from vdsh.jit import compiled
from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import Tokens, find_tokens, hash_plainly, hash_words, tokenize
from vdsh.words.counting import find_parts
from vdsh.words.query import WordQuery

_PLAIN = 1e-7  # seconds a character without kernels
_TOGETHER = 8_000_000  # characters of texts that phrases are looked for in at once


def fits(query: WordQuery, text: str, language: Language) -> bool:
    """Say whether a text has all phrases of a query, and nothing that is to be left out.

    A phrase is compared as it stands, but for case and accents; a single word that is to be left
    out, by its stem.
    """
    if not query.phrases and not query.without:
        return True
    check_wanted()
    if excluded := language.stems(query.excluded(language)):
        parts = find_parts(text)
        words = {*parts.tokens, *(piece for _, piece in parts.pieces)}
        if not set(language.stems(list(words))).isdisjoint(excluded):
            return False
    tokens = [fold(token) for token in tokenize(text, shortest=1)]
    if any(_has(tokens, some) for some in query.without if len(some) > 1):
        return False
    return all(_has(tokens, phrase) for phrase in query.phrases)


def which_fit(query: WordQuery, texts: Sequence[str], language: Language) -> NDArray[np.bool_]:
    """Say which texts fit a query; where only phrases count, some million characters at once."""
    sizes = np.cumsum([0, *map(len, texts)])
    if query.without or not texts or not compiled(_PLAIN * int(sizes[-1])):
        return np.array([fits(query, text, language) for text in texts], bool)
    cuts = np.searchsorted(sizes, range(_TOGETHER, int(sizes[-1]), _TOGETHER)).tolist()
    edges = pairwise(sorted({0, *cuts, len(texts)}))
    return np.concatenate([_have(texts[i:j], query.phrases) for i, j in edges])


def _have(texts: Sequence[str], phrases: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Say which texts have all phrases."""
    found, fitting = find_tokens(texts, shortest=1), np.ones(len(texts), bool)
    hashes = _without_accents(found)
    for phrase in phrases:
        there = np.append(hashes, np.zeros(len(phrase), np.uint64))  # 0 is no word
        values = enumerate(hash_plainly(list(map(fold, phrase))))
        starts = [there[i : i + len(hashes)] == value for i, value in values]
        at = np.flatnonzero(np.logical_and.reduce(starts))
        owners = np.searchsorted(found.documents, at, side="right") - 1
        whole = owners[at + len(phrase) <= found.documents[owners + 1]]
        fitting &= np.bincount(whole, minlength=len(texts)) > 0
    return fitting


def _without_accents(found: Tokens) -> NDArray[np.uint64]:
    """Give the hashes of tokens as if they were written without accents."""
    if not len(found.data) or found.data.max() < 128:
        return found.hashes
    n_wide = np.append(0, np.cumsum(found.data > 127))  # bytes of other letters than those of ASCII
    at = np.flatnonzero(n_wide[found.stops] > n_wide[found.starts])
    _, firsts, numbers = np.unique(found.hashes[at], return_index=True, return_inverse=True)
    data, spans = found.data.tobytes(), (found.starts[at[firsts]], found.stops[at[firsts]])
    words = [data[i:j].decode() for i, j in zip(*map(np.ndarray.tolist, spans), strict=True)]
    hashes = found.hashes.copy()
    hashes[at] = hash_words(list(map(fold, words)))[numbers]
    return hashes


def _has(tokens: list[str], phrase: Sequence[str]) -> bool:
    wanted = [fold(word) for word in phrase]
    first, n = wanted[0], len(wanted)
    places = (i for i, token in enumerate(tokens) if token == first)
    return any(tokens[i : i + n] == wanted for i in places)
