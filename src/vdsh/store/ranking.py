"""Orders other than that of the distance, for the documents nearest to a query."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vdsh.codes import Scores, expected_distances
from vdsh.errors import InputError
from vdsh.store.engine import Candidate

RANKS = ("distance", "expected")
CANDIDATES = 1000  # at least so many are put in order


def check_rank(rank: Any, query: Any) -> None:
    """Raise unless hits can be ranked that way."""
    if rank not in RANKS:
        raise InputError(f'rank must be "distance" or "expected". Got {rank!r}.')
    if rank == "expected" and not isinstance(query, str):
        raise InputError(
            'rank="expected" needs a text: a code does not say how sure its bits are. '
            'Give the text, or use rank="distance".'
        )


class ByExpectedDistance:
    """Chooses the k candidates with the least expected distance, ties by distance and id.

    Parameters
    ----------
    probabilities : ndarray of shape (n_bits,)
        Of each bit of the query being 1.
    k : int

    Attributes
    ----------
    n_candidates : int
        How many of the nearest it wants to see.
    expected : dict of str to float
        The expected distance of each candidate, by id.
    """

    def __init__(self, probabilities: Scores, k: int) -> None:
        self._probabilities = probabilities
        self._k = k
        self.n_candidates = max(4 * k, CANDIDATES)
        self.expected: dict[str, float] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the first k."""
        if not candidates:
            return []
        packed = b"".join([candidate.code for candidate in candidates])
        codes = np.frombuffer(packed, np.uint8).reshape(len(candidates), -1)
        means = expected_distances(codes, self._probabilities).tolist()
        self.expected = {c.id: mean for c, mean in zip(candidates, means, strict=True)}
        return sorted(candidates, key=lambda c: (self.expected[c.id], c.distance, c.id))[: self._k]
