"""What to show of texts that a query found: their best passage, and the words that matter.

A word matters where the query has it, or where it holds bits that both codes share. Several texts
go through the encoder together, so that ten hits cost little more than one.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vdsh.codes import Bits, Codes, unpack
from vdsh.documents.document import in_batches
from vdsh.explain.results import TextExplanation
from vdsh.explain.texts import Pushes, all_pushes, put_together
from vdsh.model import Model
from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import Span, find_spans
from vdsh.words.passages import LONGEST, best_start, cut_passage, find_name, weigh_words
from vdsh.words.query import plain_query

MOST_WORDS = 10  # marked in a text
LEAST = 0.2  # of the largest weight: what holds less is not marked
MOST_MARKS = 500
MOST_TRIED = 40  # words of a hit to leave out in turn: those with the largest weights
MOST_CHARACTERS = 500_000  # of all texts of a query that are looked at
_BATCH = 25  # texts that go through the encoder together; fewer where they are long
_N_WORDS = 5  # listed per bit of the query

Phrases = Sequence[Sequence[str]]


class Highlight(NamedTuple):
    """What to show of a text."""

    passage: tuple[int, int]  # where its best stretch begins and ends, in characters
    # Where words that matter begin and end, in order, and whether the query has the word.
    marks: list[tuple[int, int, bool]]


def portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut texts to what is looked at, and give as many at a time as are quickly shown.

    Of long texts the first `LONGEST` characters are looked at, of all together `MOST_CHARACTERS`:
    those that come after are shown from their beginning, without marks.
    """
    cut, left = list[str](), MOST_CHARACTERS
    for text in texts:
        cut.append(text[: min(LONGEST, left)])
        left -= len(cut[-1])
    return in_batches(cut, _BATCH, size=len, room=LONGEST // 2)


class Highlighter:
    """Chooses the passage and the words to mark in texts that a query found, some at a time.

    `code` is the query's, of shape (n_bytes,), and `query` its text, or "". `phrases` are words of
    it that belong together: the passage is where they are. `language` tells other forms of the
    query's words, which are marked too.
    """

    def __init__(
        self, model: Model, code: Codes, query: str, phrases: Phrases, language: Language
    ) -> None:
        self.model = model = model.topic
        self.phrases = phrases
        self.language = language
        self.wanted = {term.term for term in plain_query(query[:LONGEST]).terms(language)}
        self.bits = unpack(code[None])[0][: model.n_bits]
        # A model of vectors knows no words: those of the query are marked.
        self.counts = None if model.takes_vectors else model.counts([query])

    def explain(self) -> TextExplanation | None:
        """Say why the query has its code; None where it has no known word."""
        if self.counts is None or not len(self.counts.data):
            return None
        return put_together(self.model, all_pushes(self.model, self.counts)[0], _N_WORDS)

    def show(self, texts: Sequence[str], telling: Sequence[Sequence[str]] = ()) -> list[Highlight]:
        """Choose the passage and the words to mark in each text, as `portions` gives them.

        `telling`: for each text the words of the query that it has, the most telling first, as in
        `Hit.words`: the passage has the first of them.
        """
        telling = telling or [()] * len(texts)
        if self.counts is None:
            pairs = zip(texts, telling, strict=True)
            return [self._show(text, {}, words) for text, words in pairs]
        words = self.model.counts(texts)
        found = all_pushes(self.model, words, most=MOST_TRIED, always=self.counts.indices)
        return [
            self._show(text, _weigh(self.model, pushed, self.bits), words)
            for text, pushed, words in zip(texts, found, telling, strict=True)
        ]

    def _show(self, text: str, weights: dict[str, float], telling: Sequence[str]) -> Highlight:
        """Mark the words with the largest weights; the query's own words come before all others."""
        spans = find_spans(text, shortest=1)
        tokens = list({span.token for span in spans})
        stems = zip(tokens, self.language.stems(tokens), strict=True)
        own = {token for token, stem in stems if stem in self.wanted}
        weights = weights | {word: 1 + weights.get(word, 0.0) for word in own}
        heaviest = set(sorted(weights, key=lambda word: (-weights[word], word))[:MOST_WORDS])
        chosen = [span for span in spans if span.token in heaviest][:MOST_MARKS]
        names = [span for word in telling for span in find_name(text, word)]
        typed = self._of_phrases(spans) or names or [span for span in spans if span.token in own]
        typed = _some_of_each(typed)
        weights = weigh_words(typed, telling) if typed else weights
        passage = cut_passage(text, best_start(typed or chosen, weights))
        return Highlight(passage, _to_marks(chosen, own))

    def _of_phrases(self, spans: Sequence[Span]) -> list[Span]:
        """Find where the words of phrases follow each other, stop words left out of them."""
        tokens = [fold(span.token) for span in spans]
        places: set[int] = set()
        for phrase in self.phrases:
            wanted = [fold(word) for word in phrase]
            for i in range(len(tokens) - len(wanted) + 1):
                if tokens[i : i + len(wanted)] == wanted:
                    places.update(range(i, i + len(wanted)))
        stops = self.language.stop_words
        return [spans[i] for i in sorted(places) if tokens[i] not in stops]


def _some_of_each(spans: Sequence[Span]) -> list[Span]:
    """Take the first spans, and the first of each word that comes later."""
    firsts = {span.token: span for span in reversed(spans)}
    return sorted({*spans[:MOST_MARKS], *firsts.values()})


def _weigh(model: Model, found: Pushes, bits: Bits) -> dict[str, float]:
    """Weigh the words of a text by how much they hold the bits shared with the query: 0 to 1."""
    held = np.maximum(found.towards[:, found.values == bits], 0).sum(axis=1)
    shares = held / held.max(initial=1e-9)
    pairs = zip(found.terms.tolist(), shares.tolist(), strict=True)
    return {model.words[term]: share for term, share in pairs if share >= LEAST}


def _to_marks(spans: Sequence[Span], own: Collection[str]) -> list[tuple[int, int, bool]]:
    marks: list[tuple[int, int, bool]] = []
    for start, stop, word in spans:
        if marks and start < marks[-1][1]:  # pairs of ideographs overlap
            marks[-1] = (marks[-1][0], stop, marks[-1][2] or word in own)
        else:
            marks.append((start, stop, word in own))
    return marks
