"""From the ids a user gives to the kind that holds them; strings are one buffer of UTF-8."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError, InputError
from vdsh.search.ids import (
    UNKNOWN,
    Arrays,
    CountedIds,
    GrowingArray,
    IdArray,
    IntegerIds,
    counts_up,
)
from vdsh.search.parts import Rows

GAP = 1 << 24  # between the keys of neighbours, for ids that come in between later
FEW = 1000  # ids put in order one by one rather than by sorting all

GivenIds = NDArray[np.int64] | list[str]


class StringIds:
    """Any strings.

    `arrays`: what `arrays()` returned: `id_text`, all ids in UTF-8 one after the other; `id_ends`,
    where each ends; and `id_keys` where the ids do not ascend.
    """

    kind = "strings"

    def __init__(self, arrays: Arrays | None = None) -> None:
        arrays = arrays or {}
        self._text = GrowingArray(arrays.get("id_text", np.zeros(0, np.uint8)))
        self._ends = GrowingArray(arrays.get("id_ends", np.zeros(0, np.int64)))
        keys = arrays.get("id_keys")
        self._keys = GrowingArray(np.zeros(0, np.int64) if keys is None else keys)
        self._ascending = keys is None
        self._order: list[int] | None = None  # rows sorted by id
        self._rows: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._ends.values)

    def take(self, rows: Rows) -> IdArray:
        """Return the ids of rows, in the shape of `rows`."""
        taken = np.empty(rows.size, object)
        taken[:] = self._strings(rows.reshape(-1))
        return taken.reshape(rows.shape)

    def find(self, ids: list[str]) -> Rows:
        """Return the last row of each id, -1 where there is none."""
        if self._rows is None:
            everything = self._strings(np.arange(len(self)))
            self._rows = dict(zip(everything, range(len(self)), strict=True))
        return np.array([self._rows.get(i, UNKNOWN) for i in ids], np.int64)

    def append(self, ids: list[str]) -> None:
        """Add the ids of new rows."""
        first = len(self)
        encoded = [_encode(i) for i in ids]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        self._text.append(np.frombuffer(b"".join(encoded), np.uint8))
        self._ends.append(ends + (self._ends.values[-1] if first else 0))
        if self._ascending and ids:
            met = self._strings(np.array([first - 1])) + ids if first else ids
            self._ascending = all(a < b for a, b in zip(met, met[1:], strict=False))
        if self._rows is not None:
            self._rows.update(zip(ids, range(first, len(self)), strict=True))

    def keys(self) -> NDArray[np.int64] | None:
        """Return numbers that sort as the ids do, or None where rows are in their order."""
        if self._ascending:
            return None
        new = range(len(self._keys.values), len(self))
        if len(new) > FEW or not len(self._keys.values):
            self._sort()
        else:
            for row in new:
                self._put_in_order(row)
        return self._keys.values

    def arrays(self) -> Arrays:
        """Return what a file needs to hold."""
        arrays = {"id_text": self._text.values, "id_ends": self._ends.values}
        keys = self.keys()
        return arrays if keys is None else arrays | {"id_keys": keys}

    @property
    def nbytes(self) -> int:
        """Bytes of memory; the dict that finds rows is not counted."""
        return self._text.nbytes + self._ends.nbytes + self._keys.nbytes

    def _strings(self, rows: Rows) -> list[str]:
        ends = self._ends.values[rows].tolist()
        starts = np.where(rows > 0, self._ends.values[rows - 1], 0).tolist()
        text = self._text.values.data
        pairs = zip(starts, ends, strict=True)
        try:
            return [str(text[start:end], "utf-8", "surrogatepass") for start, end in pairs]
        except UnicodeDecodeError as error:  # only of a file that somebody made by hand
            raise FolderError("The ids of this index are not text. Build it again.") from error

    def _sort(self) -> None:
        """Give all rows new keys, in the order of their ids."""
        strings = self._strings(np.arange(len(self)))
        self._order = sorted(range(len(self)), key=strings.__getitem__)
        keys = np.empty(len(self), np.int64)
        keys[self._order] = np.arange(1, len(self) + 1) * GAP
        self._keys = GrowingArray(keys)

    def _put_in_order(self, row: int) -> None:
        """Give a new row a key between those of its neighbours."""
        if self._order is None:
            self._order = np.argsort(self._keys.values).tolist()
        keys, order = self._keys.values, self._order
        place = bisect_left(order, self._string(row), key=self._string)
        below = int(keys[order[place - 1]]) if place else 0
        above = int(keys[order[place]]) if place < len(order) else below + 2 * GAP
        if above - below < 2:
            self._sort()
        elif row == len(keys):
            order.insert(place, row)
            self._keys.append(np.array([(below + above) // 2]))

    def _string(self, row: int) -> str:
        return self._strings(np.array([row]))[0]


Ids = CountedIds | IntegerIds | StringIds


def _encode(string: Any) -> bytes:
    # Python strings may hold lone surrogates, from file names for example.
    return bytes(string.encode("utf-8", "surrogatepass"))


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
