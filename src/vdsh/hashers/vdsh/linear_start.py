"""The linear start: training begins as the linear map from words to targets.

From random weights a network needs dozens of epochs to find out which words go together. The
targets, which are the places of documents among one another (see `related`) or their labels, say it
at once: their main coordinates are turned so that signs lose little (iterative quantisation,
Y. Gong and S. Lazebnik, CVPR 2011), words are regressed on them, and training goes on from there
with what a line cannot do.

A short code has fewer bits than matters: its main coordinates alone would leave most of them out
for good. There each bit begins as a mixture, by chance, of many coordinates.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional as F

from vdsh.hashers.baselines.itq import improve, nearest_rotation, random_rotation, signs
from vdsh.hashers.vdsh.network import Network
from vdsh.model.health import sample

Floats = NDArray[np.float32]

_SHORT, _COORDINATES = 32, 64  # codes of fewer bits begin with mixtures of so many coordinates
_TURNS, _MOST_TO_TURN = 30, 10_000  # of iterative quantisation, and rows it looks at
_MOST_TO_REGRESS, _STEPS = 50_000, 40  # documents and steps of the regression
_RIDGE = 1e-3  # penalty of the regression, for each term
_SMALL, _SMALLER = 0.3, 0.1  # weights by chance, beside those of the linear map
_UNSURE = 0.5  # size of a mixture, beside that of a coordinate


@torch.no_grad()
def start_linear(
    network: Network,
    inputs: csr_array,
    targets: Floats,
    seed: int,
    before: Floats | None = None,
) -> None:
    """Have a network begin as the linear map from inputs to targets.

    Pairs of nodes are relu(z) and relu(-z), whose difference is z; nodes that are left begin by
    chance, and so does all of a network with too few nodes.

    Parameters
    ----------
    network : Network
    inputs : csr_array of shape (n_docs, n_terms)
        What the encoder sees.
    targets : float32 ndarray of shape (n_docs, d)
        Near where codes are to be similar.
    seed : int
        Draws the rotation that turning begins with, or the mixtures.
    before : float32 ndarray of shape (n_docs, K), optional
        What the network makes of the documents now, where it is to learn on: coordinates are then
        turned so that signs stay, as far as the new ones allow.
    """
    n_bits, device = network.W3.shape[1], network.W1.device
    if len(network.b1) < 2 * n_bits or not targets.shape[1]:
        return
    rows = sample(inputs.shape[0], _MOST_TO_REGRESS)
    kept = None if before is None else signs(before[rows])
    m = n_bits  # coordinates
    if n_bits < _SHORT:
        m = max(n_bits, min(_COORDINATES, targets.shape[1], len(network.b1) // 2))
    some = targets[rows]
    aims = turn(some, n_bits, seed, kept) if m == n_bits else _main_coordinates(some, m)
    W, z = regress(inputs[rows], torch.as_tensor(aims, device=device))
    middle = z.mean(0)
    size = (z - middle).abs().mean(0)
    size[size == 0] = 1  # of words that say nothing
    eye = torch.eye(m, device=device)
    both = torch.cat([eye, -eye])  # (2m, m)
    pairs = slice(None, 2 * m)
    network.W1[:, pairs] = (W / size) @ both.T
    network.b1[pairs] = both @ (-middle / size)
    network.W2[:, pairs].mul_(_SMALLER)
    network.W2[pairs, pairs] = torch.eye(2 * m, device=device)
    network.W3.mul_(_SMALL)
    network.W3[pairs] = both @ (eye if m == n_bits else _mixtures(z - middle, n_bits, seed, kept))


def _mixtures(z: Tensor, n_bits: int, seed: int, kept: Floats | None) -> Tensor:
    """Mix coordinates, by chance or so that signs stay; the larger count for more: (m, n_bits)."""
    weight = z.abs().mean(0).clamp(min=1e-12).sqrt()
    coordinates = z / weight
    if kept is None:
        mix = random_rotation(n_bits, z.shape[1], np.random.RandomState(seed)).T
    else:
        mix = nearest_rotation(coordinates.cpu().numpy(), kept)
    mixed = torch.as_tensor(mix.copy(), device=z.device)
    return _UNSURE * weight[:, None] * mixed / (coordinates @ mixed).abs().mean(0).clamp(min=1e-6)


def turn(rows: Floats, n_bits: int, seed: int, kept: Floats | None = None) -> Floats:
    """Give the main coordinates of rows, turned so that signs lose little: (n_docs, n_bits).

    With signs given, turned so that they are nearest to these.
    """
    coordinates = _main_coordinates(rows, n_bits)
    if kept is not None:
        rotation = nearest_rotation(coordinates, kept)
    else:
        rotation = random_rotation(coordinates.shape[1], n_bits, np.random.RandomState(seed))
        some = coordinates[sample(len(rows), _MOST_TO_TURN)]
        for _ in range(_TURNS):
            rotation = improve(some, rotation)
    turned: Floats = (coordinates @ rotation).astype(np.float32)
    return turned


def _main_coordinates(rows: Floats, n: int) -> Floats:
    centred = rows - rows.mean(axis=0)
    _, axes = eigh(centred.T @ centred)  # the rows vary most in the last directions
    main = np.ascontiguousarray(axes[:, ::-1][:, :n])
    coordinates: Floats = (centred @ main).astype(np.float32)
    return coordinates


def regress(inputs: csr_array, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Find W with inputs @ W near the targets, by ridge regression; return it, and inputs @ W.

    Conjugate gradients, all columns at once, on the targets' device; every column has its own
    steps. The penalty grows with the number of terms.
    """
    times, across = (_product(X, targets.device) for X in (inputs, csr_array(inputs.T)))
    ridge = _RIDGE * inputs.shape[1]
    left = across(targets)
    W, way = torch.zeros_like(left), left.clone()
    squares = left.square().sum(0)
    for _ in range(_STEPS):
        moved = across(times(way)) + ridge * way
        step = squares / (way * moved).sum(0).clamp(min=1e-20)
        W += step * way
        left -= step * moved
        before, squares = squares, left.square().sum(0)
        way = left + squares / before.clamp(min=1e-20) * way
    return W, times(W)


def _product(matrix: csr_array, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Give the function that multiplies a sparse matrix with a dense one."""
    values = torch.as_tensor(matrix.data, dtype=torch.float32, device=device)
    columns, offsets = (
        torch.as_tensor(part, dtype=torch.int64, device=device)
        for part in (matrix.indices, matrix.indptr[:-1])
    )

    def product(dense: Tensor) -> Tensor:
        return F.embedding_bag(columns, dense, offsets, mode="sum", per_sample_weights=values)

    return product
