"""Ids that are integers: find rows by id, order ties.

Ids of any kind are those of all rows ever added, in row order. A removed id may be given again, so
an id can stand at several rows; the last one counts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.search.parts import Rows

IdArray = NDArray[np.int64] | NDArray[np.object_]
Arrays = dict[str, NDArray[Any]]

UNKNOWN = -1


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

    def widen(self, dtype: Any) -> None:
        """Change the type of all values."""
        self._room = self.values.astype(dtype, copy=False)


class CountedIds:
    """Ids that count up by one from a start: nothing is stored."""

    kind = "counted"

    def __init__(self, start: int, n_rows: int) -> None:
        self.start = start
        self.n_rows = n_rows

    def __len__(self) -> int:
        return self.n_rows

    def take(self, rows: Rows) -> IdArray:
        """Return the ids of rows, in the shape of `rows`."""
        return rows + self.start

    def find(self, ids: NDArray[np.int64]) -> Rows:
        """Return the last row of each id, -1 where there is none."""
        known = (ids >= self.start) & (ids <= self.start + (self.n_rows - 1))
        return np.where(known, ids - self.start, UNKNOWN)

    def append(self, ids: NDArray[np.int64]) -> None:
        """Add the ids of new rows."""
        self.n_rows += len(ids)

    def continued_by(self, ids: NDArray[np.int64]) -> bool:
        """Say whether new ids go on counting."""
        return not len(ids) or (int(ids[0]) == self.start + self.n_rows and counts_up(ids))

    def as_integers(self) -> "IntegerIds":
        """Return the same ids, stored one by one."""
        integers = IntegerIds()
        integers.append(self.start + np.arange(self.n_rows, dtype=np.int64))
        return integers

    def keys(self) -> None:
        """Return None: rows are in the order of their ids."""
        return None

    def arrays(self) -> Arrays:
        """Return what a file needs to hold."""
        return {"id_range": np.array([self.start, self.n_rows], np.int64)}

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return 0


class IntegerIds:
    """Any int64 ids, in four bytes each where they fit."""

    kind = "integers"

    def __init__(self, ids: NDArray[Any] | None = None) -> None:
        self._ids = GrowingArray(np.zeros(0, np.int32) if ids is None else ids)
        self._ascending = bool(np.all(self._values[1:] > self._values[:-1]))
        self._order: NDArray[np.int64] | None = None  # rows sorted by id, without the recent ones
        self._recent: dict[int, int] = {}  # id to row of those after

    @property
    def _values(self) -> NDArray[Any]:
        return self._ids.values

    def __len__(self) -> int:
        return len(self._values)

    def take(self, rows: Rows) -> IdArray:
        """Return the ids of rows, in the shape of `rows`."""
        return self._values[rows].astype(np.int64)

    def append(self, ids: NDArray[np.int64]) -> None:
        """Add the ids of new rows."""
        first = len(self)
        if len(ids) and not _fits_32(ids):
            self._ids.widen(np.int64)
        self._ids.append(ids.astype(self._values.dtype))
        added = self._values[max(first - 1, 0) :]
        self._ascending &= bool(np.all(added[1:] > added[:-1]))
        if self._order is not None:
            self._recent.update(zip(ids.tolist(), range(first, len(self)), strict=True))

    def find(self, ids: NDArray[np.int64]) -> Rows:
        """Return the last row of each id, -1 where there is none."""
        if self._ascending:
            return _search(self._values, None, ids)
        if self._order is None or len(self._recent) > 1000 + len(self._order) // 8:
            self._order = np.argsort(self._values, kind="stable")
            self._recent = {}
        rows = _search(self._values, self._order, ids)
        if self._recent:
            recent = (self._recent.get(i, UNKNOWN) for i in ids.tolist())
            rows = np.maximum(rows, np.fromiter(recent, np.int64, len(ids)))
        return rows

    def keys(self) -> NDArray[np.int64] | None:
        """Return the ids, or None where rows are in their order."""
        return None if self._ascending else self._values

    def arrays(self) -> Arrays:
        """Return what a file needs to hold."""
        return {"ids": self._values}

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._ids.nbytes + (0 if self._order is None else self._order.nbytes)


def counts_up(ids: NDArray[np.int64]) -> bool:
    """Say whether each id is one more than the id before.

    >>> counts_up(np.array([7, 8, 9])), counts_up(np.array([7, 9]))
    (True, False)
    """
    whole = int(ids[-1]) - int(ids[0]) == len(ids) - 1
    return whole and bool(np.all(ids[1:] > ids[:-1]))


def _fits_32(ids: NDArray[np.int64]) -> bool:
    limits = np.iinfo(np.int32)
    return bool(limits.min <= ids.min() and ids.max() <= limits.max)


def _search(values: NDArray[Any], order: NDArray[np.int64] | None, ids: NDArray[np.int64]) -> Rows:
    """Find the last row of each id; without an order, values ascend."""
    n_sorted = len(values) if order is None else len(order)
    if not n_sorted:
        return np.full(len(ids), UNKNOWN)
    wanted = ids.astype(values.dtype)  # or all values become int64; what does not fit is not there
    places = np.searchsorted(values[:n_sorted], wanted, side="right", sorter=order) - 1
    rows = places if order is None else order[places]
    return np.where((places >= 0) & (values[rows] == ids), rows, UNKNOWN)
