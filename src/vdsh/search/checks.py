"""Arguments of a search, checked where they come in, and the memory that it would take."""

from pathlib import Path
from typing import Any

import numpy as np

from vdsh.codes import MAX_BITS, Codes
from vdsh.errors import InputError

WORTH_ASKING = 1 << 28  # bytes


def check_codes(codes: Any, n_bytes: int | None = None) -> Codes:
    """Return codes to index, or say why they are none."""
    given = np.asarray(codes)
    if given.dtype != np.uint8 or given.ndim != 2:
        raise InputError(
            "codes must be a uint8 array of shape (n, n_bytes), as `TextHasher.encode` returns. "
            f"Got {given.dtype} of shape {given.shape}."
        )
    if not 8 <= 8 * given.shape[1] <= MAX_BITS:
        raise InputError(f"Codes must have 8 to {MAX_BITS} bits. Got {8 * given.shape[1]}.")
    if n_bytes is not None and given.shape[1] != n_bytes:
        raise InputError(
            f"This index holds {8 * n_bytes}-bit codes but the new ones have {8 * given.shape[1]}."
        )
    checked: Codes = given
    return checked


def check_list(name: str, values: Any, what: str = "a list") -> None:
    """Raise where a single string was given instead of several."""
    if isinstance(values, str):
        raise InputError(f"{name} must be {what}. Got one string: [{values!r}] is a list.")


def check_queries(queries: Any, n_bytes: int) -> tuple[Codes, bool]:
    """Return queries as rows of an array, and whether a single one was given."""
    queries = np.asarray(queries)
    if queries.dtype != np.uint8 or queries.ndim not in (1, 2):
        raise InputError(
            "A query must be a uint8 array of shape (n_bytes,) or (n_queries, n_bytes). "
            f"Got {queries.dtype} of shape {queries.shape}."
        )
    if queries.shape[-1] != n_bytes:
        raise InputError(
            f"This index holds {8 * n_bytes}-bit codes but the query has {8 * queries.shape[-1]}."
        )
    single = queries.ndim == 1
    # A copy: numba would compile all kernels once more for arrays that are read-only.
    return np.array(queries.reshape(-1, n_bytes), order="C"), single


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number, or say that it is none or too small."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}. Got {value!r}.")
    return int(value)


def free_memory() -> float:
    """Return the bytes that can be taken without swapping; infinity where the system is silent."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return float("inf")
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return float("inf")


def check_memory(what: str, n_bytes: int) -> None:
    """Raise where something takes more memory than is free."""
    if n_bytes < WORTH_ASKING:
        return
    free = free_memory()
    if n_bytes > free:
        raise InputError(
            f"{what} need {in_words(n_bytes)} of memory and {in_words(free)} are free. "
            "Divide them among several machines, or take shorter codes."
        )


def in_words(n_bytes: float) -> str:
    """Write a number of bytes for a person.

    >>> in_words(2_400_000_000), in_words(3_000_000)
    ('2.4 GB', '3 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"
