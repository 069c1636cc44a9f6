r"""Term counts out of the published RCV1-v2 weights.

LYRL2004 publishes "ltc" weights (Lewis et al., JMLR 5, 2004): for term j in document i

    w_ij = (1 + ln tf_ij) * ln(N / n_j) / norm_i

with N = 23,307 documents (fitted from the weights: 23,306.98; RCV1-v2 has 23,149 training
documents), of which n_j hold the term, and norm_i making the vector's length 1. In logarithms
this is a sum, ln w_ij = level(tf_ij) + b_j + a_i with level(tf) = ln(1 + ln tf), so that
tf can be read off as soon as the offsets a (documents) and b (terms) are known. Most tf are 1,
whose level is 0: low quantiles of rows and columns in turn come close, and a second pass
moves every row and column to the offset that puts most of its weights on a level.
"""

from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import InputError

Floats = NDArray[np.float64]
Bounds = NDArray[np.integer]
_LEVELS = np.log1p(np.log(np.arange(1, 1001, dtype=np.float64)))
# Of the logarithms in a row or column: most of its counts are 1, whose level is 0.
_QUANTILE = 0.4
# Low quantiles of rows and columns in turn, and then moves to the best offsets in turn.
_ITERATIONS = 8
_ROUNDS = 6
# Of a residual; the six published decimals leave about 1e-5.
_TOLERANCE = 5e-4
# Levels above this one lie so close together that anything fits them.
_HIGHEST = 30
# Documents that are read at once.
_BLOCK = 100_000
# Documents; offsets of terms do not get better with more.
_SAMPLE = 60_000


def recover_counts(
    weights: csr_array, *, n_training: int = 23_307, sample: int = _SAMPLE
) -> tuple[csr_array, float]:
    """Find the integer term counts behind cosine-normalised (1 + ln tf) * idf weights.

    Returns them, and the share of the weights that they, weighted anew, give again within 0.1 %.
    `n_training` is the N of the idf, ln(N / n_j): no idf is greater than ln N, which fixes the
    terms whose few documents all hold them more than once. With more documents than `sample` the
    terms' offsets are found on a sample of them.
    """
    if not weights.nnz:
        return weights, 1.0
    if not weights.data.min() > 0:
        raise InputError(f"Weights must be positive. Got {weights.data.min()}.")
    terms = _term_offsets(_sample(weights, sample), np.log(np.log(n_training)))
    levels = np.empty(weights.nnz, np.int32)
    n_reproduced = 0
    for start in range(0, weights.shape[0], _BLOCK):
        block = weights[start : start + _BLOCK]
        first = weights.indptr[start]
        block_levels, n_reproduced_here = _read_levels(block, terms)
        levels[first : first + block.nnz] = block_levels
        n_reproduced += n_reproduced_here
    counts = csr_array((levels + 1, weights.indices, weights.indptr), shape=weights.shape)
    return counts, n_reproduced / weights.nnz


def _read_levels(weights: csr_array, terms: Floats) -> tuple[NDArray[np.int32], int]:
    """Find the level of each weight, and how many weights the levels give again."""
    bounds, logs, rows, columns = _triples(weights)
    logs -= terms[columns]
    documents = _low(bounds, logs)
    documents += _realign(bounds, logs - documents[rows], np.full(len(documents), np.inf))
    levels = _nearest_levels(logs - documents[rows])
    reproduced = np.exp(_LEVELS[levels] + terms[columns])
    reproduced /= np.sqrt(np.bincount(rows, reproduced**2, minlength=weights.shape[0]))[rows]
    return levels, int(np.sum(np.abs(reproduced / weights.data - 1) < 1e-3))


def _triples(weights: csr_array) -> tuple[Bounds, Floats, NDArray[np.intp], NDArray[np.int32]]:
    """Give where rows begin and end, the logarithm of each weight, its row and its column."""
    bounds = weights.indptr
    return bounds, np.log(weights.data), _groups(bounds), weights.indices


def _sample(weights: csr_array, size: int) -> csr_array:
    """Take documents at random, and a first one for every term so that none is missed."""
    if weights.shape[0] <= size:
        return weights
    chosen = np.random.RandomState(0).permutation(weights.shape[0])[:size]
    _, firsts = np.unique(weights.indices, return_index=True)
    owners = np.searchsorted(weights.indptr, firsts, side="right") - 1
    return weights[np.union1d(chosen, owners)]


def _term_offsets(weights: csr_array, highest: float) -> Floats:
    """Estimate b; `highest` is ln ln N, the offset of a term that one training document holds."""
    row_bounds, logs, rows, columns = _triples(weights)
    order = np.argsort(columns, kind="stable")
    sizes = np.bincount(columns, minlength=weights.shape[1])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    no_limits = np.full(weights.shape[0], np.inf)
    terms = np.log(np.log((weights.shape[0] + 1) / np.maximum(sizes, 0.5)))
    for _ in range(_ITERATIONS):
        documents = _low(row_bounds, logs - terms[columns])
        terms = _low(bounds, (logs - documents[rows])[order])
    shift = _gauge(terms[sizes > 0], highest)
    terms = terms + shift
    documents = documents - shift
    for _ in range(_ROUNDS):
        moved = _realign(row_bounds, logs - documents[rows] - terms[columns], no_limits)
        documents += moved
        limits = highest - terms + _TOLERANCE
        moves = _realign(bounds, (logs - documents[rows] - terms[columns])[order], limits)
        terms += moves
        if not moved.any() and not moves.any():
            break
    return terms


def _gauge(terms: Floats, highest: float) -> float:
    """Find the constant by which the terms' offsets are off (the documents' have its opposite).

    The offsets of rare terms pile up at ln ln(N / n) for n = 1, 2, 3 and so on. The highest pile
    is moved to the nearest of the first such places.
    """
    places = np.log(np.exp(highest) - np.log(np.arange(1, 6)))
    sizes, edges = np.histogram(terms, np.arange(terms.min(), terms.max() + 2e-3, 1e-3))
    peak = edges[sizes.argmax()] + 5e-4
    peak = np.median(terms[np.abs(terms - peak) < 1e-3])
    return float(places[np.abs(places - peak).argmin()] - peak)


def _nearest_levels(residuals: Floats) -> NDArray[np.int32]:
    tf = np.rint(np.exp(np.expm1(np.minimum(residuals, _LEVELS[-1]))))
    return np.where(residuals < _LEVELS[1] / 2, 0, tf - 1).astype(np.int32)


def _low(bounds: Bounds, values: Floats) -> Floats:
    """Find a low quantile of each group; 0 for an empty one."""
    quantiles = np.zeros(len(bounds) - 1)
    for group, (start, stop) in enumerate(pairwise(bounds.tolist())):
        if start < stop:
            place = int((stop - start) * _QUANTILE)
            quantiles[group] = np.partition(values[start:stop], place)[place]
    return quantiles


def _realign(bounds: Bounds, residuals: Floats, limits: Floats) -> Floats:
    """Find for each group the change of its offset that puts most residuals on a level.

    Tried are those that put one of seven of its quantiles on one of the three lowest levels; on
    any where the offset is over its limit (a term that its few documents repeat many times).
    """
    sizes = np.diff(bounds)
    groups = _groups(bounds)
    values = residuals[np.lexsort((residuals, groups))]
    moves = np.zeros(len(sizes))
    over = limits < 0
    best = np.where(over, -1.0, _fit(groups, values, moves))
    low = np.zeros(len(sizes))
    low[sizes > 0] = values[bounds[:-1][sizes > 0]]
    # No move could improve these.
    is_settled = ~over & (best >= 0.9 * sizes) & (low > -_TOLERANCE)
    for chosen, n_levels in ((~is_settled & ~over, 3), (over, _HIGHEST)):
        rows = np.flatnonzero(chosen & (sizes > 0))
        chosen_values = values[np.isin(groups, rows)]
        firsts = bounds[rows]
        owners = np.repeat(np.arange(len(rows)), sizes[rows])
        for tenth, level in product(range(7), range(n_levels)):
            move = values[firsts + sizes[rows] * tenth // 10] - _LEVELS[level]
            fit = _fit(owners, chosen_values, move)
            better = (move <= limits[rows]) & (fit > best[rows] + 1e-9)
            best[rows[better]] = fit[better]
            moves[rows[better]] = move[better]
    return moves


def _fit(groups: NDArray[np.intp], values: Floats, moves: Floats) -> Floats:
    """Count the values of each group on a level; lower levels, being likelier, count more."""
    residuals = values - moves[groups]
    levels = _nearest_levels(residuals)
    is_on = (levels < _HIGHEST) & (np.abs(residuals - _LEVELS[levels]) < _TOLERANCE)
    weights = is_on * (1 - 0.1 * _LEVELS[levels])
    return np.bincount(groups, weights, minlength=len(moves)).astype(np.float64)


def _groups(bounds: Bounds) -> NDArray[np.intp]:
    """Give the group of each value."""
    return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
