"""Kernels of a trained network: the sparse layer, and dense ones that add up as BLAS does."""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from vdsh.jit import kernel
from vdsh.jit_kernels import intrinsic

Floats = NDArray[np.float32]
Places = NDArray[np.int32]


@kernel()
def sparse_relu(data: Floats, indices: Places, indptr: Places, W: Floats, out: Floats) -> None:
    """Compute max(0, x @ W + out) for sparse rows x."""
    for i in range(len(out)):
        row = out[i]
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


@kernel()
def add_rows(data: Floats, indices: Places, indptr: Places, W: Floats, out: Floats) -> None:
    """Add x @ W of sparse rows x to `out`."""
    for i in range(len(out)):
        row = out[i]
        for j in range(indptr[i], indptr[i + 1]):
            x, w = data[j], W[indices[j]]
            for h in range(len(row)):
                row[h] += x * w[h]


@intrinsic
def _multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a * b + c in one rounding."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


@kernel()
def multiply_rows(
    a: Floats, W: Floats, length: int, out: Floats, run: Floats, b: Floats, least: float
) -> None:
    """Compute max(least, a @ W + b), or a @ W where there is no b.

    The products of a row are added in runs of some length, each to those before.
    """
    places = np.empty(len(W) + 1, np.int64)
    for i in range(len(a)):
        for h in range(len(run)):
            out[i, h] = 0
        for first in range(0, len(W), length):
            n = 0
            for k in range(first, min(first + length, len(W))):
                places[n] = k
                n += a[i, k] != 0
            for h in range(len(run)):
                run[h] = 0
            j = 0
            while j + 4 <= n:  # four terms at a time: a quarter of the loads and stores
                k0, k1, k2, k3 = places[j], places[j + 1], places[j + 2], places[j + 3]
                w0, w1, w2, w3 = W[k0], W[k1], W[k2], W[k3]
                x0, x1, x2, x3 = a[i, k0], a[i, k1], a[i, k2], a[i, k3]
                for h in range(len(run)):
                    some = _multiply_add(x1, w1[h], _multiply_add(x0, w0[h], run[h]))
                    run[h] = _multiply_add(x3, w3[h], _multiply_add(x2, w2[h], some))
                j += 4
            while j < n:
                x0, w0 = a[i, places[j]], W[places[j]]
                for h in range(len(run)):
                    run[h] = _multiply_add(x0, w0[h], run[h])
                j += 1
            for h in range(len(run)):
                out[i, h] += run[h]
        for h in range(len(b)):
            out[i, h] = max(out[i, h] + b[h], np.float32(least))
