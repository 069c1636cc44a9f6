"""What documents look like to a model, in small histograms: what `vdsh.model.drift` compares."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Bits, Codes, to_words, unpack
from vdsh.model.health import entropy, sample
from vdsh.model.held_out import take

if TYPE_CHECKING:
    from vdsh.model.model import Model

MOST = 2_000  # documents that are looked at: more would tell no more
AMONG = 1_000  # documents that the nearest is looked for among: always as many, or it comes nearer
_BINS = 50


class Histogram(NamedTuple):
    """How many documents have which value."""

    counts: list[int]
    mean: float


class Profile(NamedTuple):
    """What some documents look like to a model."""

    documents: int
    ones: list[int]  # for each bit, how many documents have a 1 there
    # Of the codes, in bits, each bit taken by itself; and the standard error of that.
    entropy: list[float]
    # Of the share of a document's words, stop words left out, that the model does not know.
    unknown: Histogram
    # Of the mean probability of a document's bits; None for a model that does not say.
    sureness: Histogram | None
    nearest: Histogram | None  # of the distance to the nearest of `among` other documents
    among: int

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest holds."""
        parts = self._asdict()
        return {k: v._asdict() if isinstance(v, Histogram) else v for k, v in parts.items()}


class Looks(NamedTuple):
    """What each of some documents looks like to a model."""

    bits: Bits  # (n_docs, n_bits)
    unknown: NDArray[Any]  # (n_docs,)
    sureness: NDArray[Any] | None  # (n_docs,)
    nearest: NDArray[Any] | None
    among: int

    def take(self, rows: NDArray[Any]) -> "Looks":
        """Choose documents by their row numbers."""
        sure = None if self.sureness is None else self.sureness[rows]
        near = None if self.nearest is None else self.nearest[rows]
        return Looks(self.bits[rows], self.unknown[rows], sure, near, self.among)

    def profile(self) -> Profile:
        """Put them into histograms."""
        n_docs, n_bits = self.bits.shape
        distances = (-0.5, n_bits + 0.5)
        return Profile(
            n_docs,
            self.bits.sum(axis=0, dtype=np.int64).tolist(),
            _entropy(self.bits),
            _histogram(self.unknown, (0, 1)),
            None if self.sureness is None else _histogram(self.sureness, (0.5, 1)),
            None if self.nearest is None else _histogram(self.nearest, distances, n_bits + 1),
            self.among,
        )


def look_at(
    model: "Model", texts: Sequence[str], others: Codes | None, vectors: Any = None
) -> Looks:
    """Look at documents, of which there must be one.

    Parameters
    ----------
    others : uint8 ndarray of shape (n, n_bytes) or None
        Codes that the nearest is looked for among.
    vectors : sequence of vectors, optional
        Those of the texts, where the model would otherwise embed these.
    """
    codes, chances = model.codes_and_chances(model.counts(texts, vectors))
    others = others if others is not None and len(others) else None
    return Looks(
        unpack(codes),
        model.unknown_shares(texts),
        np.maximum(chances, 1 - chances).mean(axis=1) if model.has_posterior else None,
        None if others is None else _nearest(codes, others),
        0 if others is None else len(others),
    )


def make_profile(
    model: "Model", texts: Sequence[str], others: Codes | None, vectors: Any = None
) -> Profile:
    """Look at documents, of many at a sample; see `look_at`.

    Where vectors came from elsewhere, the words of texts are all that can be looked at later, and
    their codes are not near those of documents with vectors: no nearest is looked for.
    """
    rows = sample(len(texts), MOST)
    if not model.texts_suffice:
        others = vectors = None
    return look_at(model, take(texts, rows), others, take(vectors, rows)).profile()


def profile_held_out(
    model: "Model", texts: Sequence[str], held_out: Any, vectors: tuple[Any, Any] = (None, None)
) -> Profile | None:
    """Look at documents that were held out, alone or with their labels, beside those learned.

    `vectors` are those of the texts, and of the ones held out, where the model sees any.
    """
    held_out = held_out[0] if isinstance(held_out, tuple) else held_out
    if held_out is None or not len(held_out):
        return None
    rows = sample(len(texts), AMONG)
    others = None
    if model.texts_suffice:
        others = model.encode(take(texts, rows), take(vectors[0], rows))
    return make_profile(model, list(held_out), others, vectors[1])


def read_profile(parts: Mapping[str, Any] | None, n_bits: int) -> Profile | None:
    """Read what `to_json` wrote; raise a ValueError where it cannot be of such a model."""
    if parts is None:
        return None
    found = Profile(**{k: _read(v) for k, v in parts.items()})
    for name, size in (("unknown", _BINS), ("sureness", _BINS), ("nearest", n_bits + 1)):
        part = getattr(found, name)
        wanted = part is None and name != "unknown"
        if not wanted and (len(part.counts) != size or sum(part.counts) != found.documents):
            raise ValueError(f"the histogram of {name} in its profile does not fit")
    n, (value, error) = found.documents, found.entropy
    ones_fit = len(found.ones) == n_bits and all(0 <= some <= n for some in found.ones)
    if n < 1 or found.among < 0 or not ones_fit or not np.isfinite([value, error]).all():
        raise ValueError("its profile does not fit")
    return found


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    counts, mean = value["counts"], float(value["mean"])
    if not all(isinstance(n, int) and n >= 0 for n in counts) or not np.isfinite(mean):
        raise ValueError("a histogram in its profile is not one")
    return Histogram(list(counts), mean)


def _histogram(values: NDArray[Any], edges: tuple[float, float], n_bins: int = _BINS) -> Histogram:
    counts, _ = np.histogram(np.clip(values, *edges), n_bins, edges)
    return Histogram(counts.tolist(), float(values.mean()))


def _nearest(codes: Codes, others: Codes) -> NDArray[np.int64]:
    """Find the distance from each code to the nearest of the others."""
    near, words = np.empty(len(codes), np.int64), to_words(others)
    for i, word in enumerate(to_words(codes)):
        near[i] = np.bitwise_count(words ^ word).sum(axis=1, dtype=np.int64).min()
    return near


def _entropy(bits: NDArray[np.uint8]) -> list[float]:
    """Add up the entropies of bits, without the bias of few documents; with the standard error.

    G. A. Miller, "Note on the bias of information estimates", 1955; the error is that of the sum
    of what each document adds, by the derivative of the entropy.
    """
    n = len(bits)
    p = np.clip(bits.mean(axis=0, dtype=np.float64), 0.5 / n, 1 - 0.5 / n)
    slopes = np.log2((1 - p) / p)
    error = float((bits @ slopes).std() / n**0.5)
    return [float(entropy(p).sum() + len(p) / (2 * n * np.log(2))), error]
