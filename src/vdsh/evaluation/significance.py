"""Whether one method is better than another on the same queries, or was only lucky."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vdsh.errors import InputError

_CONFIDENCE, _N_RESAMPLES = 0.95, 2000


class Comparison(NamedTuple):
    """Two methods on the same queries.

    Attributes
    ----------
    difference : float
        Mean of the first minus mean of the second.
    p_value : float
        Of the two-sided paired t-test: how likely a difference as large is if there is none.
    low, high : float
        Bootstrap interval of the difference.
    """

    difference: float
    p_value: float
    low: float
    high: float


def compare(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compare per-query values of two methods: paired t-test and 95 % bootstrap interval.

    The interval is that of percentiles (B. Efron, "Bootstrap Methods: Another Look at the
    Jackknife", Annals of Statistics 1979).

    Parameters
    ----------
    first, second : array-like of shape (n_queries,)
        A measure of the same queries in the same order.

    Examples
    --------
    >>> compare([0.9, 0.8, 0.7, 0.9], [0.5, 0.5, 0.4, 0.4]).p_value < 0.01
    True
    """
    gains = _paired(first, second)
    rng = np.random.RandomState(0)
    means = [gains[rng.randint(0, len(gains), len(gains))].mean() for _ in range(_N_RESAMPLES)]
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return Comparison(float(gains.mean()), p_value(first, second), float(low), float(high))


def p_value(first: ArrayLike, second: ArrayLike) -> float:
    """Return the p-value of the two-sided paired t-test.

    Where all differences are the same the test has no spread to work with: the p-value is then
    1 for no difference and 0 for any other.
    """
    gains = _paired(first, second)
    if np.ptp(gains) == 0:
        return 1.0 if gains[0] == 0 else 0.0
    from scipy import stats  # a second, which nobody waits for who only learns

    return float(stats.ttest_1samp(gains, 0.0).pvalue)


def _paired(first: ArrayLike, second: ArrayLike) -> "np.typing.NDArray[np.float64]":
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(
            "A paired comparison needs two equally long lists of at least two values. "
            f"Got shapes {a.shape} and {b.shape}."
        )
    return a - b
