"""Words: how each pushes the scores of the bits, and the ones that do so most."""

from collections.abc import Sequence

import numpy as np

from vdsh.codes import Scores
from vdsh.errors import InputError
from vdsh.explain.results import Word
from vdsh.model import Model
from vdsh.text.counts import Counts


def strongest(effects: Scores, words: Sequence[str], n_words: int) -> list[Word]:
    """List the words with the largest effects above 0, the largest first."""
    order = np.argsort(-effects, kind="stable")[:n_words]
    return [Word(words[j], float(effects[j])) for j in order if effects[j] > 0]


def check_n_words(n_words: int) -> None:
    """Raise where no list can have that length."""
    if n_words < 1:
        raise InputError(f"The number of words must be at least 1. Got {n_words}.")


def known_words(model: Model, text: str) -> Counts:
    """Count the known words of one text, of which there must be some."""
    counts = model.counts([text])
    if counts.n_empty:
        what = "has no word that the model knows" if text.strip() else "is empty"
        raise InputError(
            f"The text {what}, so no word explains its code: it gets the code of an empty "
            "document. Give a text with words from the model's vocabulary.txt."
        )
    return counts
