"""What to show of texts that a query found: their best passage, and the words that matter.

A word matters where the query has it, or where it holds bits that both codes share. All texts go
through the encoder together, so that ten hits cost little more than one.
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vdsh.codes import Codes, unpack
from vdsh.explain.results import TextExplanation
from vdsh.explain.texts import Pushes, all_pushes, put_together
from vdsh.model import Model, as_model
from vdsh.text.tokenizer import find_plainly, normalize

if TYPE_CHECKING:
    from vdsh.codes import Bits
    from vdsh.pipeline import TextHasher

MOST_WORDS = 10  # marked in a text
LEAST = 0.2  # of the largest weight: what holds less is not marked
MOST_MARKS = 500
MOST_TRIED = 40  # words of a hit to leave out in turn: those with the largest weights
LONGEST = 50_000  # characters of a text that are looked at
PASSAGE = 240  # characters, about two lines
_BEFORE = 40  # of them before the first word that matters, at most
_BATCH = 25  # texts that go through the encoder together
_N_WORDS = 5  # listed per bit of the query


class Span(NamedTuple):
    """A token, and its place: it was made of `text[start:stop]`."""

    start: int
    stop: int
    token: str


class Highlight(NamedTuple):
    """What to show of a text.

    Attributes
    ----------
    passage : (int, int)
        Where its best stretch begins and ends, in characters.
    marks : list of (int, int, bool)
        Where words that matter begin and end, in order, and whether the query has the word.
    """

    passage: tuple[int, int]
    marks: list[tuple[int, int, bool]]


class Highlights(NamedTuple):
    """Why a query has its code (None where it has no known word), and what to show of each hit."""

    explanation: TextExplanation | None
    hits: list[Highlight]


def highlight(
    hasher: "TextHasher | Model", texts: Sequence[str], *, code: Codes, query: str | None = None
) -> Highlights:
    """Choose the passage and the words to mark in each of the texts that a query found.

    Parameters
    ----------
    hasher : TextHasher or Model
    texts : sequence of str
    code : ndarray of uint8 of shape (n_bytes,)
        The query's code.
    query : str, optional
        Its text, where there is one.
    """
    model, query = as_model(hasher), query or ""
    counts, bits = model.counts([query]), unpack(code[None])[0]
    asked = None if counts.n_empty else all_pushes(model, counts)[0]
    wanted = {model.words[term] for term in counts.indices}
    wanted |= set(model.unknown_words(query[:LONGEST]))
    shown = []
    for first in range(0, len(texts), _BATCH):
        some = [text[:LONGEST] for text in texts[first : first + _BATCH]]
        found = all_pushes(model, model.counts(some), most=MOST_TRIED, always=counts.indices)
        for text, pushed in zip(some, found, strict=True):
            shown.append(_show(text, _weigh(model, pushed, bits), wanted))
    return Highlights(put_together(model, asked, _N_WORDS) if asked else None, shown)


def _weigh(model: Model, found: Pushes, bits: "Bits") -> dict[str, float]:
    """Weigh the words of a text by how much they hold the bits shared with the query: 0 to 1."""
    held = np.maximum(found.towards[:, found.values == bits], 0).sum(axis=1)
    shares = held / held.max(initial=1e-9)
    pairs = zip(found.terms.tolist(), shares.tolist(), strict=True)
    return {model.words[term]: share for term, share in pairs if share >= LEAST}


def _show(text: str, weights: dict[str, float], wanted: Collection[str]) -> Highlight:
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
    return Highlight(_passage(text, _best_start(chosen, weights)), marks)


def _best_start(spans: list[Span], weights: dict[str, float]) -> int:
    """Return the place after which a passage has the most weight, each word counted once."""
    starts = [span.start for span in spans]
    words = [(span.token, weights[span.token]) for span in spans]
    best, most = 0, 0.0
    for i, start in enumerate(starts):
        end = bisect_left(starts, start + PASSAGE - _BEFORE)
        weight = sum(dict(words[i:end]).values())
        if weight > 1.05 * most:  # an earlier passage is the better one of two alike
            best, most = start, weight
    return best


def _passage(text: str, at: int) -> tuple[int, int]:
    """Cut a passage around a place, between words where there are spaces."""
    start = 0
    if at > _BEFORE + 20:  # near its beginning, the text is shown from there
        start = max(at - _BEFORE, text.find(" ", at - _BEFORE, at) + 1)
    stop = min(len(text), start + PASSAGE)
    if stop < len(text):
        stop = max(text.rfind(" ", stop - _BEFORE, stop), 0) or stop
    return start, stop


def find_spans(text: str) -> list[Span]:
    """Find the tokens of a text, as `tokenize` does, and where they are.

    >>> find_spans("The Caf\u00e9's crew")[1]
    Span(start=4, stop=8, token='caf\u00e9')
    """
    whole = normalize(text)
    places = _places(text, whole)
    return [Span(places[i], places[j], whole[i:j]) for i, j in find_plainly(whole)]


def _places(text: str, whole: str) -> Sequence[int]:
    """Tell for each character of the normalised text where in the text it comes from.

    Lower case and NFC may change the number of characters. What belongs together is then found
    group by group: a character and the combining marks that follow it.
    """
    if len(whole) == len(text) and unicodedata.is_normalized("NFC", text):
        return range(len(text) + 1)
    firsts = [i for i, char in enumerate(text) if not i or not unicodedata.combining(char)]
    places: list[int] = []
    for first, end in zip(firsts, [*firsts[1:], len(text)], strict=True):
        given, made = text[first:end], normalize(text[first:end])
        n_same = len(commonprefix([given[::-1], made[::-1]]))  # marks at the end that are as before
        places += [first] * (len(made) - n_same) + list(range(end - n_same, end))
    # Korean letters join across groups; then the places are near, not exact.
    places = places[: len(whole)] + [len(text)] * (len(whole) - len(places))
    return [*places, len(text)]
