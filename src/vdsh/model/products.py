"""Dense layers whose results do not depend on the documents around one, to the last bit.

BLAS takes other paths for other shapes, so it always gets tiles of `TILE` rows: every product has
one shape. For a few documents that is many rows too many. OpenBLAS adds up the products of a row in
order, each in one rounding, in one or two runs; a kernel that does the same, and passes over zeros,
takes a tenth of the time. It is used where it was seen to give the very bits of BLAS here, for a
layer of that shape.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled

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
    from vdsh.model.products_kernels import multiply_rows

    out = np.empty((len(a), W.shape[1]), np.float32)
    multiply_rows(a, W, length, out, np.empty(W.shape[1], np.float32), b, least)
    return out
