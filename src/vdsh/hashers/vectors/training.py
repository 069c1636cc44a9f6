"""Training on vectors: the network of VDSH, with a likelihood that fits dense input.

A vector is no bag of words: it is taken as normal around a linear function of tanh(s), and beside
it the place where walks along the graph of the nearest vectors lead (see `vdsh.related`). The first
keeps who is near whom, the second who belongs together over several hops. Where there are texts,
the code has to tell their words as well, so that bits can be explained.
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
_JOINED = 10  # nearest vectors that the graph joins each with
_VECTOR, _PLACE = 300.0, 60.0  # one over twice the variance of a vector, of a place: length 1
_WORDS = 0.1  # weight of a word
_KL = 0.01  # weight of the divergence
_DROPOUT = 0.2
_LAST = 0.1  # of the learning rate, with which training ends


class Trained(NamedTuple):
    """Weights of the network, and loss and divergence of each epoch."""

    weights: dict[str, Floats]
    history: list[dict[str, float | None]]


class _Corpus(NamedTuple):
    """What training knows, on the device: rows are documents."""

    inputs: Tensor  # (n_docs, d), centred and scaled
    targets: Tensor  # (n_docs, d + P), vectors and places, scaled so that both have one variance
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
    corpus = _corpus(vectors[rows], None if words is None else words[rows], scale, device)
    generator = torch.Generator(device).manual_seed(seed)
    network = _network(hasher, corpus, seed).to(device)
    optimizer = Adam(network.parameters(), hasher.learning_rate)
    history: list[dict[str, float | None]] = []
    for number in range(1, hasher.epochs_ + 1):
        done = (number - 1) / hasher.epochs_
        optimizer.learning_rate = hasher.learning_rate * (1 - (1 - _LAST) * done)
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
    del weights["P"], weights["b_places"]  # nobody asks for them afterwards
    return Trained(scale.into(weights), history)


def _corpus(
    vectors: Floats, words: csr_array | None, scale: _Scale, device: torch.device
) -> _Corpus:
    """Find out where everybody lies, and put it on the device."""
    places = walk(nearest_vectors(reduce(vectors), _JOINED))
    targets = np.hstack([np.sqrt(_VECTOR) * vectors, np.sqrt(_PLACE) * places])
    if words is not None:
        words = csr_array((np.ones_like(words.data), words.indices, words.indptr), words.shape)

    def tensor(array: NDArray[np.floating]) -> Tensor:
        return torch.as_tensor(array).to(device, torch.float32)

    return _Corpus(tensor((vectors - scale.mean) * scale.factor), tensor(targets), words)


def _network(hasher: "VDSH_V", corpus: _Corpus, seed: int) -> Network:
    words = corpus.words
    network = Network(
        corpus.inputs.shape[1],
        hasher.hidden_size,
        hasher.n_bits,
        n_labels=0,
        n_places=corpus.targets.shape[1],
        n_words=0 if words is None else words.shape[1],
        private=False,
        decoder_size=hasher.decoder_size,
        bounded=True,
        dropout=_DROPOUT,
        generator=torch.Generator().manual_seed(seed),
    )
    network.expect_places(corpus.targets.mean(0).cpu())
    if words is not None:
        often = torch.as_tensor(np.asarray(words.sum(axis=0)).ravel() + 1, dtype=torch.float32)
        network.expect(often / often.sum(), torch.zeros(0))
    return network


def _bound(
    network: Network, corpus: _Corpus, rows: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Compute the lower bound and the divergence in it, means over the documents of a batch."""
    Q = network.posterior(network.above(corpus.inputs[rows] @ network.W1, generator))
    s = Q.sample(1, generator)  # (1, B, K)
    value = -(network.place(s)[0] - corpus.targets[rows]).square().sum(1)
    if corpus.words is not None:
        value = value + _WORDS * _word_log_likelihood(network, s, corpus.words, rows)
    kl = divergence(Q)
    return (value - _KL * kl).mean(), kl.mean()


def _word_log_likelihood(network: Network, s: Tensor, words: csr_array, rows: Tensor) -> Tensor:
    targets = torch.as_tensor(words[rows.cpu().numpy()].toarray()).to(s.device, s.dtype)  # (B, V)
    logits = network.word_logits(s)[0]
    return (targets * logits).sum(1) - targets.sum(1) * logits.logsumexp(1)
