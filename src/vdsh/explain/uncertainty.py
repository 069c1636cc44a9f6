"""How sure a code is: the probability of each bit under Q(s | d), and one number for a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.model import Model, as_model
from vdsh.model.encoders import normal_cdf
from vdsh.text.counts import Sparse

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def bit_probabilities(hasher: "TextHasher | Model", texts: Sequence[str]) -> Scores:
    """Return for each text and bit the probability under Q(s | d) that the bit is 1.

    Returns
    -------
    ndarray of shape (n_texts, n_bits)
    """
    return as_model(hasher).bit_probabilities(texts)


def confidence(hasher: "TextHasher | Model", texts: Sequence[str]) -> Scores:
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
    model: Model, counts: Sparse, rows: NDArray[np.intp]
) -> tuple[Scores, Scores | None]:
    """Return the scores of documents and, where the model says so, the probabilities of some rows.

    One run through the encoder gives both.
    """
    if not model.knows_doubt:
        return model.scores_of(counts), None
    mu, sigma = model.posterior_of(counts)
    return mu, normal_cdf((mu[rows] - model.thresholds) / sigma[rows])
