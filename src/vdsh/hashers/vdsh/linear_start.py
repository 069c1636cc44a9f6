"""The linear start: training begins as the linear map from words to targets.

From random weights a network needs dozens of epochs to find out which words go together; here it
begins as `linear_map`, and goes on from there with what a line cannot do. From 32 bits on that is
what `LinearHashing` learns.

A short code has fewer bits than matters: its main coordinates alone would leave most of them out
for good. There each bit begins as a mixture, by chance, of many coordinates. Where texts are short
too, training finds less, and only codes of 8 bits begin so.
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
    soft_signs,
    turn,
)
from vdsh.hashers.vdsh.lsa import are_short
from vdsh.hashers.vdsh.neighbours import Floats
from vdsh.hashers.vdsh.network import Network
from vdsh.model.health import sample

SHORT, _COORDINATES = 32, 64  # codes of fewer bits begin with mixtures of so many coordinates
SHORT_OF_SHORT = 16  # the same where texts are short
_SMALL, _SMALLER = 0.3, 0.1  # weights by chance, beside those of the linear map
# Of the regression on mixtures and on labels: training goes on better from a smoother map.
_PENALTY = 1e-3
_UNSURE = 0.5  # size of a mixture, beside that of a coordinate


def start_from_places(network: Network, inputs: csr_array, places: Floats, seed: int) -> None:
    """Have a network begin as the linear map from inputs to places, (n_docs, d)."""
    short = SHORT_OF_SHORT if are_short(inputs) else SHORT
    _start_linear(network, inputs, places, seed, short=short, soft=True)


def start_from_labels(network: Network, inputs: csr_array, labels: Floats, seed: int) -> None:
    """Have a network begin as the linear map from inputs to labels, (n_docs, n_labels)."""
    _start_linear(network, inputs, labels, seed, short=SHORT, soft=False)


@torch.no_grad()
def _start_linear(
    network: Network, inputs: csr_array, targets: Floats, seed: int, *, short: int, soft: bool
) -> None:
    """Have a network begin as the linear map from inputs to targets, (n_docs, d).

    Pairs of nodes are relu(z) and relu(-z), whose difference is z; nodes that are left begin by
    chance, and so do the bits for which there is no pair.
    """
    n_bits, device = network.W3.shape[1], network.W1.device
    n_pairs = len(network.b1) // 2
    if not n_pairs or not targets.shape[1]:
        return
    most = min(_COORDINATES, targets.shape[1], n_pairs)
    mixed = n_bits < short and n_bits < most
    m = most if mixed else min(n_bits, n_pairs)  # coordinates
    rows = sample(inputs.shape[0], MOST_TO_REGRESS)
    some = targets[rows]
    if mixed:
        found = linear_map(inputs[rows], main_coordinates(some, m), _PENALTY)
    elif soft:
        found = linear_map(inputs[rows], soft_signs(turn(some, n_bits, seed)[:, :m]))
    else:
        found = linear_map(inputs[rows], turn(some, n_bits, seed)[:, :m], _PENALTY)
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
