"""Why two texts are near: the bits on which they agree and the shared words behind them."""

from typing import TYPE_CHECKING

import numpy as np

from vdsh.codes import Scores
from vdsh.explain.results import Agreement, PairExplanation, SharedWord
from vdsh.explain.texts import Pushes, pushes, put_together
from vdsh.explain.words import check_n_words
from vdsh.model import Model, as_model

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def explain_pair(
    hasher: "TextHasher | Model", a: str, b: str, *, n_words: int = 5, n_shared: int = 20
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
    n_shared : int, default=20
        How many shared words to list, at most.
    """
    check_n_words(n_words)
    check_n_words(n_shared)
    model = as_model(hasher)
    of_a, of_b = pushes(model, a), pushes(model, b)
    same = of_a.values == of_b.values
    shared = _shared(model, of_a, of_b)[:n_shared]
    agree, differ = np.flatnonzero(same).tolist(), np.flatnonzero(~same).tolist()
    return PairExplanation(
        put_together(model, of_a, n_words),
        put_together(model, of_b, n_words),
        Agreement(agree, differ, shared),
    )


def _shared(model: Model, a: Pushes, b: Pushes) -> list[SharedWord]:
    """Find the words of both texts that push an agreed bit to its value, the strongest first."""
    terms, in_a, in_b = np.intersect1d(a.terms, b.terms, return_indices=True)
    both = np.maximum(np.minimum(a.towards[in_a], b.towards[in_b]), 0)  # (n_shared, n_bits)
    both[:, a.values != b.values] = 0
    words = [model.words[term] for term in terms]
    found = [_word(word, row) for word, row in zip(words, both, strict=True) if row.any()]
    return sorted(found, key=lambda word: -word.weight)


def _word(word: str, effects: Scores) -> SharedWord:
    order = np.argsort(-effects, kind="stable")
    return SharedWord(word, float(effects.sum()), [int(j) for j in order if effects[j] > 0])
