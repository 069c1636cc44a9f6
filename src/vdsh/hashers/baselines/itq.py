"""ITQ: principal components, turned so that signs lose as little as possible.

Y. Gong and S. Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes",
CVPR 2011: minimise ||B - V R||^2 over the signs B and the rotation R in turns (equation 2).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Hasher, Progress, Report
from vdsh.hashers.baselines.components import principal_components
from vdsh.model.encoders import Linear

Floats = NDArray[np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class ITQ(Hasher):
    """Hash documents by the signs of rotated principal components; needs no labels.

    With more bits than the documents have dimensions, R has as many rows as there are dimensions
    and stays orthogonal in its rows: the same as a rotation of components filled up with zeros.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "tf", "binary", "given"}, default="tfidf"
        What the components are of; "given" takes the values as they are,
        which may be vectors; "tf" scales vectors to unit length.
    threshold : {"median", "sign"}, default="sign"
        Where the rotated components are cut; "sign" is the paper's.
    n_iterations : int, default=50
        Turns of the alternation.
    random_state : int, RandomState or None
        Draws the first rotation. The same number gives the same codes on the same machine.

    Attributes
    ----------
    W_, b_ : ndarray of shape (n_terms, n_bits) and (n_bits,)
        Centring, components and rotation in one.
    rotation_ : ndarray of shape (n_components, n_bits)
    losses_ : list of float
        ||B - V R||^2 per document before each turn and after the last.
    """

    signed: ClassVar[bool] = True
    encoder = Linear

    threshold: str = "sign"
    n_iterations: int = 50

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        if self.n_iterations < 1:
            raise InputError(f"n_iterations must be at least 1. Got {self.n_iterations!r}.")
        rng = check_random_state(self.random_state)
        found = principal_components(train.inputs, self.n_bits, rng)
        V = found.project(train.inputs).astype(np.float32)
        R = random_rotation(V.shape[1], self.n_bits, rng)
        self.losses_ = [quantisation_loss(V, R)]
        for i in range(self.n_iterations):
            R = improve(V, R)
            self.losses_.append(quantisation_loss(V, R))
            if progress:
                report = Report(i + 1, self.n_iterations, 1.0, self.losses_[-1], unit="iteration")
                progress(report)
        self.rotation_ = R
        self.W_ = (found.axes @ R).astype(np.float32)
        self.b_ = -(found.mean @ found.axes @ R).astype(np.float32)


def random_rotation(n_rows: int, n_columns: int, rng: np.random.RandomState) -> Floats:
    """Draw a matrix with orthonormal rows; there must not be more rows than columns."""
    Q, _ = qr(rng.normal(size=(n_columns, n_rows)), mode="economic")
    rotation: Floats = Q.T.astype(np.float32)
    return rotation


def improve(V: Floats, R: Floats) -> Floats:
    """Take one turn: B = sgn(V R), then the rotation nearest to B (section 3.2 of the paper).

    Parameters
    ----------
    V : ndarray of shape (n_docs, n_components)
        Centred documents.
    R : ndarray of shape (n_components, n_bits)
    """
    return nearest_rotation(V, signs(V @ R))


def nearest_rotation(V: Floats, B: Floats) -> Floats:
    """Find the R that brings V R nearest to B (orthogonal Procrustes problem)."""
    with threadpool_limits(1):  # more threads are no faster here, on a busy machine far slower
        U, _, W = svd(V.T @ B, full_matrices=False)
    rotation: Floats = U @ W
    return rotation


def quantisation_loss(V: Floats, R: Floats) -> float:
    """Compute ||B - V R||^2 per document for the best B."""
    rotated = V @ R
    return float(np.square(signs(rotated) - rotated, dtype=np.float64).sum() / len(V))


def signs(values: Floats) -> Floats:
    """Give 1 to what is not negative and -1 to the rest."""
    return np.where(values >= 0, np.float32(1), np.float32(-1))
