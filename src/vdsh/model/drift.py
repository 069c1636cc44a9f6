"""Drift: whether documents newer than a model still look like those that it learned from."""

from collections.abc import Iterable, Sequence
from math import erfc, exp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, to_words, unpack
from vdsh.documents.document import draw, in_batches
from vdsh.model.health import sample
from vdsh.model.model import Model
from vdsh.model.profile import Looks, Profile, hash_texts, take

MOST = 2_000  # documents that are looked at: more would tell no more
LANDMARKS = 1_000  # training documents that the nearest is looked for among
LEAST = 50  # documents on either side: of fewer, nothing is said
CHANCE = 0.001  # of an alarm where nothing has moved, for all measures together
EFFECT = 0.1  # how large a difference must be: with documents enough, the smallest is beyond chance
NAMES = {
    "unknown": "share of unknown words",
    "certainty": "certainty of bits",
    "balance": "balance of bits",
    "nearest": "distance to the nearest document",
}
ADVICE = (
    "Learn again with recent documents: vdsh learn STORE. A model kept apart: vdsh fit DOCS --out "
    "NEW, then vdsh reindex STORE --model NEW."
)


class Measure(NamedTuple):
    """One measure of two lots of documents."""

    learned: float  # means; for "balance" the shares of ones of the bit that moved most
    recent: float
    # The largest difference of the two cumulative distributions towards more unknown words, less
    # certainty, a farther nearest; or of the shares of ones, either way. 0 is none, 1 the most.
    effect: float
    # How likely so much is where nothing has moved (one-sided Kolmogorov-Smirnov test; for bits a
    # z-test, times their number).
    p_value: float
    moved: bool = False  # whether the effect is large and beyond chance


class Drift(NamedTuple):
    """Whether documents have moved away from a model."""

    drifted: bool | None  # None where there are too few documents to say
    verdict: str  # the same in a sentence
    advice: str  # what to do; "" where nothing is to be done
    documents: int  # how many new ones were looked at
    reference: int  # how many held-out ones they are compared with
    measures: dict[str, Measure]  # by name, see `NAMES`; none where nothing can be said

    def as_fields(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        measures = {name: measure._asdict() for name, measure in self.measures.items()}
        return self._asdict() | {"measures": measures}


def make_profile(model: Model, texts: Sequence[str], held_out: Any) -> Profile | None:
    """Keep of held-out texts, which may have labels, what drift is measured by; None of none."""
    held_out = held_out[0] if isinstance(held_out, tuple) else held_out
    if held_out is None or not len(held_out) or not model.texts_suffice:
        return None
    held_out = list(held_out)
    landmarks = model.encode(take(texts, sample(len(texts), LANDMARKS)))
    looks = look_at(model, take(held_out, sample(len(held_out), MOST)), landmarks)
    return Profile(looks, landmarks, hash_texts([])).with_seen([*texts, *held_out])


def look_at(model: Model, texts: Sequence[str], landmarks: Codes) -> Looks:
    """Look at documents, of which there must be one."""
    codes, chances = model.codes_and_chances(model.counts(texts))
    certainty = np.maximum(chances, 1 - chances).mean(axis=1)
    unknown, near = model.unknown_shares(texts), _nearest(codes, landmarks)
    return Looks(codes, unknown, certainty.astype(np.float32), near)


def measure_drift(model: Model, texts: Iterable[str]) -> Drift:
    """Compare texts that a model has not seen, of many a random sample, with held-out ones.

    Those that it learned from are left out: to them a model is always kinder.
    """
    profile = model.profile
    if profile is None:
        return _unsaid(
            "Nothing to compare with: the model kept no held-out documents. vdsh fit holds a tenth "
            f"of its documents out, and drift takes {LEAST} of those."
        )
    batches = in_batches(texts)
    new = draw((text for batch in batches for text in profile.unseen(batch)), MOST)
    if not new:
        return _unsaid(
            "Nothing to compare: all of these documents were there when the model learned. Give "
            "newer ones: vdsh drift STORE DOCS, or store.drift(documents)."
        )
    return compare(profile.held_out, look_at(model, new, profile.landmarks))


def _unsaid(verdict: str, documents: int = 0, reference: int = 0) -> Drift:
    return Drift(None, verdict, "", documents, reference, {})


def compare(learned: Looks, recent: Looks) -> Drift:
    """Compare documents with others that were held out; both as one model sees them."""
    n_learned, n_recent = len(learned.codes), len(recent.codes)
    for number, kind in ((n_recent, "new"), (n_learned, "held-out")):
        if number < LEAST:
            verdict = f"Too few to say: {number:,} {kind} documents, of {LEAST} that it takes."
            return _unsaid(verdict, n_recent, n_learned)
    found = {
        "unknown": _larger(learned.unknown, recent.unknown),
        "certainty": _larger(learned.certainty, recent.certainty, sign=-1),
        "balance": _balance(learned.codes, recent.codes),
        "nearest": _larger(learned.nearest, recent.nearest),
    }
    for name, measure in found.items():
        beyond_chance = measure.p_value * len(found) < CHANCE  # Bonferroni's correction
        found[name] = measure._replace(moved=beyond_chance and measure.effect >= EFFECT)
    moved = ", ".join(NAMES[name] for name, measure in found.items() if measure.moved)
    like = f"the {n_learned:,} documents that were held out when the model learned"
    verdict = f"No drift: {n_recent:,} new documents look like {like}."
    if moved:
        verdict = f"Drift in {moved}: {n_recent:,} new documents differ from {like}."
    advice = ADVICE if moved else ""
    return Drift(bool(moved), verdict, advice, n_recent, n_learned, found)


def _larger(learned: NDArray[Any], recent: NDArray[Any], sign: int = 1) -> Measure:
    """Test whether recent values are larger, with `sign` -1 smaller; never the other way round.

    N. Smirnov's one-sided test of two samples, which is on the safe side where values are equal.
    """
    n, m = len(learned), len(recent)
    values = sign * np.concatenate([learned, recent])
    old, new = np.sort(values[:n]), np.sort(values[n:])
    apart = np.searchsorted(old, values, "right") / n - np.searchsorted(new, values, "right") / m
    effect = max(0.0, float(apart.max()))
    p_value = exp(-2 * effect**2 * n * m / (n + m))
    return Measure(float(learned.mean()), float(recent.mean()), effect, p_value)


def _balance(learned: Codes, recent: Codes) -> Measure:
    """Take the bit whose share of ones has moved most."""
    n, m = len(learned), len(recent)
    shares = np.stack([unpack(codes).mean(axis=0, dtype=np.float64) for codes in (learned, recent)])
    bit = int(np.abs(shares[0] - shares[1]).argmax())
    p, q = shares[:, bit].tolist()
    both = (n * p + m * q) / (n + m)
    error = sqrt(both * (1 - both) * (1 / n + 1 / m))
    chance = erfc(abs(p - q) / error / sqrt(2)) if p != q else 1.0
    return Measure(p, q, abs(p - q), min(1.0, chance * shares.shape[1]))


def _nearest(codes: Codes, others: Codes) -> NDArray[np.float32]:
    """Find the distance from each code to the nearest of the others."""
    words = to_words(others)
    apart = (np.bitwise_count(words ^ word).sum(axis=1).min() for word in to_words(codes))
    return np.fromiter(apart, np.float32)
