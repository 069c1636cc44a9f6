"""Dense layers whose results do not depend on the documents around one, to the last bit.

BLAS takes other paths for other shapes, so it gets whole multiples of `PAD` rows for wide layers,
where that is enough, and tiles of just `PAD` rows for narrow ones. For a single document that is
fifteen rows too many. OpenBLAS adds up the products of a row in order, each in one rounding, in one
or two runs; a kernel that does the same, and passes over zeros, takes a tenth of the time. It is
used where it was seen to give the very bits of BLAS here, for a layer of that shape.
"""

import math

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import compiled

Floats = NDArray[np.float32]

PAD = 16
FEW = 4  # documents that the kernel multiplies
_PLAIN = 1e-10  # seconds a product in numpy
_NOTHING = np.zeros(0, np.float32)
_runs: dict[tuple[int, int], int] = {}  # how long a run is, by the shape of a layer; 0 is unknown


def dense_product(a: Floats, W: Floats) -> Floats:
    """Compute `a @ W` for a wide layer.

    Parameters
    ----------
    a : ndarray of shape (n, m)
    W : ndarray of shape (m, n_out)
    """
    return _product_of_few(a, W) if _are_few(a, W) else (_padded(a) @ W)[: len(a)]


def tiled_product(a: Floats, W: Floats) -> Floats:
    """Compute `a @ W` for a narrow layer.

    Parameters
    ----------
    a : ndarray of shape (n, m)
    W : ndarray of shape (m, n_out)
    """
    if _are_few(a, W):
        return _product_of_few(a, W)
    tiles = _padded(a).reshape(-1, PAD, a.shape[1])
    product: Floats = (tiles @ W).reshape(-1, W.shape[1])[: len(a)]
    return product


def relu_layer(a: Floats, W: Floats, b: Floats) -> Floats:
    """Compute `max(0, a @ W + b)` for a wide layer."""
    if _are_few(a, W):
        return _multiply(a, W, _runs[W.shape], b, 0.0)
    out = dense_product(a, W)
    out += b
    np.maximum(out, 0, out=out)
    return out


def linear_layer(a: Floats, W: Floats, b: Floats) -> Floats:
    """Compute `a @ W + b` for a narrow layer."""
    return _multiply(a, W, _runs[W.shape], b) if _are_few(a, W) else tiled_product(a, W) + b


def _padded(a: Floats) -> Floats:
    short = -len(a) % PAD
    return np.pad(a, ((0, short), (0, 0))) if short else a


def _are_few(a: Floats, W: Floats) -> bool:
    if not 0 < len(a) <= FEW or not compiled(_PLAIN * PAD * W.size):
        return False
    if not (a.dtype == W.dtype == np.float32 and W.flags.c_contiguous):
        return False
    if W.shape not in _runs:
        _runs[W.shape] = _run_length(W)
    return _runs[W.shape] > 0


def _run_length(W: Floats) -> int:
    """Try how BLAS adds up the products of a row; 0 where it is none of the ways known here."""
    n_in = int(W.shape[0])
    a = np.random.default_rng(0).normal(size=(PAD, n_in)).astype(np.float32)
    a[:, ::3] = 0
    wanted = (a @ W).tobytes()
    for length in (n_in, -(-n_in // 2 // PAD) * PAD, -(-n_in // 2)):
        if length and _multiply(a, W, length).tobytes() == wanted:
            return length
    return 0


def _product_of_few(a: Floats, W: Floats) -> Floats:
    return _multiply(a, W, _runs[W.shape])


def _multiply(
    a: Floats, W: Floats, length: int, b: Floats = _NOTHING, least: float = -math.inf
) -> Floats:
    from vdsh.model.products_kernels import multiply_rows

    out = np.empty((len(a), W.shape[1]), np.float32)
    multiply_rows(a, W, length, out, np.empty(W.shape[1], np.float32), b, least)
    return out
