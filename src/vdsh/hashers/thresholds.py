"""Thresholds that fit the classes: chosen bit by bit for precision on validation documents.

The median gives every bit half of the documents, which cuts through a class that has more than
half of them and joins small ones. Here each threshold moves where validation queries find more
documents with a label in common, the other bits staying as they are.
"""

import numpy as np

from vdsh.codes import FIXED, Scores, thresholds
from vdsh.metrics.by_threshold import Places, ValidationSearch
from vdsh.model.health import is_constant

_QUANTILES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85)
_LEAST_GAIN = 1e-4  # ends the climb where all queries gain the same next to nothing
_LEAST_QUERIES, _MOST_SWEEPS = 20, 5


def calibrate(
    scores: Scores, method: str, search: ValidationSearch | None, *, plain: str = "median"
) -> tuple[Scores, dict[str, float]]:
    """Learn thresholds, and measure precision at 100 `before` and `after`.

    Without a `search` nothing is measured; without it or with fewer than 20 queries, whose
    precision is mostly chance, "best" is the `plain` way: the one that suits the model.
    """
    if method == "best" and search is not None and len(search.queries.scores) >= _LEAST_QUERIES:
        cut = best_thresholds(scores, search)
    elif method == "best":
        cut = awake(scores, thresholds(scores, plain))
    else:
        cut = thresholds(scores, method)
    if search is None:
        return cut, {}
    before = search.precision(thresholds(scores, plain))
    return cut, {"before": before, "after": search.precision(cut)}


def best_thresholds(scores: Scores, search: ValidationSearch, *, errors: float = 1.0) -> Scores:
    """Climb to better thresholds, one bit at a time, until a sweep over all bits moves none.

    The start is the better of median and sign. A move must gain more than so many standard
    `errors` of its gain over the queries: the best of ten candidates beats the old threshold by
    chance alone, and over all bits such gains add up to thresholds that fit the validation
    documents and no others. On queries that had not chosen the thresholds, 0.5 and 1 did best.
    """
    choices = candidates(scores)
    cut: Scores = max(choices[: len(FIXED)], key=search.precision).copy()
    places = search.places(cut)
    for _ in range(_MOST_SWEEPS):
        moved = [_improve(search, places, bit, cut, choices, errors) for bit in range(len(cut))]
        if not any(moved):
            break
    return cut


def awake(scores: Scores, cut: Scores) -> Scores:
    """Give the median to each bit that would be the same for nearly all documents.

    >>> scores = np.array([[-2.0, 5.0], [-1.0, 6.0], [1.0, 7.0]], np.float32)
    >>> awake(scores, np.zeros(2, np.float32)).tolist()
    [0.0, 6.0]
    """
    asleep = is_constant((scores > cut).mean(axis=0, dtype=np.float64))
    return np.where(asleep, thresholds(scores, "median"), cut)


def candidates(scores: Scores) -> Scores:
    """List the thresholds to try, of shape (n_candidates, n_bits): median, sign, quantiles.

    No bit sleeps: where its sign would, the median stands in for it.
    """
    fixed = [awake(scores, thresholds(scores, name)) for name in FIXED]
    return np.vstack([*fixed, np.quantile(scores, _QUANTILES, axis=0).astype(np.float32)])


def _improve(
    search: ValidationSearch, places: Places, bit: int, cut: Scores, choices: Scores, errors: float
) -> bool:
    """Move one threshold where that is a gain beyond chance; say whether it moved."""
    levels, old = np.unique(choices[:, bit]), cut[bit]
    found = search.candidate_precision(places, bit, cut, levels)
    gains = found - found[:, [np.searchsorted(levels, old)]]
    best = int(gains.mean(axis=0).argmax())
    gain, error = gains[:, best].mean(), gains[:, best].std() / np.sqrt(len(gains))
    if gain <= max(_LEAST_GAIN, errors * error):
        return False
    cut[bit] = levels[best]
    search.move(places, bit, old, cut[bit])
    return True
