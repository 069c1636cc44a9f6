"""Has the world moved away from a model? Recent documents beside some it was not trained on."""

from math import erfc, exp, sqrt
from typing import Any, NamedTuple

from vdsh.model.profile import Histogram, Profile

LEAST = 50  # documents on either side: of fewer, nothing is said
CHANCE = 0.01  # of an alarm where nothing has moved, for all measures together
# How large a difference must be: with documents enough, the smallest is beyond chance.
EFFECTS = {"unknown": 0.1, "sureness": 0.1, "balance": 0.1, "entropy": 0.05, "nearest": 0.1}
NAMES = {
    "unknown": "share of unknown words",
    "sureness": "sureness of bits",
    "balance": "balance of bits",
    "entropy": "entropy of codes",
    "nearest": "distance to the nearest document",
}


class Measure(NamedTuple):
    """One measure of two lots of documents."""

    # Means; for "balance" the shares of ones of the bit that moved most, for "entropy" bits.
    learned: float
    recent: float
    # How far they are apart: the largest difference of the two cumulative distributions, of the
    # shares of ones, or of the entropy of a bit. 0 is none, 1 the most.
    effect: float
    # How likely so much is where nothing has moved (Kolmogorov-Smirnov on the histograms; for
    # bits and entropy a z-test, for bits times their number).
    p_value: float
    moved: bool = False  # whether the effect is large and beyond chance


class Drift(NamedTuple):
    """Whether documents have moved away from a model."""

    drifted: bool | None  # None where there are too few documents to say
    verdict: str  # the same in a sentence
    advice: str  # what to do; "" where nothing is to be done
    documents: int  # how many recent ones were looked at
    reference: int  # how many they are held against
    against: str  # what those are
    # By name: "unknown", "sureness", "balance", "entropy", "nearest"; those that there are.
    measures: dict[str, Measure]

    def as_fields(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        measures = {name: measure._asdict() for name, measure in self.measures.items()}
        return self._asdict() | {"measures": measures}


HELD_OUT = "documents that the model was not trained on, from when it learned"
ADVICE = (
    "Learn on with recent documents (vdsh fit --from MODEL DOCS --out NEW), then put the new model "
    "under the store (vdsh reindex STORE --model NEW)."
)


def too_few(documents: int, reference: int, against: str = HELD_OUT) -> Drift:
    """Say that nothing can be said."""
    if documents < LEAST:
        verdict = f"Too few to say: {documents:,} recent documents, of {LEAST} that it takes."
    else:
        verdict = f"Too few to say: {reference:,} {against}, of {LEAST} that it takes."
    return Drift(None, verdict, "", documents, reference, against, {})


def compare(learned: Profile, recent: Profile, against: str = HELD_OUT) -> Drift:
    """Hold recent documents against others; both are profiles by one model."""
    n_learned, n_recent = learned.documents, recent.documents
    if min(n_learned, n_recent) < LEAST:
        return too_few(n_recent, n_learned, against)
    found = {name: measure for name, measure in _measures(learned, recent) if measure}
    for name, measure in found.items():
        beyond_chance = measure.p_value * len(found) < CHANCE  # Bonferroni's correction
        found[name] = measure._replace(moved=beyond_chance and measure.effect >= EFFECTS[name])
    moved = [NAMES[name] for name, measure in found.items() if measure.moved]
    verdict = f"No drift: recent documents look like the {n_learned:,} {against}."
    if moved:
        verdict = (
            f"Drift: recent documents differ from the {n_learned:,} {against}, in "
            f"{', '.join(moved)}."
        )
    advice = ADVICE if moved else ""
    return Drift(bool(moved), verdict, advice, n_recent, n_learned, against, found)


def _measures(learned: Profile, recent: Profile) -> list[tuple[str, Measure | None]]:
    near = learned.nearest if learned.among == recent.among else None  # comparable only then
    return [
        ("unknown", _distributions(learned.unknown, recent.unknown)),
        ("sureness", _distributions(learned.sureness, recent.sureness)),
        ("balance", _balance(learned, recent)),
        ("entropy", _entropies(learned, recent)),
        ("nearest", _distributions(near, recent.nearest)),
    ]


def _distributions(learned: Histogram | None, recent: Histogram | None) -> Measure | None:
    """Test two histograms by Kolmogorov and Smirnov, which is on the safe side for bins."""
    if learned is None or recent is None:
        return None
    sums, totals, effect = [0, 0], (sum(learned.counts), sum(recent.counts)), 0.0
    for pair in zip(learned.counts, recent.counts, strict=True):
        sums = [total + n for total, n in zip(sums, pair, strict=True)]
        effect = max(effect, abs(sums[0] / totals[0] - sums[1] / totals[1]))
    root = sqrt(totals[0] * totals[1] / sum(totals))
    p_value = kolmogorov((root + 0.12 + 0.11 / root) * effect)
    return Measure(learned.mean, recent.mean, effect, p_value)


def _balance(learned: Profile, recent: Profile) -> Measure:
    """Take the bit whose share of ones has moved most, beyond chance."""
    n, m = learned.documents, recent.documents
    best = Measure(0.5, 0.5, 0.0, 1.0)
    for one, other in zip(learned.ones, recent.ones, strict=True):
        p, q, both = one / n, other / m, (one + other) / (n + m)
        if effect := abs(p - q):
            error = sqrt(both * (1 - both) * (1 / n + 1 / m))
            chance = min(1.0, two_sided(effect / error) * len(learned.ones))
            best = max(best, Measure(p, q, effect, chance), key=lambda each: each.effect)
    return best


def _entropies(learned: Profile, recent: Profile) -> Measure:
    (one, its_error), (other, other_error) = learned.entropy, recent.entropy
    error = max(sqrt(its_error**2 + other_error**2), 1e-9)
    p_value = two_sided(abs(one - other) / error)
    return Measure(one, other, abs(one - other) / len(learned.ones), p_value)


def two_sided(z: float) -> float:
    """Return how likely a normal number is at least so far from its mean.

    >>> round(two_sided(1.96), 3)
    0.05
    """
    return erfc(z / sqrt(2))


def kolmogorov(value: float) -> float:
    """Return how likely the largest difference of two distributions, scaled, is at least so large.

    M. A. Stephens, "Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without
    extensive tables", 1970.

    >>> round(kolmogorov(1.358), 3)
    0.05
    """
    if value < 0.2:
        return 1.0
    terms = [exp(-2 * (k * value) ** 2) for k in range(1, 101)]
    return min(1.0, max(0.0, 2 * (sum(terms[::2]) - sum(terms[1::2]))))
