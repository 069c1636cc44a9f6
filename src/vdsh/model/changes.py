"""How far the codes of two models are apart."""

from typing import NamedTuple

import numpy as np

from vdsh.codes import Codes


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


def count_changes(old: Codes, new: Codes) -> Changes:
    """Compare the codes that two models of one length give the same texts."""
    if not len(old):
        return Changes(0, 0.0, 0.0)
    differ = np.bitwise_count(old ^ new).sum(axis=1, dtype=np.int64)
    return Changes(len(old), float((differ > 0).mean()), float(differ.mean() / (8 * old.shape[1])))
