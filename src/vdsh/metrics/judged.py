"""How good one list of documents is for a query whose relevant documents are known.

The list is a total order, as a store gives it: equal scores are in the order of ids. So the
textbook definitions suffice, with the conventions of trec_eval. `gains` has the relevant documents
only, each with a gain above 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import log2


def reciprocal_rank(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute 1 over the rank of the first relevant document; 0 where none is among the first k.

    >>> reciprocal_rank(["a", "b", "c"], {"b": 1, "c": 1}, k=10)
    0.5
    """
    return next((1 / rank for rank, id in enumerate(found[:k], 1) if id in gains), 0.0)


def recall(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute the share of the relevant documents that are among the first k.

    >>> recall(["a", "b", "c"], {"b": 1, "z": 1}, k=2)
    0.5
    """
    return sum(id in gains for id in found[:k]) / len(gains)


def ndcg(found: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Compute the gain of the first k, discounted by rank, as a share of the most there can be.

    The gain of a document counts as it is (K. Järvelin and J. Kekäläinen, "Cumulated Gain-Based
    Evaluation of IR Techniques", TOIS 2002), over log2(1 + rank), as trec_eval has it.

    >>> ndcg(["a", "b"], {"b": 1}, k=10)  # 1 / log2(3)
    0.6309297535714575
    """
    ideal = _discounted(sorted(gains.values(), reverse=True), k)
    return _discounted((gains.get(id, 0) for id in found), k) / ideal


def _discounted(gains: Iterable[float], k: int) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(islice(gains, k), 1))
