"""How sure a code is: the probability of each bit under Q(s | d), and one number for a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr

from vdsh.codes import Scores
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def bit_probabilities(hasher: "TextHasher", texts: Sequence[str]) -> Scores:
    """Return for each text and bit the probability under Q(s | d) that the bit is 1.

    Returns
    -------
    ndarray of shape (n_texts, n_bits)
    """
    inner: Any = hasher.hasher_
    if not hasattr(inner, "bit_probabilities"):
        raise InputError(
            f"The model '{hasher.model}' does not say how sure it is of a bit. Use a vdsh model."
        )
    chances: Scores = inner.bit_probabilities(hasher.vectorizer_.transform(texts))
    return chances


def confidence(hasher: "TextHasher", texts: Sequence[str]) -> Scores:
    """Return for each text the share of its bits that a draw from Q(s | d) is expected to repeat.

    That is the mean over bits of max(p, 1 - p), from 0.5 (a coin for each bit) to 1. The chance
    that a draw repeats all bits at once would be next to nothing for every text at 32 bits or
    more, and says less about search, where the number of differing bits decides:
    n_bits * (1 - confidence) of them are expected to differ.

    Returns
    -------
    ndarray of shape (n_texts,)
    """
    return share_kept(bit_probabilities(hasher, texts))


def share_kept(chances: Scores) -> Scores:
    """Compute the mean of max(p, 1 - p) along the last axis."""
    kept: Scores = np.maximum(chances, 1 - chances).mean(axis=-1)
    return kept


def scores_and_chances(
    hasher: Any, counts: csr_array, rows: NDArray[np.intp]
) -> tuple[Scores, Scores | None]:
    """Return the scores of documents and, where the model says so, the probabilities of some rows.

    One run through the encoder gives both.
    """
    if not hasattr(hasher, "posterior"):
        return hasher.scores(counts), None
    mu, sigma = hasher.posterior(counts)
    return mu, ndtr((mu[rows] - hasher.thresholds_) / sigma[rows])
