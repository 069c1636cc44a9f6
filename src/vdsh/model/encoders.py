"""From weighted terms to scores: one small object for each way that a method computes them.

A hasher learns the arrays; these need nothing else, so a saved model is served without the code
that trained it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.model.network import Floats, Learned, encode, layer, sparse_layer
from vdsh.text.counts import Counts, Sparse, to_csr

LENGTH = 100.0  # words that a document is scaled to by `Layers`
_BLOCK = 512  # documents at a time: their hidden layers stay in the cache


class Posterior(NamedTuple):
    """Mean and standard deviation of Q(s | d), each of shape (n_docs, n_bits)."""

    mu: Scores
    sigma: Scores


class Encoder(Learned, ABC):
    """Computes scores. A document's scores do not depend on the documents around it."""

    def scores(self, inputs: Sparse) -> Scores:
        """Compute scores of shape (n_docs, n_bits) from weighted terms."""
        return self._scores(inputs)

    @abstractmethod
    def _scores(self, inputs: Sparse) -> Scores: ...


@dataclass(frozen=True)
class Hyperplanes(Encoder):
    """The side of hyperplanes through the origin: LSH."""

    hyperplanes: Annotated[Floats, "terms bits"]

    def _scores(self, inputs: Sparse) -> Scores:
        return to_csr(inputs) @ self.hyperplanes


@dataclass(frozen=True)
class Linear(Encoder):
    """A linear map: iterative quantisation, self-taught hashing, SHTTM."""

    W: Annotated[Floats, "terms bits"]
    b: Annotated[Floats, "bits"]

    def _scores(self, inputs: Sparse) -> Scores:
        return sparse_layer(inputs, self.W, self.b)


@dataclass(frozen=True)
class Probabilistic(Encoder):
    """An encoder with a posterior Q(s | d), which says how sure a bit is."""

    @abstractmethod
    def posterior(self, inputs: Sparse) -> Posterior:
        """Return mean and standard deviation of Q(s | d)."""


@dataclass(frozen=True)
class Regression(Linear, Probabilistic):
    """A linear map whose scores have a deviation for each bit: linear hashing."""

    sigma: Annotated[Floats, "bits"]

    def posterior(self, inputs: Sparse) -> Posterior:
        """Return mean and standard deviation of Q(s | d)."""
        mu = self.scores(inputs)
        return Posterior(mu, self.sigma[None].repeat(len(mu), axis=0))


@dataclass(frozen=True)
class Waves(Encoder):
    """Waves along principal components: spectral hashing."""

    components: Annotated[Floats, "terms components"]
    corner: Annotated[Floats, "components"]
    axes: Annotated[NDArray[np.int64], "bits int64"]
    frequencies: Annotated[Floats, "bits"]

    def _scores(self, inputs: Sparse) -> Scores:
        x = to_csr(inputs) @ self.components - self.corner  # (n_docs, n_components)
        scores: Scores = np.sin(np.float32(np.pi / 2) + self.frequencies * x[:, self.axes])
        return scores


@dataclass(frozen=True)
class Layers(Encoder):
    """Three sigmoid layers over word counts of one length: stacked RBMs."""

    W1: Annotated[Floats, "terms hidden"]
    b1: Annotated[Floats, "hidden"]
    W2: Annotated[Floats, "hidden hidden"]
    b2: Annotated[Floats, "hidden"]
    W3: Annotated[Floats, "hidden bits"]
    b3: Annotated[Floats, "bits"]

    def _scores(self, inputs: Sparse) -> Scores:
        from scipy.special import expit

        def work(rows: Any) -> Scores:
            h1 = expit(rows @ self.W1 + self.b1)  # (B, H); a sparse product is by row
            h2 = expit(layer(h1, self.W2, self.b2))  # (B, H)
            return layer(h2, self.W3, self.b3)

        return _by_blocks(to_csr(scale_lengths(inputs)), work)


@dataclass(frozen=True)
class Anchors(Encoder):
    """Likeness to some training documents: supervised hashing with kernels."""

    anchor_values: Annotated[Floats, "entries"]
    anchor_terms: Annotated[NDArray[np.int32], "entries int32"]
    anchor_starts: Annotated[NDArray[np.int32], "starts int32"]
    kernel_means: Annotated[Floats, "anchors"]
    projection: Annotated[Floats, "anchors bits"]
    bandwidth: float

    def _scores(self, inputs: Sparse) -> Scores:
        shape = len(self.anchor_starts) - 1, inputs.shape[1]
        parts = self.anchor_values, self.anchor_terms, self.anchor_starts
        anchors = to_csr(Counts(*parts, shape))

        def work(rows: Any) -> Scores:
            distances = squared_distances(rows, anchors)
            kernel = np.exp(distances / np.float32(-2 * self.bandwidth))
            origin = np.zeros(self.projection.shape[1], np.float32)
            return layer(kernel - self.kernel_means, self.projection, origin)

        return _by_blocks(to_csr(inputs), work)


@dataclass(frozen=True)
class Network(Layers, Probabilistic):
    """Two ReLU layers and the mean of Q(s | d): the VDSH family (section 3 of the paper).

    Its layers have the shapes of `Layers`. `W4` and `b4` give the deviation, `W5` to `b6` the
    private latent vector of VDSH-SP.
    """

    W4: Annotated[Floats, "hidden bits"]
    b4: Annotated[Floats, "bits"]
    log_variance: str = "bounded"
    W5: Annotated[Any, "hidden bits"] = None
    b5: Annotated[Any, "bits"] = None
    W6: Annotated[Any, "hidden bits"] = None
    b6: Annotated[Any, "bits"] = None

    def _scores(self, inputs: Sparse) -> Scores:
        (mu,) = encode(inputs, self.W1, self.b1, self.W2, self.b2, (self.W3, self.b3))
        return mu

    def posterior(self, inputs: Sparse) -> Posterior:
        """Return mean and standard deviation of Q(s | d)."""
        return self._normal(inputs, (self.W3, self.b3), (self.W4, self.b4))

    def private_posterior(self, inputs: Sparse) -> Posterior | None:
        """Return mean and standard deviation of Q(v | d); None without a private vector."""
        if self.W5 is None:
            return None
        return self._normal(inputs, (self.W5, self.b5), (self.W6, self.b6))

    def _normal(self, inputs: Sparse, *heads: tuple[Floats, Floats]) -> Posterior:
        mu, raw = encode(inputs, self.W1, self.b1, self.W2, self.b2, *heads)
        # Below -80, where the sigmoid is 0, exp(-raw) would overflow.
        at_least = np.maximum(raw, -80)
        log_sigma = 0.5 / (1 + np.exp(-at_least)) if self.log_variance == "bounded" else raw
        return Posterior(mu, np.exp(log_sigma))


ENCODERS: dict[str, type[Encoder]] = {
    "linear": Regression,
    "vdsh": Network,
    "vdsh-s": Network,
    "vdsh-sp": Network,
    "rbm": Layers,
    "ksh": Anchors,
    "shttm": Linear,
    "lsh": Hyperplanes,
    "sph": Waves,
    "sth": Linear,
    "itq": Linear,
}


def _by_blocks(rows: Any, work: Callable[[Any], Scores]) -> Scores:
    """Compute the scores of some documents at a time."""
    firsts = range(0, max(rows.shape[0], 1), _BLOCK)  # none is a block too
    return np.vstack([work(rows[first : first + _BLOCK]) for first in firsts])


def scale_lengths(inputs: Sparse) -> Counts:
    """Scale each document to `LENGTH` words, so that long ones do not saturate the units."""
    ones = np.ones(inputs.shape[1], np.float32)
    lengths = np.asarray(to_csr(inputs) @ ones)  # goes row by row
    lengths[lengths == 0] = 1
    values = inputs.data * np.repeat(LENGTH / lengths, np.diff(inputs.indptr))
    return Counts(values.astype(np.float32), inputs.indices, inputs.indptr, inputs.shape)


def squared_distances(rows: Any, anchors: Any) -> Scores:
    """Compute squared distances between sparse rows, of shape (n_docs, n_anchors)."""
    products: Scores = (rows @ anchors.T.tocsr()).toarray()  # goes row by row
    distances: Scores = _squared_lengths(rows)[:, None] + _squared_lengths(anchors) - 2 * products
    np.maximum(distances, 0, out=distances)
    return distances


def _squared_lengths(rows: Any) -> Scores:
    return np.asarray(rows.power(2) @ np.ones(rows.shape[1], np.float32))


def normal_cdf(x: NDArray[np.floating[Any]]) -> Scores:
    """Compute the standard normal distribution function; scipy's takes half a second to load."""
    values = map(math.erfc, (x.ravel().astype(np.float64) / -math.sqrt(2)).tolist())
    return (0.5 * np.array(list(values))).astype(np.float32).reshape(x.shape)
