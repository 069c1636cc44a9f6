"""The trained encoder in numpy and numba: sparse terms to latent means, without torch.

A document's result does not depend on the documents around it, to the last bit, so that a text
gets the same code alone and in a batch. The sparse layer goes row by row. BLAS takes other paths
for other shapes, so it gets whole multiples of `_PAD` rows for the wide layer, where that is
enough, and tiles of just `_PAD` rows for the narrow heads.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled, kernel, spread
from vdsh.text.counts import Sparse

Floats = NDArray[np.float32]

_BLOCK = 512  # documents at a time: their hidden layers stay in the cache
_PAD = 16
_PLAIN = 1.5e-9  # seconds a product in numpy


def encode(
    inputs: Sparse, W1: Floats, b1: Floats, W2: Floats, b2: Floats, *heads: tuple[Floats, Floats]
) -> list[Floats]:
    """Run documents through two ReLU layers and some linear heads.

    Parameters
    ----------
    inputs : Counts or csr_array of shape (n_docs, n_terms)
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
            output[first:last] = tiled_product(t2, W)[: last - first]
            output[first:last] += b
    return outputs


def tiled_product(a: Floats, W: Floats) -> Floats:
    """Compute `a @ W` so that no row's result depends on the rows around it, to the last bit.

    Parameters
    ----------
    a : ndarray of shape (n, m)
    W : ndarray of shape (m, n_out)
    """
    short = -len(a) % _PAD
    padded = np.pad(a, ((0, short), (0, 0))) if short else a
    tiles = padded.reshape(-1, _PAD, a.shape[1])
    product: Floats = (tiles @ W).reshape(len(padded), -1)[: len(a)]
    return product


def _hidden(
    inputs: Sparse, first: int, last: int, W1: Floats, b1: Floats, W2: Floats, b2: Floats
) -> Floats:
    n_docs = last - first
    t1 = np.zeros((-(-n_docs // _PAD) * _PAD, len(b1)), np.float32)
    pointers = inputs.indptr[first : last + 1]
    if compiled(_PLAIN * (int(pointers[-1]) - int(pointers[0])) * len(b1)):
        spread(
            lambda i, j: _sparse_relu(inputs.data, inputs.indices, pointers, W1, b1, t1, i, j),
            n_docs,
            least=32,
        )
    else:
        _plain_relu(inputs.data, inputs.indices, pointers, W1, b1, t1)
    t2: Floats = t1 @ W2
    t2 += b2
    np.maximum(t2, 0, out=t2)
    return t2


def _plain_relu(
    data: Floats,
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    W: Floats,
    b: Floats,
    out: Floats,
) -> None:
    """Do what `_sparse_relu` does: the same sums in the same order, so the same bits."""
    for i, (begin, end) in enumerate(pairwise(indptr.tolist())):
        row = b.copy()
        whole = end - (end - begin) % 4
        for j in range(begin, whole, 4):
            a = data[j : j + 4, None] * W[indices[j : j + 4]]
            row += (a[0] + a[1]) + (a[2] + a[3])
        for j in range(whole, end):
            row += data[j] * W[indices[j]]
        out[i] = np.maximum(row, np.float32(0))


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
    """Compute max(0, x @ W + b) for the sparse rows x from `start` to `stop`."""
    for i in range(start, stop):
        row = out[i]
        for h in range(len(row)):
            row[h] = b[h]
        j = indptr[i]
        while j + 4 <= indptr[i + 1]:  # four terms at a time: a quarter of the loads and stores
            w0, w1, w2, w3 = W[indices[j]], W[indices[j + 1]], W[indices[j + 2]], W[indices[j + 3]]
            x0, x1, x2, x3 = data[j], data[j + 1], data[j + 2], data[j + 3]
            for h in range(len(row)):
                row[h] += (x0 * w0[h] + x1 * w1[h]) + (x2 * w2[h] + x3 * w3[h])
            j += 4
        while j < indptr[i + 1]:
            x0, w0 = data[j], W[indices[j]]
            for h in range(len(row)):
                row[h] += x0 * w0[h]
            j += 1
        for h in range(len(row)):
            row[h] = max(row[h], np.float32(0))
