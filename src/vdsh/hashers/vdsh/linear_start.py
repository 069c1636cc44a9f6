"""The linear start: training begins as the linear map from words to targets.

From random weights a network needs dozens of epochs to find out which words go together; here it
begins as `linear_map`, and goes on from there with what a line cannot do.

A short code has fewer bits than matters: its main coordinates alone would leave most of them out
for good. There each bit begins as a mixture, by chance, of many coordinates.
"""

import numpy as np
import torch
from scipy.sparse import csr_array

from vdsh.hashers.baselines.itq import random_rotation
from vdsh.hashers.vdsh.linear_map import (
    MOST_TO_REGRESS,
    LinearMap,
    linear_map,
    main_coordinates,
    turn,
)
from vdsh.hashers.vdsh.neighbours import Floats
from vdsh.hashers.vdsh.network import Network
from vdsh.model.health import sample

SHORT, _COORDINATES = 32, 64  # codes of fewer bits begin with mixtures of so many coordinates
_SMALL, _SMALLER = 0.3, 0.1  # weights by chance, beside those of the linear map
_PENALTY = 1e-3  # of the regression: training goes on better from a smoother map
_UNSURE = 0.5  # size of a mixture, beside that of a coordinate


@torch.no_grad()
def start_linear(network: Network, inputs: csr_array, targets: Floats, seed: int) -> None:
    """Have a network begin as the linear map from inputs to targets, (n_docs, d).

    Pairs of nodes are relu(z) and relu(-z), whose difference is z; nodes that are left begin by
    chance, and so do the bits for which there is no pair.
    """
    n_bits, device = network.W3.shape[1], network.W1.device
    n_pairs = len(network.b1) // 2
    if not n_pairs or not targets.shape[1]:
        return
    most = min(_COORDINATES, targets.shape[1], n_pairs)
    mixed = n_bits < SHORT and n_bits < most
    m = most if mixed else min(n_bits, n_pairs)  # coordinates
    rows = sample(inputs.shape[0], MOST_TO_REGRESS)
    some = targets[rows]
    aims = main_coordinates(some, m) if mixed else turn(some, n_bits, seed)[:, :m]
    found = linear_map(inputs[rows], aims, _PENALTY)
    W, b = (torch.as_tensor(part, device=device) for part in found[:2])
    bits = _mixtures(found, n_bits, seed) if mixed else np.eye(m, dtype=np.float32)
    eye = torch.eye(m, device=device)
    both = torch.cat([eye, -eye])  # (2m, m)
    pairs = slice(None, 2 * m)
    network.W1[:, pairs] = W @ both.T
    network.b1[pairs] = both @ b
    network.W2[:, pairs].mul_(_SMALLER)
    network.W2[pairs, pairs] = torch.eye(2 * m, device=device)
    network.W3.mul_(_SMALL)
    network.W3[pairs, : bits.shape[1]] = both @ torch.as_tensor(bits, device=device)


def _mixtures(found: LinearMap, n_bits: int, seed: int) -> Floats:
    """Mix coordinates by chance; the larger count for more: (m, n_bits)."""
    weight = np.sqrt(found.size)
    mix = random_rotation(n_bits, len(weight), np.random.RandomState(seed)).T
    size = np.maximum(np.abs((found.scores * weight) @ mix).mean(axis=0), 1e-6)
    mixed: Floats = (_UNSURE * weight[:, None] * mix / size).astype(np.float32)
    return mixed
