"""Why a text has its code, and two are near: which words set which bits, how sure each is."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Bits, Scores, binarize, pack, to_hex
from vdsh.errors import InputError
from vdsh.explain.bits import share_kept
from vdsh.explain.results import (
    Agreement,
    PairExplanation,
    SharedWord,
    TextBit,
    TextExplanation,
    check_n_words,
    strongest,
)
from vdsh.model import Model, as_model
from vdsh.model.encoders import normal_cdf
from vdsh.text.counts import Counts, stack

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

_LEAST_ROWS, _MOST_ENTRIES = 100, 250_000
_MOST_SHARED = 20  # words of two texts that are listed


class Pushes(NamedTuple):
    """What each word of one document does to each of its bits."""

    values: Bits  # (n_bits,): the document's bits
    margins: Scores  # (n_bits,): its scores above the thresholds
    chances: Scores | None  # (n_bits,): the probability of each bit being 1
    terms: NDArray[np.int32]  # (n_tried,): the terms that were left out, one at a time
    # (n_tried, n_bits): how far a term pushes the score to the side where the bit's value is.
    towards: Scores


def explain_text(hasher: "TextHasher | Model", text: str, *, n_words: int = 5) -> TextExplanation:
    """Say which words of a text set which bits of its code, and how sure the code is.

    A word's effect is exact: the bit's score with the word less its score without it, all its
    occurrences left out and the rest weighed anew. Of a text with more than 500 distinct words
    those with the largest weights are tried, 100 at least.

    Parameters
    ----------
    hasher : TextHasher or Model
    text : str
        With at least one known word.
    n_words : int, default=5
        How many words to list per bit, at most.
    """
    check_n_words(n_words)
    model = as_model(hasher).topic
    return put_together(model, pushes(model, text), n_words)


def explain_pair(
    hasher: "TextHasher | Model", a: str, b: str, *, n_words: int = 5
) -> PairExplanation:
    """Say on which bits two texts agree and which of their shared words stand behind that.

    A shared word stands behind an agreed bit where it pushes the bit to its value in both texts.
    Texts may agree without shared words: related words push the same bits.

    Parameters
    ----------
    hasher : TextHasher or Model
    a, b : str
        Each with at least one known word.
    n_words : int, default=5
        How many words to list per bit of each text, at most.
    """
    check_n_words(n_words)
    model = as_model(hasher).topic
    of_a, of_b = pushes(model, a), pushes(model, b)
    same = of_a.values == of_b.values
    shared = _shared(model, of_a, of_b)[:_MOST_SHARED]
    agree, differ = np.flatnonzero(same).tolist(), np.flatnonzero(~same).tolist()
    return PairExplanation(
        put_together(model, of_a, n_words),
        put_together(model, of_b, n_words),
        Agreement(agree, differ, shared),
    )


def known_words(model: Model, text: str) -> Counts:
    """Count the known words of one text, of which there must be some."""
    counts = model.counts([text])
    if not len(counts.data):
        what = "has no word that the model knows" if text.strip() else "is empty"
        raise InputError(
            f"The text {what}, so no word explains its code: it gets the code of an empty "
            "document. Give a text with words from the model's vocabulary.txt."
        )
    return counts


def pushes(model: Model, text: str) -> Pushes:
    """Leave each word of a text out in turn."""
    return all_pushes(model, known_words(model, text))[0]


def all_pushes(
    model: Model,
    counts: Counts,
    *,
    most: int | None = None,
    always: NDArray[np.int32] | None = None,
) -> list[Pushes]:
    """Leave each word of some documents out in turn, in one run through the encoder.

    Of a document `most` words are tried, those in `always` first; without it, all of a document of
    usual length.
    """
    documents = [counts.row(i) for i in range(counts.shape[0])]
    tried = [_tried(model, document, most, always) for document in documents]
    counts = stack([_leave_one_out(*pair) for pair in zip(documents, tried, strict=True)])
    if model.has_posterior:  # one run through the encoder tells scores and how sure they are
        scores, sigmas = model.posterior_of(counts)
    else:
        scores, sigmas = model.scores_of(counts), None
    found, first = list[Pushes](), 0
    for document, some in zip(documents, tried, strict=True):
        score, without = scores[first], scores[first + 1 : first + 1 + len(some)]
        values, margins = binarize(score, model.thresholds), score - model.thresholds
        towards = np.where(values, score - without, without - score)
        chances = None if sigmas is None else normal_cdf(margins / sigmas[first])
        found.append(Pushes(values, margins, chances, document.indices[some], towards))
        first += 1 + len(some)
    return found


def put_together(model: Model, found: Pushes, n_words: int) -> TextExplanation:
    """List the strongest words of each bit."""
    words = [model.words[term] for term in found.terms]
    n_bits, chances = len(found.values), found.chances
    bits = [
        TextBit(
            bit,
            int(found.values[bit]),
            None if chances is None else float(chances[bit]),
            float(found.margins[bit]),
            strongest(found.towards[:, bit], words, n_words, either_way=True),
        )
        for bit in range(n_bits)
    ]
    confidence = None if chances is None else float(share_kept(chances))
    changes = None if confidence is None else n_bits * (1 - confidence)
    return TextExplanation(to_hex(pack(found.values[None]))[0], confidence, changes, bits)


def _tried(
    model: Model, counts: Counts, most: int | None, always: NDArray[np.int32] | None
) -> NDArray[np.intp]:
    """Choose the words to leave out: all, unless the text is so long that it would be slow."""
    n_words = len(counts.data)
    most = most or max(_LEAST_ROWS, _MOST_ENTRIES // max(1, n_words))
    if n_words <= most:
        return np.arange(n_words)
    weights = model.weigh(counts).data
    if always is not None:
        weights = np.where(np.isin(counts.indices, always), np.inf, weights)
    return np.sort(np.argsort(-weights, kind="stable")[:most])


def _leave_one_out(counts: Counts, tried: NDArray[np.intp]) -> Counts:
    """Give the document, then once more for each word without that word."""
    kept = np.ones((len(tried) + 1, len(counts.data)), bool)
    kept[np.arange(1, len(tried) + 1), tried] = False
    columns = np.nonzero(kept)[1]
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    shape = (len(kept), counts.shape[1])
    return Counts(counts.data[columns], counts.indices[columns], indptr, shape)


def _shared(model: Model, a: Pushes, b: Pushes) -> list[SharedWord]:
    """Find the words of both texts that push an agreed bit to its value, the strongest first."""
    terms, in_a, in_b = np.intersect1d(a.terms, b.terms, return_indices=True)
    both = np.maximum(np.minimum(a.towards[in_a], b.towards[in_b]), 0)  # (n_words, n_bits)
    both[:, a.values != b.values] = 0
    found = []
    for term, row in zip(terms, both, strict=True):
        if bits := [int(j) for j in np.argsort(-row, kind="stable") if row[j] > 0]:
            found.append(SharedWord(model.words[term], float(row.sum()), bits))
    return sorted(found, key=lambda word: -word.weight)
