"""Ids of codes, integers or strings: find rows by id, order ties.

Ids of any kind are those of all rows ever added, in row order. A removed id may be given again, so
an id can stand at several rows; the last one counts.
"""

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError, InputError
from vdsh.search.parts import Rows

GivenIds = NDArray[np.int64] | list[str]
IdArray = NDArray[np.int64] | NDArray[np.object_]
Arrays = dict[str, NDArray[Any]]

UNKNOWN = -1
GAP = 1 << 24  # between the keys of neighbours, for ids that come in between later
FEW = 1000  # ids put in order one by one rather than by sorting all


class GrowingArray:
    """An array that makes room for more values now and then, not on every append."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values
        self._size = len(values)

    @property
    def values(self) -> NDArray[Any]:
        """The values so far."""
        return self._room[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes of memory, room to grow included."""
        return self._room.nbytes

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        needed = self._size + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, self._size * 3 // 2), self._room.dtype)
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : needed] = values
        self._size = needed


class IntegerIds:
    """Any int64 ids, in four bytes each where they fit. Ids that count up by one are not stored."""

    kind = "integers"  # in a file

    def __init__(self, ids: range | NDArray[Any]) -> None:
        self._counted = ids if isinstance(ids, range) else _as_range(ids)
        self._store(np.zeros(0, np.int32) if self._counted is not None else np.asarray(ids))

    def _store(self, ids: NDArray[Any]) -> None:
        narrow = np.int32 if _fits_32(ids) else np.int64
        self._ids = GrowingArray(ids.astype(narrow, copy=False))
        self._ascending = bool(np.all(ids[1:] > ids[:-1]))
        self._order: NDArray[np.int64] | None = None  # rows sorted by id, without the recent ones
        self._recent: dict[int, int] = {}  # id to row of those after

    @property
    def values(self) -> NDArray[Any]:
        """All ids."""
        if self._counted is None:
            return self._ids.values
        ids = self._counted.start + np.arange(len(self._counted), dtype=np.int64)
        return ids.astype(np.int32) if _fits_32(ids) else ids

    def __len__(self) -> int:
        return len(self._ids.values if self._counted is None else self._counted)

    def take(self, rows: Rows) -> IdArray:
        """Return the ids of rows, in the shape of `rows`."""
        if self._counted is not None:
            return rows + self._counted.start
        return self._ids.values[rows].astype(np.int64)

    def append(self, ids: NDArray[np.int64]) -> None:
        """Add the ids of new rows."""
        if not len(ids):
            return
        if self._counted is not None:
            more = _as_range(ids)
            if more is not None and (not self._counted or more.start == self._counted.stop):
                self._counted = range((self._counted or more).start, more.stop)
                return
            self._store(self.values)
            self._counted = None
        first = len(self)
        if not _fits_32(ids):
            self._ids = GrowingArray(self._ids.values.astype(np.int64, copy=False))
        self._ids.append(ids)
        added = self._ids.values[max(first - 1, 0) :]
        self._ascending &= bool(np.all(added[1:] > added[:-1]))
        if self._order is not None:
            self._recent.update(zip(ids.tolist(), range(first, len(self)), strict=True))

    def find(self, ids: NDArray[np.int64]) -> Rows:
        """Return the last row of each id, -1 where there is none."""
        if self._counted is not None:
            known = (ids >= self._counted.start) & (ids < self._counted.stop)
            return np.where(known, ids - self._counted.start, UNKNOWN)
        values, order = self._ids.values, self._order
        if not self._ascending and (order is None or len(self._recent) > 1000 + len(order) // 8):
            self._order = order = np.argsort(values, kind="stable")
            self._recent = {}
        n_sorted = len(values) if order is None else len(order)
        wanted = ids.astype(values.dtype)  # or all become int64; what does not fit is not there
        places = np.searchsorted(values[:n_sorted], wanted, side="right", sorter=order) - 1
        rows = places if order is None else order[places]
        rows = np.where((places >= 0) & (values[rows] == ids), rows, UNKNOWN)
        if self._recent:
            recent = (self._recent.get(i, UNKNOWN) for i in ids.tolist())
            rows = np.maximum(rows, np.fromiter(recent, np.int64, len(ids)))
        return rows

    def keys(self) -> NDArray[np.int64] | None:
        """Return the ids, or None where rows are in their order."""
        return None if self._counted is not None or self._ascending else self._ids.values

    def arrays(self, name: str = "id") -> Arrays:
        """Return what a file needs to hold."""
        if self._counted is None:
            return {f"{name}s": self._ids.values}
        return {f"{name}_range": np.array([self._counted.start, len(self._counted)], np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str = "id") -> "IntegerIds":
        """Rebuild what `arrays` returned."""
        if f"{name}_range" not in arrays:
            return cls(arrays[f"{name}s"])
        start, n_rows = arrays[f"{name}_range"].tolist()
        return cls(range(start, start + n_rows))

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._ids.nbytes + (0 if self._order is None else self._order.nbytes)


def _as_range(ids: NDArray[Any]) -> range | None:
    """Return ids that count up by one as a range."""
    if not len(ids):
        return range(0)
    first, last = int(ids[0]), int(ids[-1])
    counts_up = last - first == len(ids) - 1 and bool(np.all(ids[1:] > ids[:-1]))
    return range(first, last + 1) if counts_up else None


def _fits_32(ids: NDArray[Any]) -> bool:
    limits = np.iinfo(np.int32)
    return bool(limits.min <= ids.min(initial=0) and ids.max(initial=0) <= limits.max)


class StringIds:
    """Any strings.

    `arrays`: what `arrays()` returned: `id_text`, all ids in UTF-8 one after the other; `id_ends`,
    where each ends; and `id_keys` where the ids do not ascend.
    """

    kind = "strings"

    def __init__(self, arrays: Arrays) -> None:
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
        # Python strings may hold lone surrogates, from file names for example.
        encoded = [i.encode("utf-8", "surrogatepass") for i in ids]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        self._text.append(np.frombuffer(b"".join(encoded), np.uint8))
        if self._ends.values.dtype != np.int64:  # of a file
            self._ends = GrowingArray(self._ends.values.astype(np.int64))
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
        narrow = np.uint32 if len(self._text.values) < 2**32 else np.int64
        ends = self._ends.values.astype(narrow, copy=False)
        arrays = {"id_text": self._text.values, "id_ends": ends}
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


Ids = IntegerIds | StringIds


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


def make_ids(ids: GivenIds | range) -> Ids:
    """Keep ids as integers or as strings."""
    if not isinstance(ids, list):
        return IntegerIds(ids)
    strings = StringIds({})
    strings.append(ids)
    return strings


def ids_from_file(kind: str, arrays: Arrays) -> Ids:
    """Rebuild ids from what `Ids.arrays` returned."""
    return IntegerIds.from_arrays(arrays) if kind == IntegerIds.kind else StringIds(arrays)
