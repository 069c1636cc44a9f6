"""What to show of texts that a query found: their best passage, and the words that matter.

A word matters where the query has it, or where it holds bits that both codes share. All texts go
through the encoder together, so that ten hits cost little more than one.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vdsh.codes import Codes, unpack
from vdsh.explain.results import TextExplanation
from vdsh.explain.texts import Pushes, all_pushes, put_together
from vdsh.model import Model, as_model
from vdsh.text.spans import Span, find_spans
from vdsh.text.stopwords import SMART
from vdsh.words.passages import LONGEST, best_start, cut_passage
from vdsh.words.query import content_words

if TYPE_CHECKING:
    from vdsh.codes import Bits
    from vdsh.pipeline import TextHasher

MOST_WORDS = 10  # marked in a text
LEAST = 0.2  # of the largest weight: what holds less is not marked
MOST_MARKS = 500
MOST_TRIED = 40  # words of a hit to leave out in turn: those with the largest weights
_BATCH = 25  # texts that go through the encoder together
_N_WORDS = 5  # listed per bit of the query

Phrases = Sequence[Sequence[str]]


class Highlight(NamedTuple):
    """What to show of a text."""

    passage: tuple[int, int]  # where its best stretch begins and ends, in characters
    # Where words that matter begin and end, in order, and whether the query has the word.
    marks: list[tuple[int, int, bool]]


class Highlights(NamedTuple):
    """Why a query has its code (None where it has no known word), and what to show of each hit."""

    explanation: TextExplanation | None
    hits: list[Highlight]


def highlight(
    hasher: "TextHasher | Model",
    texts: Sequence[str],
    *,
    code: Codes,
    query: str | None = None,
    phrases: Phrases = (),
) -> Highlights:
    """Choose the passage and the words to mark in each of the texts that a query found.

    Parameters
    ----------
    code : ndarray of uint8 of shape (n_bytes,)
        The query's code.
    query : str, optional
        Its text, where there is one.
    phrases : sequence of sequences of str
        Words of the query that belong together: the passage is where they are.
    """
    model, query = as_model(hasher), query or ""
    if model.takes_vectors:  # it knows no words: those of the query are marked
        typed = content_words(query[:LONGEST])
        return Highlights(None, [_show(text[:LONGEST], {}, typed, phrases) for text in texts])
    counts, bits = model.counts([query]), unpack(code[None])[0]
    asked = all_pushes(model, counts)[0] if len(counts.data) else None
    wanted = content_words(query[:LONGEST])
    shown = []
    for first in range(0, len(texts), _BATCH):
        some = [text[:LONGEST] for text in texts[first : first + _BATCH]]
        words = model.counts(some)
        found = all_pushes(model, words, most=MOST_TRIED, always=counts.indices)
        for text, pushed in zip(some, found, strict=True):
            shown.append(_show(text, _weigh(model, pushed, bits), wanted, phrases))
    return Highlights(put_together(model, asked, _N_WORDS) if asked else None, shown)


def _weigh(model: Model, found: Pushes, bits: "Bits") -> dict[str, float]:
    """Weigh the words of a text by how much they hold the bits shared with the query: 0 to 1."""
    held = np.maximum(found.towards[:, found.values == bits], 0).sum(axis=1)
    shares = held / held.max(initial=1e-9)
    pairs = zip(found.terms.tolist(), shares.tolist(), strict=True)
    return {model.words[term]: share for term, share in pairs if share >= LEAST}


def _show(
    text: str, weights: dict[str, float], wanted: Collection[str], phrases: Phrases
) -> Highlight:
    """Mark the words with the largest weights; the query's own words come before all others."""
    spans = find_spans(text)
    own = {span.token for span in spans if span.token in wanted}
    weights = weights | {word: 1 + weights.get(word, 0.0) for word in own}
    heaviest = set(sorted(weights, key=lambda word: (-weights[word], word))[:MOST_WORDS])
    chosen = [span for span in spans if span.token in heaviest][:MOST_MARKS]
    marks: list[tuple[int, int, bool]] = []
    for start, stop, word in chosen:
        if marks and start < marks[-1][1]:  # pairs of ideographs overlap
            marks[-1] = (marks[-1][0], stop, marks[-1][2] or word in own)
        else:
            marks.append((start, stop, word in own))
    typed = _of_phrases(spans, phrases) or [span for span in spans if span.token in own]
    typed = typed[:MOST_MARKS]
    weights = dict.fromkeys(own, 1.0) if typed else weights
    return Highlight(cut_passage(text, best_start(typed or chosen, weights)), marks)


def _of_phrases(spans: Sequence[Span], phrases: Phrases) -> list[Span]:
    """Find where the words of phrases follow each other, stop words left out of what is found."""
    tokens = [span.token for span in spans]
    places: set[int] = set()
    for phrase in phrases:
        for i in range(len(tokens) - len(phrase) + 1):
            if tokens[i : i + len(phrase)] == list(phrase):
                places.update(range(i, i + len(phrase)))
    return [spans[i] for i in sorted(places) if tokens[i] not in SMART]
