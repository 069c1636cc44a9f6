"""Why a text has its code: which of its words set which bits, and how sure each bit is."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from vdsh.codes import Bits, Scores, binarize, pack, to_hex
from vdsh.explain.results import TextBit, TextExplanation, Word
from vdsh.explain.uncertainty import scores_and_chances, share_kept
from vdsh.explain.words import check_n_words, known_words
from vdsh.text.weighting import weigh

if TYPE_CHECKING:
    from vdsh.hashers import Hasher
    from vdsh.pipeline import TextHasher

_LEAST_ROWS, _MOST_ENTRIES = 100, 250_000


class Pushes(NamedTuple):
    """What each word of one document does to each of its bits.

    Attributes
    ----------
    values : uint8 ndarray of shape (n_bits,)
        The document's bits.
    margins : ndarray of shape (n_bits,)
        Its scores above the thresholds.
    chances : ndarray of shape (n_bits,) or None
        The probability of each bit being 1.
    terms : ndarray of shape (n_tried,)
        The terms that were left out, one at a time.
    towards : ndarray of shape (n_tried, n_bits)
        How far a term pushes the score to the side where the bit's value is.
    """

    values: Bits
    margins: Scores
    chances: Scores | None
    terms: NDArray[np.int32]
    towards: Scores


def explain_text(hasher: "TextHasher", text: str, *, n_words: int = 5) -> TextExplanation:
    """Say which words of a text set which bits of its code, and how sure the code is.

    A word's effect is exact: the bit's score with the word less its score without it, all its
    occurrences left out and the rest weighed anew. Of a text with more than 500 distinct words
    those with the largest weights are tried, 100 at least.

    Parameters
    ----------
    hasher : TextHasher
    text : str
        With at least one known word.
    n_words : int, default=5
        How many words to list per bit, at most.
    """
    check_n_words(n_words)
    return put_together(hasher, pushes(hasher, text), n_words)


def pushes(hasher: "TextHasher", text: str) -> Pushes:
    """Leave each word of a text out in turn."""
    return all_pushes(hasher, known_words(hasher, text))[0]


def all_pushes(
    hasher: "TextHasher",
    counts: csr_array,
    *,
    most: int | None = None,
    always: NDArray[np.int32] | None = None,
) -> list[Pushes]:
    """Leave each word of some documents out in turn, in one run through the encoder.

    Parameters
    ----------
    hasher : TextHasher
    counts : csr_array of shape (n_docs, n_terms)
    most : int, optional
        How many words of a document to try; without it, all of a document of usual length.
    always : ndarray, optional
        Terms that come before others where not all are tried.
    """
    inner = hasher.hasher_
    documents = [counts[[row]] for row in range(counts.shape[0])]
    tried = [_tried(inner, document, most, always) for document in documents]
    rows = [_leave_one_out(*pair) for pair in zip(documents, tried, strict=True)]
    firsts = np.cumsum([0, *(len(some) + 1 for some in tried)])
    scores, chances = scores_and_chances(inner, vstack(rows, format="csr"), firsts[:-1])
    found = []
    for i, (document, some) in enumerate(zip(documents, tried, strict=True)):
        mine = scores[firsts[i] : firsts[i + 1]]
        values = binarize(mine[0], inner.thresholds_)
        effects = mine[0] - mine[1:]
        towards = np.where(values, effects, -effects)
        margins = mine[0] - inner.thresholds_
        chance = None if chances is None else chances[i]
        found.append(Pushes(values, margins, chance, document.indices[some], towards))
    return found


def put_together(hasher: "TextHasher", found: Pushes, n_words: int) -> TextExplanation:
    """List the strongest words of each bit."""
    words = hasher.vectorizer_.vocabulary_[found.terms]
    n_bits, chances = len(found.values), found.chances
    bits = [
        TextBit(
            bit,
            int(found.values[bit]),
            None if chances is None else float(chances[bit]),
            float(found.margins[bit]),
            _largest(found.towards[:, bit], words, n_words),
        )
        for bit in range(n_bits)
    ]
    confidence = None if chances is None else float(share_kept(chances))
    changes = None if confidence is None else n_bits * (1 - confidence)
    return TextExplanation(to_hex(pack(found.values[None]))[0], confidence, changes, bits)


def _tried(
    hasher: "Hasher", counts: csr_array, most: int | None, always: NDArray[np.int32] | None
) -> NDArray[np.intp]:
    """Choose the words to leave out: all, unless the text is so long that it would be slow."""
    most = most or max(_LEAST_ROWS, _MOST_ENTRIES // max(1, counts.nnz))
    if counts.nnz <= most:
        return np.arange(counts.nnz)
    weights = weigh(counts, hasher.weighting, getattr(hasher, "idf_", None)).data
    if always is not None:
        weights = np.where(np.isin(counts.indices, always), np.inf, weights)
    return np.sort(np.argsort(-weights, kind="stable")[:most])


def _leave_one_out(counts: csr_array, tried: NDArray[np.intp]) -> csr_array:
    """Give the document, then once more for each word without that word."""
    kept = np.ones((len(tried) + 1, counts.nnz), bool)
    kept[np.arange(1, len(tried) + 1), tried] = False
    columns = np.nonzero(kept)[1]
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    shape = (len(kept), counts.shape[1])
    return csr_array((counts.data[columns], counts.indices[columns], indptr), shape=shape)


def _largest(effects: Scores, words: NDArray[np.str_], n_words: int) -> list[Word]:
    order = np.argsort(-np.abs(effects), kind="stable")[:n_words]
    return [Word(str(words[j]), float(effects[j])) for j in order if effects[j]]
