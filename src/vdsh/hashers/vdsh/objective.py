"""The three lower bounds of the paper, one function each, to be held beside its equations.

All return values per document, of shape (B,). `weights` scales the terms: 1 everywhere is the
paper's text; the authors' code lets the weight of the divergence rise from 0, and a larger label
weight makes the supervised codes follow the labels (both are settings). Where training knows the
place of a document among the others (see `related`), each has a term for it too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vdsh.hashers.vdsh.batches import Batch
from vdsh.hashers.vdsh.network import Network, Posterior

_PLACE = 30.0  # one over twice the variance of a place, whose length is 1


class Weights(NamedTuple):
    """How much each term of a lower bound counts."""

    kl: Tensor | float = 1.0
    labels: float = 1.0
    places: float = 1.0


class Bound(NamedTuple):
    """A lower bound and the divergence in it, each of shape (B,)."""

    value: Tensor
    kl: Tensor


def L1(
    network: Network, batch: Batch, t2: Tensor, weights: Weights, noise: Sequence[Tensor]
) -> Bound:
    """VDSH, equation 2: E_Q[sum_i log P(w_i | f(s))] - D_KL(Q(s | d) || P(s))."""
    Q = network.posterior(t2)
    s = Q.sample(noise[0])  # (M, B, K)
    kl = divergence(Q)
    return Bound(content_log_likelihood(network, batch, s, s, weights) - weights.kl * kl, kl)


def L2(
    network: Network, batch: Batch, t2: Tensor, weights: Weights, noise: Sequence[Tensor]
) -> Bound:
    """VDSH-S, equation 4: as L1, plus E_Q[sum_j log P(y_j | f(s))]."""
    Q = network.posterior(t2)
    s = Q.sample(noise[0])  # (M, B, K)
    words = content_log_likelihood(network, batch, s, s, weights)
    labels = batch.known * expected(label_log_likelihood(network.label_logits(s), batch.labels))
    kl = divergence(Q)
    return Bound(words + weights.labels * labels - weights.kl * kl, kl)


def L3(
    network: Network, batch: Batch, t2: Tensor, weights: Weights, noise: Sequence[Tensor]
) -> Bound:
    """VDSH-SP, equation 5: words from s + v, labels from s, a divergence for each."""
    Q, Q_v = network.posterior(t2), network.private_posterior(t2)
    s, v = Q.sample(noise[0]), Q_v.sample(noise[1])  # (M, B, K)
    words = content_log_likelihood(network, batch, s + v, s, weights)
    labels = batch.known * expected(label_log_likelihood(network.label_logits(s), batch.labels))
    kl = divergence(Q) + divergence(Q_v)
    return Bound(words + weights.labels * labels - weights.kl * kl, kl)


def divergence(Q: Posterior) -> Tensor:
    """D_KL(Q || N(0, I)) in closed form (Kingma and Welling 2014, appendix B): (B,)."""
    return 0.5 * (Q.mu.square() + Q.log_variance.exp() - Q.log_variance - 1).sum(-1)


def content_log_likelihood(
    network: Network, batch: Batch, z: Tensor, s: Tensor, weights: Weights
) -> Tensor:
    """Log likelihood of the words, from z, and of the place where it is known, from s: (B,)."""
    words = expected(batch.log_likelihood(network.word_logits(z)))
    if not batch.places.shape[1]:
        return words
    # The log density of a normal distribution around what s says, but for a constant.
    place = -_PLACE * expected((network.place(s) - batch.places).square().sum(-1))
    return words + weights.places * place


def expected(values: Tensor) -> Tensor:
    """Average over the draws: (M, B) to (B,)."""
    return values.squeeze(0) if len(values) == 1 else values.mean(0)


def label_log_likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum the log probability of each label being there or not (equation 3): (M, B)."""
    return -torch.nn.functional.binary_cross_entropy_with_logits(
        logits, labels.expand_as(logits), reduction="none"
    ).sum(-1)
