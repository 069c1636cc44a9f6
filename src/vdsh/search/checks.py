"""Arguments of a search, checked where they come in, and the memory that it would take."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from vdsh.codes import MAX_BITS, Codes
from vdsh.errors import InputError
from vdsh.search.id_kinds import GivenIds, show

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


def check_ids(ids: Any, *, unique: bool = True) -> GivenIds:
    """Return ids as int64 array or list of str, all different, or say what is wrong."""
    values = ids.tolist() if isinstance(ids, np.ndarray) and ids.dtype.kind not in "iu" else ids
    if not isinstance(values, np.ndarray):
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"ids must be a list of integers or strings. Got {show(values)}.")
        values = list(values)
        if values and all(isinstance(value, str) for value in values):
            if unique and len(set(values)) < len(values):
                repeat = Counter(values).most_common(1)[0][0]
                raise InputError(f"Each id must be given once. {show(repeat)} is there twice.")
            return values
        if not all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values):
            raise InputError("ids must be all integers or all strings.")
    try:
        numbers = np.array(values, np.int64).reshape(-1)
    except OverflowError:
        raise InputError("Integer ids must fit 64 bits.") from None
    if isinstance(values, np.ndarray) and not np.array_equal(numbers, values.reshape(-1)):
        raise InputError("Integer ids must fit 64 bits.")
    if unique and len(numbers) > 1 and not np.all(numbers[1:] > numbers[:-1]):
        ordered = np.sort(numbers)
        repeats = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(repeats):
            raise InputError(f"Each id must be given once. {int(repeats[0])} is there twice.")
    return numbers


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
