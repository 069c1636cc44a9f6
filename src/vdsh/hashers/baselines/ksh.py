"""KSH: bits that are learned one by one from pairs of labelled documents.

W. Liu, J. Wang, R. Ji, Y.-G. Jiang and S.-F. Chang, "Supervised Hashing with Kernels",
CVPR 2012. A bit is the sign of a sum of kernel values to a few documents, the anchors, less their
means (section 3.1). Inner products of codes are to equal the number of bits times S, which is 1 for
pairs of documents that share a label and -1 for others (section 3.2). Each bit takes what the bits
before it left over, first by a spectral relaxation, then by gradient descent (section 3.3).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigsh

from vdsh.codes import Scores
from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, Report
from vdsh.model.encoders import Anchors, squared_distances

Floats = NDArray[np.floating[Any]]

_ENOUGH = 1e-3  # share of the cost that a gradient step must gain for another one
_DENSE = 64  # features up to which the eigenvector comes from a dense solver
_RESTARTS = 50  # of the sparse solver, which would try thousands where no direction stands out


@dataclass(eq=False, repr=False, kw_only=True)
class KSH(Hasher):
    """Hash documents so that those that share a label get similar codes, with kernels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
        What the kernel compares; "given" takes the values as they are.
    threshold : {"median", "sign"}, default="sign"
        What turns a score into a bit; "sign" is the paper's.
    n_anchors : int, default=1000
        Training documents that others are compared with; at most as many as there are.
    n_labelled : int, default=5000
        Labelled documents whose pairs are learned from; at most as many as there are.
    bandwidth : float, optional
        The kernel is exp(-distance^2 / (2 bandwidth)). By default the mean squared distance of
        documents and anchors, as in the authors' code.
    ridge : float, default=1.0
        Added to the eigenvalues of the kernel features' covariance, as a share of their mean.
    steps : int, default=20
        Gradient steps per bit, at most.
    random_state : int, RandomState or None
        Draws anchors and labelled documents.

    Attributes
    ----------
    classes_ : list of str
        The labels.
    anchor_values_, anchor_terms_, anchor_starts_ : ndarray
        The anchors' weighted terms, the three arrays of a CSR matrix of shape (n_anchors, n_terms).
    kernel_means_ : ndarray of shape (n_anchors,)
    projection_ : ndarray of shape (n_anchors, n_bits)
        From centred kernel values to scores.
    bandwidth_ : float
    """

    supervised: ClassVar[bool] = True
    encoder = Anchors

    threshold: str = "sign"
    n_anchors: int = 1000
    n_labelled: int = 5000
    bandwidth: float | None = None
    ridge: float = 1.0
    steps: int = 20

    @np.errstate(invalid="ignore")  # OpenBLAS's sgemv raises it of AVX-512 lanes it throws away
    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        self._require("at least 1", lambda n: n >= 1, "n_anchors", "n_labelled")
        self._require("at least 0", lambda n: n >= 0, "ridge", "steps")
        self._require("above 0 or None", lambda x: x > 0, "bandwidth")
        assert train.labels is not None
        rng = check_random_state(self.random_state)
        anchors = train.inputs[draw(np.arange(train.inputs.shape[0]), self.n_anchors, rng)]
        self.anchor_values_ = anchors.data.astype(np.float32)
        self.anchor_terms_ = anchors.indices.astype(np.int32)
        self.anchor_starts_ = anchors.indptr.astype(np.int32)
        rows = draw(np.flatnonzero(train.labels.known), self.n_labelled, rng)
        kernel = self._learn_kernel(squared_distances(train.inputs[rows], anchors))
        features, whiten = whitened(kernel, self.ridge)
        residue = Residue(Similarity(train.labels.take(rows).matrix), self.n_bits)
        matrix = (features.T @ (residue @ features)).astype(np.float64)  # F'RF
        projection = np.empty((kernel.shape[1], self.n_bits))
        for i in range(self.n_bits):
            start = top_eigenvector(matrix, rng)
            direction = refine(features, residue, start, self.steps)
            bit = signs(features @ direction)
            residue.take(bit)
            matrix -= np.outer(bit @ features, bit @ features)
            projection[:, i] = whiten @ direction
            if progress:
                progress(Report(i + 1, self.n_bits, 1.0, residue.mean_square(), unit="bit"))
        self.projection_ = projection.astype(np.float32)

    def _learn_kernel(self, distances: Scores) -> Scores:
        """Set bandwidth and means from documents' distances; return their centred kernel values."""
        mean = float(distances.mean(dtype=np.float64))
        self.bandwidth_ = float(self.bandwidth or mean or 1.0)
        kernel: Scores = np.exp(distances / np.float32(-2 * self.bandwidth_))
        self.kernel_means_ = kernel.mean(axis=0, dtype=np.float64).astype(np.float32)
        kernel -= self.kernel_means_
        return kernel


def draw(rows: NDArray[np.intp], most: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Take at most so many of the rows, in order."""
    return np.sort(rng.choice(rows, most, replace=False)) if len(rows) > most else rows


def signs(values: Floats) -> Floats:
    """Turn scores into -1 and 1."""
    return np.where(values > 0, values.dtype.type(1), values.dtype.type(-1))


def whitened(kernel: Scores, ridge: float) -> tuple[Scores, NDArray[np.float64]]:
    """Turn kernel values K into features with covariance 1, which makes K'RK a = v K'K a plain.

    Return features = kernel @ whiten, (n_docs, n_features), and whiten.
    """
    covariance = kernel.T.astype(np.float64) @ kernel / len(kernel)
    values, vectors = eigh(covariance)
    top = max(values[-1], float(np.finfo(np.float32).tiny))
    kept = values > 1e-6 * top  # the rest is rounding
    kept[-1] = True
    scale = np.sqrt(np.maximum(values[kept], 0) + ridge * max(values.mean(), 0) + 1e-9 * top)
    whiten = vectors[:, kept] / scale
    return kernel @ whiten.astype(np.float32), whiten


class Similarity:
    """S of the paper, which holds 1 for pairs that share a label and -1 for others.

    It is the same for all documents with the same set of labels, so it is kept for these sets.
    """

    def __init__(self, labels: NDArray[np.uint8]) -> None:
        sets, which = np.unique(labels, axis=0, return_inverse=True)
        n_docs, which = len(labels), which.reshape(-1).astype(np.int32)
        ones = np.ones(n_docs, np.float32)
        self.members = csr_array((ones, which, np.arange(n_docs + 1)), (n_docs, len(sets)))
        self.transposed = self.members.T.tocsr()
        shared = sets.astype(np.float32) @ sets.T.astype(np.float32)
        self.between = np.where(shared > 0, np.float32(1), np.float32(-1))  # (n_sets, n_sets)

    def __matmul__(self, values: Floats) -> Floats:
        return self.members @ (self.between @ (self.transposed @ values))


class Residue:
    """R, what the bits so far leave of n_bits * S; never held as a matrix of all pairs."""

    def __init__(self, similarity: Similarity, n_bits: int) -> None:
        self.similarity, self.n_bits = similarity, n_bits
        n_docs = similarity.members.shape[0]
        self.bits = np.empty((n_docs, 0), np.float32)
        self.square = float(n_bits * n_docs) ** 2  # of the Frobenius norm

    def __matmul__(self, values: Floats) -> Floats:
        product: Floats = self.n_bits * (self.similarity @ values)
        return product - self.bits @ (self.bits.T @ values)

    def take(self, bit: Floats) -> None:
        """Subtract h h' for a bit h of -1 and 1."""
        self.square += float(len(bit)) ** 2 - 2 * float(bit @ (self @ bit))
        self.bits = np.column_stack((self.bits, bit))

    def mean_square(self) -> float:
        """Return the mean of the squared entries."""
        return self.square / len(self.bits) ** 2


def top_eigenvector(matrix: NDArray[np.float64], rng: np.random.RandomState) -> Scores:
    """Maximise a'Ma over unit vectors a: with M = F'RF the relaxation that leaves out the signs."""
    size = len(matrix)
    if size > _DENSE:
        try:
            start = rng.normal(size=size)
            vector = eigsh(matrix, 1, which="LA", v0=start, tol=1e-3, maxiter=_RESTARTS)[1][:, 0]
            return vector.astype(np.float32)
        except ArpackError:  # nothing stands out any more: more bits than the labels can fill
            pass
    vector = eigh(matrix, subset_by_index=(size - 1, size - 1))[1][:, 0]
    vector *= rng.choice((-1, 1))
    return vector.astype(np.float32)


def smoothed_cost(features: Floats, residue: Residue, direction: Floats) -> float:
    """Compute -b'Rb with b = tanh(Fa / 2) in the place of signs."""
    b = np.tanh(features @ direction / 2)
    return -float(b @ (residue @ b))


def smoothed_gradient(
    features: Floats, residue: Residue, direction: Floats
) -> tuple[float, Floats]:
    """Compute the smoothed cost and its gradient."""
    b = np.tanh(features @ direction / 2)
    pull = residue @ b
    return -float(b @ pull), -((pull * (1 - b * b)) @ features)


def refine(features: Scores, residue: Residue, start: Scores, steps: int) -> Scores:
    """Go down the smoothed cost by Nesterov's method; keep the start where its bit is better."""
    here = previous = start
    last, gradient = smoothed_gradient(features, residue, start)
    size = 1.0 / max(float(np.linalg.norm(gradient)), 1e-30)
    for number in range(steps):
        ahead = here + number / (number + 3) * (here - previous)
        cost, gradient = smoothed_gradient(features, residue, ahead)
        square = float(gradient @ gradient)
        while True:
            reached = smoothed_cost(features, residue, ahead - size * gradient)
            if reached <= cost - size * square / 2 or size * square < 1e-6 * abs(cost):
                break
            size /= 2
        previous, here = here, ahead - size * gradient
        if last - reached < _ENOUGH * abs(reached):
            break
        last = reached
    before, after = signs(features @ start), signs(features @ here)
    better = after @ (residue @ after) > before @ (residue @ before)
    return here if better else start
