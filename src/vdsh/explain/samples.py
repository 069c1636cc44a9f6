"""Draws from the generative model: latent vectors, word distributions, bags of words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from vdsh.codes import Bits, Scores, binarize, from_hex, pack, to_hex, unpack
from vdsh.errors import InputError
from vdsh.explain.results import Sample, check_n_words, strongest
from vdsh.explain.texts import known_words
from vdsh.model import Model, as_model

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

Rng = np.random.RandomState
Doubles = NDArray[np.float64]


def sample(
    hasher: "TextHasher | Model",
    n: int = 3,
    *,
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
        From the prior where neither code nor text is given; at most one may be.
    """
    model = as_model(hasher).topic
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
    s, v = draw(model, n, rng, code=code, text=text)
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


def draw(
    model: Model, n: int, rng: Rng, *, code: str | None = None, text: str | None = None
) -> tuple[Scores, Scores | None]:
    """Draw latent vectors s of shape (n, n_bits) and, for VDSH-SP, private ones."""
    if code is not None and text is not None:
        raise InputError("Draw from a code or a text: give one of them, or none.")
    shape = (n, model.n_bits)
    if text is not None:
        counts = known_words(model, text)
        s = _normal(model.posterior_of(counts), n, rng)
        private = model.private_posterior_of(counts)
        v = None if private is None else _normal(private, n, rng)
    else:
        if code is not None:
            s = in_code(model.thresholds, _read_code(code, model.n_bits), n, rng)
        else:
            s = rng.normal(size=shape)
        v = rng.normal(size=shape) if model.has_private else None
    return s.astype(np.float32), None if v is None else v.astype(np.float32)


def in_code(thresholds: Scores, bits: Bits, n: int, rng: Rng) -> Doubles:
    """Draw from the prior, each dimension on the side of its threshold that the bit says."""
    side = np.where(bits, -1.0, 1.0)  # fold the ones over: then all are below the threshold
    u = 1 - rng.uniform(size=(n, len(bits)))  # above 0
    s = side * ndtri_exp(np.log(u) + log_ndtr(side * thresholds))
    # what is rounded to the threshold itself counts as a 0: see `binarize`
    least = np.where(bits, np.nextafter(thresholds, np.float32(np.inf)), -np.inf)
    inside: Doubles = np.clip(s, least, np.where(bits, np.inf, thresholds))
    return inside


def _normal(Q: tuple[Scores, Scores], n: int, rng: Rng) -> Doubles:
    """Draw n times from one document's normal distribution, given as mean and deviation."""
    mu, sigma = Q
    drawn: Doubles = mu + sigma * rng.normal(size=(n, mu.shape[1]))
    return drawn


def _read_code(code: str, n_bits: int) -> Bits:
    bits: Bits = unpack(from_hex([code.strip()]))[0]
    if len(bits) != n_bits:
        raise InputError(
            f"The model has codes of {n_bits} bits, {n_bits // 4} hexadecimal digits. "
            f"Got {len(bits)} bits."
        )
    return bits
