"""Kernels that recover counts from the weights of RCV1."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Floats = NDArray[np.float64]


@kernel()
def _level(residual: float, levels: Floats) -> int:
    """Find the nearest level's number, which is tf - 1."""
    if residual < levels[1] / 2:
        return 0
    tf = np.rint(np.exp(np.expm1(min(residual, levels[-1]))))
    return int(tf) - 1


@kernel()
def nearest_levels(residuals: Floats, levels: Floats) -> NDArray[np.int32]:
    """Find the level nearest to each residual."""
    found = np.empty(len(residuals), np.int32)
    for i in range(len(residuals)):
        found[i] = _level(residuals[i], levels)
    return found


@kernel()
def quantiles(bounds: NDArray[np.integer], values: Floats, q: float) -> Floats:
    """Find a quantile of each group; 0 for an empty one."""
    found = np.zeros(len(bounds) - 1)
    for group in range(len(found)):
        part = values[bounds[group] : bounds[group + 1]]
        if len(part):
            found[group] = np.partition(part, int(len(part) * q))[int(len(part) * q)]
    return found


@kernel()
def mean_errors(
    bounds: NDArray[np.integer], residuals: Floats, levels: Floats, tolerance: float
) -> Floats:
    """Average how far the residuals that are near a level are off it."""
    found = np.zeros(len(bounds) - 1)
    for group in range(len(found)):
        n, total = 0, 0.0
        for i in range(bounds[group], bounds[group + 1]):
            error = residuals[i] - levels[_level(residuals[i], levels)]
            if abs(error) < tolerance:
                n += 1
                total += error
        if n:
            found[group] = total / n
    return found


@kernel()
def _fit(values: Floats, move: float, levels: Floats, tolerance: float, highest: int) -> float:
    """Count the values on a level; lower levels, being likelier, count a little more."""
    total = 0.0
    for value in values:
        level = _level(value - move, levels)
        if level < highest and abs(value - move - levels[level]) < tolerance:
            total += 1 - 0.1 * levels[level]
    return total


@kernel()
def best_moves(
    bounds: NDArray[np.integer],
    residuals: Floats,
    limits: Floats,
    levels: Floats,
    tolerance: float,
    highest: int,
) -> Floats:
    """Find for each group the change of its offset that puts most residuals on a level.

    Tried are those that put one of seven of its quantiles on one of the three lowest levels; on
    any where the offset is over its limit (a term that its few documents repeat many times).
    """
    found = np.zeros(len(bounds) - 1)
    for group in range(len(found)):
        values = np.sort(residuals[bounds[group] : bounds[group + 1]])
        if not len(values):
            continue
        best, tried = -1.0, highest
        if limits[group] >= 0:
            tried = 3
            best = _fit(values, 0.0, levels, tolerance, highest)
            if best >= 0.9 * len(values) and values[0] > -tolerance:
                continue  # nothing wrong that a move could mend
        for tenth in range(7):
            for level in range(tried):
                move = values[len(values) * tenth // 10] - levels[level]
                if move <= limits[group]:
                    fit = _fit(values, move, levels, tolerance, highest)
                    if fit > best + 1e-9:
                        best, found[group] = fit, move
    return found
