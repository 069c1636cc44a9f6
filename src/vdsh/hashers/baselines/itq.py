"""ITQ: principal components, turned so that signs lose as little as possible.

Y. Gong and S. Lazebnik, "Iterative Quantization: A Procrustean Approach to Learning Binary Codes",
CVPR 2011: minimise ||B - V R||^2 over the signs B and the rotation R in turns (equation 2). The
components are those of sparse documents, centred without filling in their zeros.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, svds

from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, Report
from vdsh.jit import one_thread_each
from vdsh.model.encoders import Linear

Doubles = NDArray[np.float64]

_SMALL = 4  # with fewer than so many dimensions per component a full solver is the faster one
_NOTHING = 1e-12  # the share of the inputs' squares below which a component is rounding error


class Components(NamedTuple):
    """The directions in which documents differ most."""

    mean: Doubles  # (n_terms,)
    axes: Doubles  # (n_terms, n_components): orthonormal columns, the largest variance first

    def project(self, inputs: csr_array) -> Doubles:
        """Give the centred documents' coordinates, of shape (n_docs, n_components)."""
        return inputs @ self.axes - self.mean @ self.axes


def principal_components(
    inputs: csr_array, n_components: int, rng: np.random.RandomState
) -> Components:
    """Find the first principal components of sparse documents, one at least, that vary."""
    X = inputs.astype(np.float64)
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    with one_thread_each():  # more threads are no faster here, on a busy machine far slower
        if _SMALL * n_components < min(X.shape):
            squares, axes = _iterate(X, mean, n_components, rng)
        else:
            squares, axes = _decompose(X, mean)
    order = np.argsort(-squares, kind="stable")[:n_components]
    vary = squares[order] > _NOTHING * np.square(X.data).sum()
    vary[0] = True
    return Components(mean, axes[:, order[vary]])


def _iterate(
    X: csr_array, mean: Doubles, n_components: int, rng: np.random.RandomState
) -> tuple[Doubles, Doubles]:
    """Find the largest singular values, squared, and their vectors with products by X alone."""
    transposed = csr_array(X.T)
    centred = LinearOperator(
        X.shape,
        matvec=lambda v: X @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda u: transposed @ u.ravel() - mean * u.sum(),
        dtype=np.float64,
    )
    start = rng.uniform(-1, 1, min(X.shape))
    _, values, axes = svds(centred, n_components, v0=start)
    return np.square(values), axes.T


def _decompose(X: csr_array, mean: Doubles) -> tuple[Doubles, Doubles]:
    """Find all of them from the products of terms, or of documents where those are fewer."""
    n_docs, n_terms = X.shape
    if n_terms <= n_docs:
        squares, axes = eigh((X.T @ X).toarray() - n_docs * np.outer(mean, mean))
        return squares, axes
    shared = X @ mean  # (n_docs,)
    products = (X @ X.T).toarray() - shared - shared[:, None] + mean @ mean
    squares, vectors = eigh(products)
    lengths = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
    return squares, (X.T @ vectors - np.outer(mean, vectors.sum(axis=0))) / lengths


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
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
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
        self._require("at least 1", lambda n: n >= 1, "n_iterations")
        rng = check_random_state(self.random_state)
        found = principal_components(train.inputs, self.n_bits, rng)
        V = found.project(train.inputs).astype(np.float32)
        R = random_rotation(V.shape[1], self.n_bits, rng)
        self.losses_ = [quantisation_loss(V, R)]
        for i in range(self.n_iterations):
            R = improve(V, R)
            self.losses_.append(quantisation_loss(V, R))
            if progress:
                loss = self.losses_[-1]
                progress(Report(i + 1, self.n_iterations, 1.0, loss, unit="iteration"))
        self.rotation_ = R
        self.W_ = (found.axes @ R).astype(np.float32)
        self.b_ = -(found.mean @ found.axes @ R).astype(np.float32)


def random_rotation(n_rows: int, n_columns: int, rng: np.random.RandomState) -> Floats:
    """Draw a matrix with orthonormal rows; there must not be more rows than columns."""
    Q, _ = qr(rng.normal(size=(n_columns, n_rows)), mode="economic")
    rotation: Floats = Q.T.astype(np.float32)
    return rotation


def improve(V: Floats, R: Floats) -> Floats:
    """Take one turn: B = sgn(V R), then the rotation nearest to B (section 3.2 of the paper)."""
    B = signs(V @ R)
    with one_thread_each():  # more threads are no faster here, on a busy machine far slower
        U, _, W = svd(V.T @ B, full_matrices=False)  # orthogonal Procrustes problem
    rotation: Floats = U @ W
    return rotation


def quantisation_loss(V: Floats, R: Floats) -> float:
    """Compute ||B - V R||^2 per document for the best B."""
    rotated = V @ R
    return float(np.square(signs(rotated) - rotated, dtype=np.float64).sum() / len(V))


def signs(values: Floats) -> Floats:
    """Give 1 to what is not negative and -1 to the rest."""
    return np.where(values >= 0, np.float32(1), np.float32(-1))
