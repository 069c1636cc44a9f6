"""Principal components of sparse documents, centred without filling in their zeros."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, svds
from threadpoolctl import threadpool_limits

Doubles = NDArray[np.float64]

_SMALL = 4  # with fewer than so many dimensions per component a full solver is the faster one
_NOTHING = 1e-12  # the share of the inputs' squares below which a component is rounding error


class Components(NamedTuple):
    """The directions in which documents differ most."""

    mean: Doubles  # (n_terms,)
    axes: Doubles  # (n_terms, n_components): orthonormal columns, the largest variance first

    def project(self, inputs: csr_array) -> Doubles:
        """Give the centred documents' coordinates, of shape (n_docs, n_components)."""
        coordinates: Doubles = inputs @ self.axes - self.mean @ self.axes
        return coordinates


def principal_components(
    inputs: csr_array, n_components: int, rng: np.random.RandomState
) -> Components:
    """Find the first principal components of sparse documents.

    Parameters
    ----------
    inputs : csr_array of shape (n_docs, n_terms)
    n_components : int
        How many at most. Those without variance are left out, but one always stays.
    rng : RandomState
        Draws the starting point of the iterative solver.
    """
    X = inputs.astype(np.float64)
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    with threadpool_limits(1):  # more threads are no faster here, on a busy machine far slower
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
