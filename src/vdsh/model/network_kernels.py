"""Kernels of a trained network, which multiply each row of a layer by itself."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Floats = NDArray[np.float32]
Places = NDArray[np.integer[Any]]


@kernel()
def _add_terms(x: Floats, terms: Places, W: Floats, row: Floats, least: float) -> None:
    j = 0
    while j + 4 <= len(x):  # four terms at a time: a quarter of the loads and stores
        w0, w1, w2, w3 = W[terms[j]], W[terms[j + 1]], W[terms[j + 2]], W[terms[j + 3]]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for h in range(len(row)):
            row[h] += (x0 * w0[h] + x1 * w1[h]) + (x2 * w2[h] + x3 * w3[h])
        j += 4
    while j < len(x):
        x0, w0 = x[j], W[terms[j]]
        for h in range(len(row)):
            row[h] += x0 * w0[h]
        j += 1
    for h in range(len(row)):
        row[h] = max(row[h], np.float32(least))


@kernel()
def add_sparse(
    data: Floats, indices: Places, indptr: Places, W: Floats, out: Floats, least: float
) -> None:
    """Compute max(least, x @ W + out) for sparse rows x."""
    for i in range(len(out)):
        begin, end = indptr[i], indptr[i + 1]
        _add_terms(data[begin:end], indices[begin:end], W, out[i], least)


@kernel()
def add_dense(a: Floats, W: Floats, out: Floats, least: float) -> None:
    """Compute max(least, a @ W + out)."""
    terms, x = np.empty(len(W) + 1, np.int32), np.empty(len(W) + 1, np.float32)
    for i in range(len(a)):
        n = 0
        for k in range(len(W)):  # what is zero is written over
            terms[n], x[n] = k, a[i, k]
            n += a[i, k] != 0
        _add_terms(x[:n], terms[:n], W, out[i], least)
