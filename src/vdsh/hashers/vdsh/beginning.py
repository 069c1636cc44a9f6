"""Where training begins: at the linear map from words to what a code has to tell.

By chance a network needs dozens of epochs to find out which words go together. Where documents lie
among one another (see `related`), or which labels they have, says it at once: their main
coordinates are turned so that signs lose little (iterative quantisation, Y. Gong and S. Lazebnik,
CVPR 2011), words are regressed on them, and training goes on from there with what a line cannot do.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, hstack

from vdsh.hashers.baselines.itq import improve, random_rotation
from vdsh.hashers.vdsh.network import Network
from vdsh.model.health import sample

Floats = NDArray[np.float32]

_TURNS, _MOST_TO_TURN = 30, 10_000  # of iterative quantisation, and rows it looks at
_MOST_TO_REGRESS, _STEPS, _RIDGE = 50_000, 40, 1.0  # documents, steps and penalty of the regression
_SMALL, _SMALLER = 0.3, 0.1  # weights by chance, beside those of the linear map


@torch.no_grad()
def begin(
    network: Network, inputs: csr_array, told: Floats, seed: int, seen: Floats | None = None
) -> None:
    """Have a network begin as the linear map from inputs to what the code has to tell.

    Pairs of nodes are relu(z) and relu(-z), whose difference is z; nodes that are left begin by
    chance, and so does all of a network with too few nodes.

    Parameters
    ----------
    network : Network
        On a CPU.
    inputs : csr_array of shape (n_docs, n_terms)
        What the encoder sees.
    told : float32 ndarray of shape (n_docs, d)
        Near where codes are to be similar.
    seed : int
        Draws the rotation that turning begins with.
    seen : float32 ndarray of shape (n_docs, N), optional
        Vectors that the encoder sees beside words.
    """
    n_bits = network.W3.shape[1]
    pairs = slice(None, 2 * n_bits)
    if len(network.b1) < 2 * n_bits or not told.shape[1]:
        return
    rows = sample(inputs.shape[0], _MOST_TO_REGRESS)
    some = inputs[rows]
    if seen is not None:
        some = csr_array(hstack([some, csr_array(seen[rows])], format="csr"))
    W = regress(some, turn(told[rows], n_bits, seed))
    z = some @ W
    middle = z.mean(axis=0)
    size = np.abs(z - middle).mean(axis=0)
    size[size == 0] = 1  # of words that tell nothing
    W, middle = W / size, middle / size
    both = np.vstack([np.eye(n_bits), -np.eye(n_bits)]).astype(np.float32)  # (2K, K)
    first = torch.as_tensor(W @ both.T)
    network.W1[:, pairs] = first[: len(network.W1)]
    if seen is not None:
        network.W_vectors[:, pairs] = first[len(network.W1) :]
    network.b1[pairs] = torch.as_tensor(-middle @ both.T)
    network.W2[:, pairs].mul_(_SMALLER)
    network.W2[pairs, pairs] = torch.eye(2 * n_bits)
    network.W3.mul_(_SMALL)
    network.W3[pairs] = torch.as_tensor(both)


def turn(rows: Floats, n_bits: int, seed: int) -> Floats:
    """Give the main coordinates of rows, turned so that signs lose little: (n_docs, n_bits)."""
    centred = rows - rows.mean(axis=0)
    _, axes = main_axes(centred, n_bits)
    coordinates = centred @ axes
    rotation = random_rotation(axes.shape[1], n_bits, np.random.RandomState(seed))
    some = coordinates[sample(len(rows), _MOST_TO_TURN)]
    for _ in range(_TURNS):
        rotation = improve(some, rotation)
    turned: Floats = (coordinates @ rotation).astype(np.float32)
    return turned


def main_axes(centred: Floats, n: int) -> tuple[Floats, Floats]:
    """Find the n directions in which rows vary most, and the sums of squares along them."""
    squares, axes = eigh(centred.T @ centred)
    return squares[::-1][:n], np.ascontiguousarray(axes[:, ::-1][:, :n])


def regress(inputs: csr_array, targets: Floats) -> Floats:
    """Find W with inputs @ W near the targets, by ridge regression: (n_terms, n_targets).

    Conjugate gradients, all columns at once; every column has its own steps.
    """
    across = csr_array(inputs.T)
    W = np.zeros((inputs.shape[1], targets.shape[1]), np.float32)
    left = across @ targets
    way = left.copy()
    squares = _squares(left)
    for _ in range(_STEPS):
        moved = across @ (inputs @ way) + _RIDGE * way
        step = squares / np.maximum((way * moved).sum(axis=0), 1e-20)
        W += step * way
        left -= step * moved
        before, squares = squares, _squares(left)
        way = left + squares / np.maximum(before, 1e-20) * way
    return W


def _squares(rows: Floats) -> Floats:
    total: Floats = np.square(rows).sum(axis=0)
    return total
