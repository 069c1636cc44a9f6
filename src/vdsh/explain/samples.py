"""Draws from the generative model: latent vectors, word distributions, bags of words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vdsh.codes import Scores, binarize, pack, to_hex
from vdsh.errors import InputError
from vdsh.explain.latent import Rng, draw
from vdsh.explain.results import Sample, check_n_words, strongest
from vdsh.model import Model, as_model

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def sample(
    hasher: "TextHasher | Model",
    n: int = 3,
    *,
    label: str | None = None,
    code: str | None = None,
    text: str | None = None,
    n_words: int = 10,
    length: int = 50,
    random_state: int = 0,
) -> list[Sample]:
    """Draw documents from the generative model.

    Parameters
    ----------
    hasher : TextHasher or Model
        A model with a decoder: vdsh, vdsh-s or vdsh-sp.
    n : int, default=3
        How many.
    label : str, optional
        Draw where this label, and no other, is probable; for vdsh-s and vdsh-sp.
    code : str, optional
        Draw where documents with this code (in hex) are.
    text : str, optional
        Draw where the model places this text, from Q(s | d).
    n_words : int, default=10
        How many of the most probable words to list.
    length : int, default=50
        Words in a bag.
    random_state : int, default=0
        The same number gives the same draws.

    Returns
    -------
    list of Sample
        From the prior where neither label, code nor text is given; at most one may be.
    """
    model = as_model(hasher)
    if model.decoder is None:
        raise InputError(
            f"The model '{model.name}' only encodes: it has no decoder to draw words from. "
            "Use vdsh, vdsh-s or vdsh-sp."
        )
    check_n_words(n_words)
    if n < 1 or length < 1:
        raise InputError(f"n and length must be at least 1. Got {n} and {length}.")
    if not 0 <= random_state < 2**32:
        raise InputError(f"The seed must be from 0 to 2**32 - 1. Got {random_state}.")
    rng = np.random.RandomState(random_state)
    s, v = draw(model, model.decoder, n, rng, label=label, code=code, text=text)
    codes = to_hex(pack(binarize(s, model.thresholds)))
    log_p = model.decoder.word_log_probabilities(s if v is None else s + v)
    middle = model.decoder.word_log_probabilities(model.thresholds[None])
    words, chances = model.words, np.exp(log_p)
    gains = chances * (log_p - middle)
    return [
        Sample(
            codes[i],
            strongest(chances[i], words, n_words),
            strongest(gains[i], words, n_words),
            _bag(chances[i], words, length, rng),
        )
        for i in range(n)
    ]


def _bag(chances: Scores, words: Sequence[str], length: int, rng: Rng) -> list[str]:
    p = chances.astype(np.float64)
    return [str(word) for word in rng.choice(words, length, p=p / p.sum())]
