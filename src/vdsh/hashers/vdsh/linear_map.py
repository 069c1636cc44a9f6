"""The linear map from words to targets: main coordinates, turned for signs, and a regression.

The targets, which are the places of documents among one another (see `related`) or their labels,
say at once what a network would need dozens of epochs to find out: which words go together. Their
main coordinates are turned so that signs lose little (iterative quantisation, Y. Gong and
S. Lazebnik, CVPR 2011), and words are regressed on them.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from vdsh.hashers.baselines.itq import improve, random_rotation
from vdsh.hashers.vdsh.lsa import multiplier
from vdsh.hashers.vdsh.neighbours import Floats
from vdsh.model.health import sample

MOST_TO_REGRESS = 50_000  # documents
_TURNS, _MOST_TO_TURN = 30, 10_000  # of iterative quantisation, and rows it looks at
_STEPS = 15  # of the regression
_PENALTY = 3e-4  # of the regression, for each term
_SLOPE = np.float32(2)  # of soft signs where a target is 0, over the mean size of targets
_NOTHING = np.float32(1e-20)


class LinearMap(NamedTuple):
    """Scores of documents from their words: inputs @ W + b, of mean 0 and mean size 1."""

    W: Floats  # (n_terms, d)
    b: Floats  # (d,)
    size: Floats  # (d,): by which scores were divided
    scores: Floats  # (n_docs, d): of the documents it was learned from


def linear_map(inputs: csr_array, aims: Floats, penalty: float = _PENALTY) -> LinearMap:
    """Learn the map that comes nearest to the aims, one row a document."""
    W, z = regress(inputs, aims, penalty)
    middle = z.mean(axis=0)
    size = np.abs(z - middle).mean(axis=0)
    size[size == 0] = 1  # of words that say nothing
    return LinearMap(W / size, -middle / size, size, (z - middle) / size)


def turn(rows: Floats, n_bits: int, seed: int) -> Floats:
    """Give the main coordinates of rows, turned so that signs lose little: (n_docs, n_bits)."""
    coordinates = main_coordinates(rows, n_bits)
    rotation = random_rotation(coordinates.shape[1], n_bits, np.random.RandomState(seed))
    some = coordinates[sample(len(rows), _MOST_TO_TURN)]
    for _ in range(_TURNS):
        rotation = improve(some, rotation)
    return (coordinates @ rotation).astype(np.float32)


def main_coordinates(rows: Floats, n: int) -> Floats:
    """Give the n coordinates that rows vary most in, the largest first."""
    centred = rows - rows.mean(axis=0)
    _, axes = eigh(centred.T @ centred)  # the rows vary most in the last directions
    main = np.ascontiguousarray(axes[:, ::-1][:, :n])
    coordinates: Floats = (centred @ main).astype(np.float32)
    return coordinates


def soft_signs(targets: Floats) -> Floats:
    """Give the signs of targets, column by column, but numbers near 0 where targets are near 0.

    A code keeps signs, so how far a document lies from a threshold need not be foretold. Whether
    it lies near one should be: plain signs say that documents on either side have nothing in
    common, which costs precision in short texts; plain targets cost it in long ones.
    """
    size = np.maximum(np.abs(targets).mean(axis=0), _NOTHING)
    softened: Floats = np.tanh(_SLOPE * targets / size).astype(np.float32)
    return softened


def regress(inputs: csr_array, targets: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Find W with inputs @ W near the targets, by ridge regression; return it, and inputs @ W.

    Conjugate gradients, all columns at once; every column has its own steps. The penalty grows
    with the number of terms.
    """
    times, across = multiplier(inputs), multiplier(csr_array(inputs.T))
    ridge = np.float32(penalty * inputs.shape[1])
    left = across(targets)
    W, way = np.zeros_like(left), left.copy()
    squares = np.square(left).sum(axis=0)
    for _ in range(_STEPS):
        moved = across(times(way)) + ridge * way
        step = squares / np.maximum((way * moved).sum(axis=0), _NOTHING)
        W += step * way
        left -= step * moved
        before, squares = squares, np.square(left).sum(axis=0)
        way = left + squares / np.maximum(before, _NOTHING) * way
    return W, times(W)
