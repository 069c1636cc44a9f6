"""Training on vectors: the network of VDSH, with a likelihood that fits dense input.

What a code has to tell is the vector, and beside it the place where walks along the graph of the
nearest vectors lead (see `vdsh.related`): the one keeps who is near whom, the other who belongs
together over several hops. Both are normal around c tanh(s) Q, where the rows of Q are orthonormal,
those that lose least to signs (iterative quantisation): so the distance of codes is that of what
they tell. The network begins as the linear map that comes nearest to it.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from vdsh.errors import InputError
from vdsh.hashers.base import Progress, Report
from vdsh.hashers.vdsh.adam import Adam
from vdsh.hashers.vdsh.beginning import main_axes, turn
from vdsh.hashers.vdsh.meanings import reduce
from vdsh.hashers.vdsh.network import Network
from vdsh.hashers.vdsh.objective import divergence
from vdsh.hashers.vdsh.related import nearest_vectors, walk
from vdsh.hashers.vdsh.training import choose_device
from vdsh.model.health import sample

if TYPE_CHECKING:
    from vdsh.hashers.vectors.vdsh_v import VDSH_V

Floats = NDArray[np.float32]

_MOST = 50_000  # vectors to learn from; more take longer and teach hardly more
_JOINED, _HOPS = 10, 16  # nearest vectors that the graph joins each with, dimensions of walks
_PLACE = 0.1  # squared length of a place beside that of a vector, which is 1
_PRECISION = 300.0  # one over twice the variance of both
_WORDS = 0.1  # weight of a word
_KL = 0.01  # weight of the divergence
_DROPOUT = 0.1
_GAIN, _SMALL = 2.0, 0.1  # of the first scores, and of weights that begin by chance
_LAST = 0.1  # of the learning rate, with which training ends


class Trained(NamedTuple):
    """Weights of the network, and loss and divergence of each epoch."""

    weights: dict[str, Floats]
    history: list[dict[str, float | None]]


class _Corpus(NamedTuple):
    """What training knows: rows are documents."""

    inputs: Tensor  # (n_docs, d), centred and scaled
    targets: Tensor  # (n_docs, K), what tanh(s) is to be
    precision: float  # of the targets
    words: csr_array | None  # (n_docs, n_words), 1 where a document has a word


class _Scale(NamedTuple):
    """How inputs are centred and scaled; the first layer takes it over in the end."""

    mean: Floats
    factor: np.float32

    @classmethod
    def of(cls, vectors: Floats) -> "_Scale":
        mean = vectors.mean(axis=0)
        spread = np.sqrt(np.square(vectors - mean).mean())
        return cls(mean, np.float32(1 / max(spread, 1e-6)))

    def into(self, weights: dict[str, Floats]) -> dict[str, Floats]:
        """Return weights that do the same to vectors as they are."""
        W1 = weights["W1"] * self.factor
        return weights | {"W1": W1, "b1": weights["b1"] - self.mean @ W1}


def train(
    hasher: "VDSH_V",
    vectors: Floats,
    words: csr_array | None,
    seed: int,
    progress: Progress | None,
) -> Trained:
    """Fit the network to vectors of unit length, and to word counts of the same documents."""
    device = choose_device(hasher.device)
    rows = sample(len(vectors), _MOST)
    scale = _Scale.of(vectors[rows])
    corpus = _corpus(hasher, vectors[rows], None if words is None else words[rows], scale, seed)
    network = _network(hasher, corpus, seed).to(device)
    corpus = corpus._replace(inputs=corpus.inputs.to(device), targets=corpus.targets.to(device))
    generator = torch.Generator(device).manual_seed(seed)
    optimizer = Adam(network.parameters(), hasher.learning_rate)
    history: list[dict[str, float | None]] = []
    for number in range(1, hasher.epochs_ + 1):
        done = (number - 1) / hasher.epochs_
        optimizer.learning_rate.fill_(hasher.learning_rate * (1 - (1 - _LAST) * done))
        order = torch.randperm(len(rows), generator=generator, device=device)
        batches = torch.split(order, hasher.batch_size)
        sums = np.zeros(2)
        for i, batch in enumerate(batches, 1):
            bound, kl = _bound(network, corpus, batch, generator)
            optimizer.forget_gradients()
            (-bound).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            sums += -float(bound.detach()), float(kl.detach())
            if progress:
                progress(Report(number, hasher.epochs_, i / len(batches), *(sums / i).tolist()))
        loss, kl_mean = (sums / len(batches)).tolist()
        if not np.isfinite(loss):
            raise InputError(
                f"Training diverged: the loss of epoch {number} is {loss}. Try a smaller "
                f"learning_rate. Got {hasher.learning_rate}."
            )
        history.append({"loss": loss, "kl": kl_mean, "validation": None})
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    return Trained(scale.into(weights), history)


def _corpus(
    hasher: "VDSH_V", vectors: Floats, words: csr_array | None, scale: _Scale, seed: int
) -> _Corpus:
    """Find out where everybody lies, and what the codes are to be."""
    places = walk(nearest_vectors(reduce(vectors), _JOINED), _HOPS)
    told = turn(np.hstack([vectors, np.sqrt(_PLACE) * places]), hasher.n_bits, seed)
    size = float(np.abs(told).mean()) or 1.0  # that of a bit: c
    if words is not None:
        words = csr_array((np.ones_like(words.data), words.indices, words.indptr), words.shape)
    inputs = torch.as_tensor((vectors - scale.mean) * scale.factor)
    return _Corpus(inputs, torch.as_tensor(told / size), _PRECISION * size**2, words)


def _network(hasher: "VDSH_V", corpus: _Corpus, seed: int) -> Network:
    words = corpus.words
    network = Network(
        corpus.inputs.shape[1],
        hasher.hidden_size,
        hasher.n_bits,
        n_labels=0,
        n_words=0 if words is None else words.shape[1],
        private=False,
        decoder_size=hasher.decoder_size,
        bounded=True,
        dropout=_DROPOUT,
        generator=torch.Generator().manual_seed(seed),
    )
    _begin(network, corpus)
    if words is not None:
        often = torch.as_tensor(np.asarray(words.sum(axis=0)).ravel() + 1, dtype=torch.float32)
        network.expect(often / often.sum(), torch.zeros(0))
    return network


@torch.no_grad()
def _begin(network: Network, corpus: _Corpus) -> None:
    """Have the network begin as the linear map from inputs to targets, by least squares.

    Pairs of nodes are relu(x) and relu(-x), whose difference is x.
    """
    x, y = corpus.inputs.numpy(), corpus.targets.numpy()
    squares, axes = main_axes(x, min(x.shape[1], len(network.b1) // 2))
    m = axes.shape[1]
    inverse = 1 / np.maximum(squares, 1e-6 * squares[:1])
    found = torch.as_tensor(_GAIN * inverse[:, None] * (axes.T @ (x.T @ y)))  # (m, K)
    for weights in (network.W2, network.W3, network.W4):
        weights.mul_(_SMALL)
    network.W1[:, : 2 * m] = torch.as_tensor(np.hstack([axes, -axes]))
    network.W2[: 2 * m, : 2 * m] += torch.eye(2 * m)
    network.W3[: 2 * m] = torch.cat([found, -found])


def _bound(
    network: Network, corpus: _Corpus, rows: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Compute the lower bound and the divergence in it, means over the documents of a batch."""
    kept, (epsilon,) = network.kept(len(rows), generator), network.noise(len(rows), 1, generator)
    Q = network.posterior(network.above(corpus.inputs[rows] @ network.W1, kept))
    s = Q.sample(epsilon)  # (1, B, K)
    value = -corpus.precision * (torch.tanh(s[0]) - corpus.targets[rows]).square().sum(1)
    if corpus.words is not None:
        value = value + _WORDS * _word_log_likelihood(network, s, corpus.words, rows)
    kl = divergence(Q)
    return (value - _KL * kl).mean(), kl.mean()


def _word_log_likelihood(network: Network, s: Tensor, words: csr_array, rows: Tensor) -> Tensor:
    targets = torch.as_tensor(words[rows.cpu().numpy()].toarray()).to(s.device, s.dtype)  # (B, V)
    logits = network.word_logits(s)[0]
    return (targets * logits).sum(1) - targets.sum(1) * logits.logsumexp(1)
