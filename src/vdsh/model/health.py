"""Bit health: which bits of a code say nothing or repeat others."""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Bits, Scores

MANY_WASTED = 16  # at least one bit of so many
LEAST_TO_WARN = 1_000  # below, documents are too few for many different bits, and that is no fault
_MOST_DOCUMENTS = 20_000
_SAME = 0.9  # correlation from which two bits count as one
_COLLAPSED = 0.01  # signal to noise below which a dimension is unused
_CONSTANT = 0.01  # share of documents that differ, below which a bit is constant


class BitHealthWarning(UserWarning):
    """Some bits of a trained model are unused or duplicated."""


class BitHealth(NamedTuple):
    """What each bit contributes."""

    balance: NDArray[np.float64]  # (n_bits,): share of the documents that have a 1
    # Bits that tell no documents apart: nearly constant, or a collapsed dimension.
    unused: list[int]
    # Bits that repeat an earlier one or its opposite, each with the first such bit.
    duplicated: list[list[int]]


def bit_health(scores: Scores, bits: Bits, noise: Scores | None = None) -> BitHealth:
    """Look for unused and duplicated bits of training documents; of many, in a fixed sample.

    `noise`, (n_bits,), is the variance that a score has within a document, sigma^2 of a variational
    model; by default the variance of the median bit. A dimension whose mean hardly varies between
    documents compared with it has collapsed to the prior (the "active units" of Y. Burda, R. Grosse
    and R. Salakhutdinov, ICLR 2016), and the median would still cut it into two balanced halves.

    >>> scores = np.random.RandomState(0).normal(size=(50, 4)).astype(np.float32)
    >>> scores[:, 2], scores[:, 3] = 0, -scores[:, 1]
    >>> health = bit_health(scores, (scores > 0).view(np.uint8))
    >>> health.unused, health.duplicated
    ([2], [[3, 1]])
    """
    rows = sample(len(scores), _MOST_DOCUMENTS)
    scores, bits = scores[rows], bits[rows]
    balance = bits.mean(axis=0, dtype=np.float64)
    variance = scores.var(axis=0, dtype=np.float64)
    scale = np.full(len(variance), np.median(variance)) if noise is None else noise
    spread = variance / np.maximum(scale, np.finfo(np.float32).tiny)
    dead = is_constant(balance) | (spread < _COLLAPSED)
    unused = [int(bit) for bit in np.flatnonzero(dead)]
    return BitHealth(balance, unused, _duplicated(bits, dead))


def is_constant(balance: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say of bits, by their shares of ones, which are the same for nearly all documents.

    >>> is_constant(np.array([0.5, 0.001, 1.0])).tolist()
    [False, True, True]
    """
    return np.minimum(balance, 1 - balance) < _CONSTANT


def describe(n_bits: int, unused: list[int], duplicated: list[list[int]]) -> str:
    """Say in a sentence how many bits are unused or duplicated, and which.

    >>> describe(32, [], [])
    'all 32 bits are in use and differ from one another'
    """
    parts = []
    if unused:
        verb = "tells" if len(unused) == 1 else "tell"
        parts.append(f"{len(unused)} of {n_bits} bits {verb} no documents apart ({_some(unused)})")
    if duplicated:
        verb = "repeats" if len(duplicated) == 1 else "repeat"
        count = f"{len(duplicated)}" if parts else f"{len(duplicated)} of {n_bits} bits"
        parts.append(f"{count} {verb} another ({_some([bit for bit, _ in duplicated])})")
    return ", ".join(parts) or f"all {n_bits} bits are in use and differ from one another"


def warn_of_bits(
    n_bits: int, unused: list[int], duplicated: list[list[int]], n_documents: int
) -> None:
    """Warn where bits are unused or duplicated, though there were documents enough to learn from.

    Below 1,000 training documents nothing is said: few documents cannot fill many bits. Nor of one
    bit among many.
    """
    wasted = MANY_WASTED * (len(unused) + len(duplicated))
    if n_documents >= LEAST_TO_WARN and wasted >= n_bits:
        warnings.warn(
            f"Bits are wasted: {describe(n_bits, unused, duplicated)}. The codes are as "
            "good as shorter ones; take fewer bits, more documents or other settings.",
            BitHealthWarning,
            stacklevel=3,
        )


def sample(n_docs: int, most: int) -> NDArray[np.intp]:
    """Choose at most so many rows, always the same ones."""
    if n_docs <= most:
        return np.arange(n_docs)
    return np.sort(np.random.RandomState(0).choice(n_docs, most, replace=False))


def entropy(balance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the entropy of bits from their shares of ones; 1 is the most, for one half."""
    shares = np.stack([balance, 1 - balance])
    bits: NDArray[np.float64] = -(shares * np.log2(np.maximum(shares, 1e-300))).sum(axis=0)
    return bits


def _duplicated(bits: Bits, dead: NDArray[np.bool_]) -> list[list[int]]:
    """Find the used bits that are strongly correlated with an earlier used one."""
    used = np.flatnonzero(~dead)
    if len(used) < 2:
        return []
    alike = np.abs(np.corrcoef(bits[:, used].astype(np.float32), rowvar=False)) > _SAME
    alike &= np.tri(len(used), k=-1, dtype=bool)
    later = np.flatnonzero(alike.any(axis=1))
    return [[int(used[j]), int(used[alike[j].argmax()])] for j in later]


def _some(bits: list[int]) -> str:
    return ", ".join(map(str, bits[:8])) + (", ..." if len(bits) > 8 else "")
