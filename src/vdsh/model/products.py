"""Dense layers whose results do not depend on the documents around one, to the last bit.

BLAS takes other paths for other shapes, so it always gets tiles of `TILE` rows: every product has
one shape. For a few documents that is many rows too many. OpenBLAS adds up the products of a row in
order, each in one rounding, in one or two runs; a kernel that does the same, and passes over zeros,
takes a tenth of the time. It is used where it was seen to give the very bits of BLAS here, for a
layer of that shape.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled, kernel, vector_code

Floats = NDArray[np.float32]

TILE = 256  # rows that BLAS multiplies at a time
FEW = 16  # documents that the kernel multiplies
_UNROLL = 16  # terms that OpenBLAS takes at a time
_PLAIN = 1e-10  # seconds a product in numpy
_NOTHING = np.zeros(0, np.float32)
_runs: dict[tuple[int, int], int] = {}  # how long a run is, by the shape of a layer; 0 is unknown


def tiled_product(a: Floats, W: Floats) -> Floats:
    """Compute `a @ W`, tile by tile.

    Parameters
    ----------
    a : ndarray of shape (n, m)
    W : ndarray of shape (m, n_out)
    """
    short = -len(a) % TILE
    padded = np.pad(a, ((0, short), (0, 0))) if short else a
    tiles = padded.reshape(-1, TILE, a.shape[1])
    product: Floats = (tiles @ W).reshape(-1, W.shape[1])[: len(a)]
    return product


def relu_layer(a: Floats, W: Floats, b: Floats) -> Floats:
    """Compute `max(0, a @ W + b)`."""
    if _are_few(a, W):
        return _multiply(a, W, _runs[W.shape], b, 0.0)
    out = tiled_product(a, W)
    out += b
    np.maximum(out, 0, out=out)
    return out


def linear_layer(a: Floats, W: Floats, b: Floats) -> Floats:
    """Compute `a @ W + b`."""
    return _multiply(a, W, _runs[W.shape], b) if _are_few(a, W) else tiled_product(a, W) + b


def _are_few(a: Floats, W: Floats) -> bool:
    if not 0 < len(a) <= FEW or not compiled(_PLAIN * TILE * W.size):
        return False
    if not (a.dtype == W.dtype == np.float32 and W.flags.c_contiguous):
        return False
    if W.shape not in _runs:
        _runs[W.shape] = _run_length(W)
    return _runs[W.shape] > 0


def _run_length(W: Floats) -> int:
    """Try how BLAS adds up the products of a row; 0 where it is none of the ways known here."""
    n_in = int(W.shape[0])
    a = np.random.default_rng(0).normal(size=(TILE, n_in)).astype(np.float32)
    a[:, ::3] = 0
    wanted = (a @ W).tobytes()
    for length in (n_in, -(-n_in // 2 // _UNROLL) * _UNROLL, -(-n_in // 2)):
        if length and _multiply(a, W, length).tobytes() == wanted:
            return length
    return 0


def _multiply(
    a: Floats, W: Floats, length: int, b: Floats = _NOTHING, least: float = -math.inf
) -> Floats:
    out = np.empty((len(a), W.shape[1]), np.float32)
    _multiply_rows(a, W, length, out, np.empty(W.shape[1], np.float32), b, least)
    return out


@vector_code
def _multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a * b + c in one rounding."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


@kernel()
def _multiply_rows(
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
