"""Which documents are kept from training: to choose the epoch with, and to tell drift by."""

from typing import Any

import numpy as np

from vdsh.errors import InputError

LEAST_TO_HOLD_OUT = 100  # with fewer documents every one is needed to learn from


def hold_out(n_documents: int, seed: Any, share: float = 0.1) -> tuple[list[int], list[int]]:
    """Choose the rows to learn from, and a random tenth to validate with; of few, none.

    >>> [len(rows) for rows in hold_out(200, seed=0)]
    [180, 20]
    >>> [len(rows) for rows in hold_out(99, seed=0)]
    [99, 0]
    """
    if isinstance(share, bool) or not 0 <= share < 1:
        raise InputError(
            "validation must be texts, texts with labels, a share from 0 to below 1, or None. "
            f"Got {share!r}."
        )
    cut = int(n_documents * share)
    if n_documents < LEAST_TO_HOLD_OUT or not cut:
        return list(range(n_documents)), []
    rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    order = rng.permutation(n_documents)
    return np.sort(order[cut:]).tolist(), order[:cut].tolist()


def take(values: Any, rows: Any) -> Any:
    """Take some rows of an array or a list, of nothing nothing."""
    if values is None or hasattr(values, "ndim"):
        return None if values is None else np.asarray(values)[rows]
    return [values[i] for i in rows]
