"""From the ids a user gives to the kind that holds them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import InputError
from vdsh.search.ids import Arrays, CountedIds, Ids, IntegerIds, counts_up
from vdsh.search.string_ids import StringIds

GivenIds = NDArray[np.int64] | list[str]


def check_ids(ids: Any, *, unique: bool = True) -> GivenIds:
    """Return ids as int64 array or list of str, all different, or say what is wrong."""
    values = ids.tolist() if isinstance(ids, np.ndarray) and ids.dtype.kind not in "iu" else ids
    if not isinstance(values, np.ndarray):
        values = list(_iterable(values))
        if values and all(isinstance(value, str) for value in values):
            return _different(values) if unique else values
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


def _iterable(ids: Any) -> Iterable[Any]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InputError(f"ids must be a list of integers or strings. Got {show(ids)}.")
    return ids


def _different(ids: list[str]) -> list[str]:
    if len(set(ids)) < len(ids):
        repeat = Counter(ids).most_common(1)[0][0]
        raise InputError(f"Each id must be given once. {show(repeat)} is there twice.")
    return ids


def show(value: Any) -> str:
    """Write an id for an error message, long ones cut.

    >>> show("a" * 10_000)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:40] + "…"


def check_kind(ids: Ids, given: GivenIds) -> None:
    """Raise where strings meet integers."""
    has, got = isinstance(ids, StringIds), isinstance(given, list)
    if has != got:
        kinds = {True: "strings", False: "integers"}
        raise InputError(f"The ids of this index are {kinds[has]}. Got {kinds[got]}.")


def make_ids(ids: GivenIds | None, n_rows: int) -> Ids:
    """Choose the kind that holds some ids in the least memory."""
    if ids is None:
        return CountedIds(0, n_rows)
    if isinstance(ids, list):
        strings = StringIds()
        strings.append(ids)
        return strings
    if len(ids) and counts_up(ids):
        return CountedIds(int(ids[0]), len(ids))
    integers = IntegerIds()
    integers.append(ids)
    return integers


def ids_from_file(kind: str, arrays: Arrays) -> Ids:
    """Rebuild ids from what `Ids.arrays` returned."""
    if kind == CountedIds.kind:
        start, n_rows = arrays["id_range"].tolist()
        return CountedIds(start, n_rows)
    if kind == IntegerIds.kind:
        return IntegerIds(arrays["ids"])
    return StringIds(arrays)
