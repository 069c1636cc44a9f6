"""Top eigenvectors of a large sparse matrix, on all cores."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.jit import available_threads, in_threads

_BLOCK = 1024  # rows a task

Floats = NDArray[np.float32]


def top_eigenvectors(matrix: csr_array, n: int, *, steps: int, every: int) -> tuple[Floats, Floats]:
    """Find about the n eigenvalues of a symmetric matrix that are largest, of either sign.

    A few random vectors are multiplied many times (subspace iteration), which equal eigenvalues
    and a matrix in pieces do not hurt. The last of the n are rough; ask for more than you take.

    Parameters
    ----------
    matrix : float32 csr_array of shape (n_rows, n_rows)
    n : int
    steps : int
        Products in all.
    every : int
        Products after which the vectors are made orthogonal again.

    Returns
    -------
    values : float32 ndarray of shape (n,)
        The smallest first.
    vectors : float32 ndarray of shape (n_rows, n)
    """
    n_rows, threads = matrix.shape[0], available_threads()
    parts = [matrix[first : first + _BLOCK] for first in range(0, n_rows, _BLOCK)]

    def multiply(V: Floats) -> Floats:
        return np.vstack(in_threads(lambda part: part @ V, parts, threads))

    V = np.random.RandomState(0).normal(size=(n_rows, min(n, n_rows))).astype(np.float32)
    for number in range(1, steps + 1):
        V = multiply(V)
        if number % every == 0:
            V, _ = np.linalg.qr(V)
    values, turn = np.linalg.eigh(V.T @ multiply(V))
    return values, V @ turn
