"""How far the codes of two models are apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vdsh.model.health import sample

if TYPE_CHECKING:
    from vdsh.model.model import Model

MOST = 10_000  # texts that are encoded twice


class Changes(NamedTuple):
    """How many codes would change under another model."""

    documents: int  # how many were looked at
    codes: float  # the share of codes that differ in any bit
    bits: float  # the share of all bits that differ

    def describe(self) -> str:
        """Say it in a sentence.

        >>> Changes(1000, 0.62, 0.05).describe()
        '62% of the codes of 1,000 documents would change, in 5.0% of all bits'
        """
        return (
            f"{self.codes:.0%} of the codes of {self.documents:,} documents would change, in "
            f"{self.bits:.1%} of all bits"
        )


def count_changes(old: "Model", new: "Model", texts: Sequence[str]) -> Changes:
    """Encode texts, of many a sample, with two models of one length, and compare."""
    texts = [texts[i] for i in sample(len(texts), MOST)]
    if not texts:
        return Changes(0, 0.0, 0.0)
    differ = np.bitwise_count(old.encode(texts) ^ new.encode(texts)).sum(axis=1, dtype=np.int64)
    return Changes(len(texts), float((differ > 0).mean()), float(differ.mean() / new.n_bits))
