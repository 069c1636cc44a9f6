"""The trained encoder in numpy and numba: sparse terms to latent means, without torch.

A document's result does not depend on the documents around it, to the last bit, so that a text
gets the same code alone and in a batch: rows are computed one by one, except for the product
with W2, which goes to BLAS in whole multiples of `_PAD` rows and so always takes the same path.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.jit import kernel, spread

Floats = NDArray[np.float32]

_BLOCK = 512  # documents at a time: their hidden layers stay in the cache
_PAD = 16


def encode(
    inputs: csr_array, W1: Floats, b1: Floats, W2: Floats, b2: Floats, *heads: tuple[Floats, Floats]
) -> list[Floats]:
    """Run documents through two ReLU layers and some linear heads.

    Parameters
    ----------
    inputs : csr_array of shape (n_docs, n_terms)
    W1, b1, W2, b2 : ndarray
        The hidden layers, of shapes (n_terms, H), (H,), (H, H), (H,).
    heads : pairs of ndarray
        W of shape (H, n_out) and b of shape (n_out,).

    Returns
    -------
    list of ndarray of shape (n_docs, n_out), one per head
    """
    n_docs = inputs.shape[0]
    outputs = [np.empty((n_docs, len(b)), np.float32) for _, b in heads]
    for first in range(0, n_docs, _BLOCK):
        last = min(first + _BLOCK, n_docs)
        t2 = _hidden(inputs, first, last, W1, b1, W2, b2)
        for output, (W, b) in zip(outputs, heads, strict=True):
            _in_threads(_linear, t2, W, b, output[first:last])
    return outputs


def _hidden(
    inputs: csr_array, first: int, last: int, W1: Floats, b1: Floats, W2: Floats, b2: Floats
) -> Floats:
    rows = -(-(last - first) // _PAD) * _PAD
    t1 = np.zeros((rows, len(b1)), np.float32)
    pointers = inputs.indptr[first : last + 1]
    _in_threads(_sparse_relu, inputs.data, inputs.indices, pointers, W1, b1, t1[: last - first])
    t2: Floats = t1 @ W2
    t2 += b2
    np.maximum(t2, 0, out=t2)
    return t2[: last - first]


def _in_threads(function, *arguments) -> None:  # type: ignore[no-untyped-def]
    """Let every core do a share of the rows of the last argument."""
    spread(lambda i, j: function(*arguments, i, j), len(arguments[-1]), least=32)


@kernel()
def _sparse_relu(
    data: Floats,
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    W: Floats,
    b: Floats,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """Compute max(0, x @ W + b) for sparse rows x."""
    for i in range(start, stop):
        row = out[i]
        row[:] = b
        for j in range(indptr[i], indptr[i + 1]):
            value, weights = data[j], W[indices[j]]
            for h in range(len(row)):
                row[h] += value * weights[h]
        for h in range(len(row)):
            row[h] = max(row[h], np.float32(0))


@kernel()
def _linear(x: Floats, W: Floats, b: Floats, out: Floats, start: int, stop: int) -> None:
    """Compute x @ W + b row by row; half of x is zero behind a ReLU, and skipped."""
    for i in range(start, stop):
        row = out[i]
        row[:] = b
        for h in range(x.shape[1]):
            value = x[i, h]
            if value != 0:
                weights = W[h]
                for k in range(len(row)):
                    row[k] += value * weights[k]
