"""HammingIndex: exact search among packed codes, by id."""

from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError, needing
from vdsh.search.checks import check_codes, check_count, check_ids, check_memory, check_queries
from vdsh.search.id_kinds import GivenIds, IdArray, IntegerIds, check_kind, make_ids, show
from vdsh.search.index_file import from_arrays, to_arrays, write_arrays
from vdsh.search.parts import Mask, RowHits, Rows
from vdsh.search.rows import RowIndex

if TYPE_CHECKING:
    from vdsh.search.gpu import GpuRows

WORTH_COMPACTING = 1024


class Hits(NamedTuple):
    """Ids, nearest first, and their distances."""

    ids: IdArray
    distances: NDArray[np.int32]


class HammingIndex:
    """Find the codes nearest to a query in Hamming distance, exactly.

    Answers depend on nothing but codes and ids: equal distances are ordered by id, whatever the
    number of queries or threads. Searches may run in several threads at once; adding and removing
    may not run beside them.

    Parameters
    ----------
    codes : ndarray of uint8 of shape (n, n_bytes)
        Packed codes, of 8 to 1024 bits.
    ids : sequence of int or str, optional
        One id a code, all different; row numbers by default.
    numbers : ndarray of int64, optional
        One a code, all different, by which a table knows it: see `nearest`.
    threads : int, optional
        Threads of a search; all CPUs by default.
    device : str, default="cpu"
        Where codes are kept and searched: "cuda" is a GPU, for which torch must be installed.
        Answers are the same.

    Examples
    --------
    >>> index = HammingIndex(np.array([[0], [1], [3], [255]], np.uint8), ids=["a", "b", "c", "d"])
    >>> ids, distances = index.search(np.array([1], np.uint8), k=3)
    >>> ids.tolist(), distances.tolist()
    (['b', 'a', 'c'], [0, 1, 1])
    """

    def __init__(
        self,
        codes: Codes,
        *,
        ids: Any | None = None,
        numbers: Rows | None = None,
        threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        codes, on_cpu = check_codes(codes), device == "cpu"
        if on_cpu:
            check_memory(f"{len(codes):,} codes", codes.nbytes)
        threads = None if threads is None else check_count("threads", threads, 1)
        given = _check_new_ids(ids, len(codes))
        self._ids = make_ids(range(len(codes)) if given is None else given)
        self._next_id = len(codes) if given is None else None
        self._numbers = IntegerIds(range(0) if numbers is None else numbers)
        self._rows = RowIndex(codes, threads=threads) if on_cpu else _on_gpu(codes, device)
        self._lock = Lock()
        self._keys_stale = True

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, threads: int | None = None, device: str = "cpu"
    ) -> "HammingIndex":
        """Map a saved index into memory; codes are read from disk as searches need them.

        With `device="cuda"` they are all brought to the GPU at once.
        """
        threads = None if threads is None else check_count("threads", threads, 1)
        index = cls.__new__(cls)
        index._lock = Lock()
        rows, index._ids, index._next_id, index._numbers = from_arrays(Path(path), threads)
        index._rows = rows
        index._keys_stale = device != "cpu"
        if device != "cpu":
            index._rows = _on_gpu(rows.codes(), device)
            index._rows.remove(np.flatnonzero(~rows.alive))
        return index

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to one file, replacing an old one only when all is written."""
        self._order_ties()
        rows = self._rows if isinstance(self._rows, RowIndex) else self._rows.on_cpu()
        facts, arrays = to_arrays(rows, self._ids, self._next_id)
        if self.is_numbered:
            arrays = self._numbers.arrays("number") | arrays
        write_arrays(Path(path), facts, arrays)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<HammingIndex of {len(self):,} codes, {self.n_bits} bits each>"

    @property
    def n_bits(self) -> int:
        """Length of a code in bits."""
        return self._rows.n_bits

    @property
    def nbytes(self) -> int:
        """Bytes of memory for codes, ids and what speeds the search up."""
        return self._rows.nbytes + self._ids.nbytes + self._numbers.nbytes

    @property
    def ids(self) -> IdArray:
        """Ids in the order in which they were added, without those removed."""
        return self._ids.take(np.flatnonzero(self._rows.alive))

    def search(self, queries: Codes, k: int = 100, *, mask: Any | None = None) -> Hits:
        """Find the k nearest codes of each query.

        Parameters
        ----------
        queries : ndarray of uint8 of shape (n_queries, n_bytes) or (n_bytes,)
        k : int, default=100
        mask : ndarray of bool of shape (len(index),), or sequence of ids, optional
            Codes that may be returned: one value for each of `index.ids`, or their ids.

        Returns
        -------
        Hits
            Arrays of shape (n_queries, k), nearest first, ties by lowest id; (k,) for one query.
            There are fewer columns where the index, or the mask, has fewer than k codes.
        """
        queries, single = check_queries(queries, self._rows.n_bytes)
        k = check_count("k", k, 1)
        allowed = self._allowed(mask)
        self._order_ties()
        hits = self._hits(self._rows.search(queries, k, allowed=allowed))
        return Hits(hits.ids[0], hits.distances[0]) if single else hits

    @property
    def is_numbered(self) -> bool:
        """Whether its codes have numbers."""
        return len(self._numbers) == self._rows.n_rows

    def nearest(self, query: Codes, k: int, *, allowed: Rows | None = None) -> tuple[Rows, Rows]:
        """Give rows and numbers of the k codes nearest to one query, nearest first, ties by id.

        `allowed`: the numbers of the codes that may be returned, all of which must be in the index.
        """
        mask = None
        if allowed is not None:
            mask = np.zeros(self._rows.n_rows, np.bool_)
            mask[self.rows_of(allowed)] = True
        self._order_ties()
        rows = self._rows.search(query[None], k, allowed=mask).rows[0]
        return rows, cast(Rows, self._numbers.take(rows))

    def numbers_within(self, query: Codes, radius: int) -> Rows:
        """Give the numbers of all codes within a radius of one, nearest first, ties by id."""
        self._order_ties()
        rows = self._rows.within(query[None], radius)[0].rows
        return cast(Rows, self._numbers.take(rows))

    def rows_of(self, numbers: Rows) -> Rows:
        """Give the rows of numbers, all of which must be in the index."""
        rows = self._numbers.find(numbers)
        if rows.min(initial=0) < 0:
            raise FolderError("The index is of other documents. Delete index-*.vdsh beside them.")
        return rows

    def take(self, numbers: Rows) -> tuple[Codes, Rows]:
        """Give the codes that have some numbers, and keys that sort as their ids do."""
        rows = self.rows_of(numbers)
        self._order_ties()
        keys = self._rows.keys
        return self._rows.take(rows), rows if keys is None else keys[rows]

    def within(self, queries: Codes, radius: int, *, mask: Any | None = None) -> Hits | list[Hits]:
        """Find every code within `radius` bits of each query.

        Parameters
        ----------
        queries : ndarray of uint8 of shape (n_queries, n_bytes) or (n_bytes,)
        radius : int
        mask : ndarray of bool of shape (len(index),), or sequence of ids, optional

        Returns
        -------
        Hits, or list of Hits
            Nearest first, ties by lowest id; a list where several queries were given.
        """
        queries, single = check_queries(queries, self._rows.n_bytes)
        radius = check_count("radius", radius, 0)
        allowed = self._allowed(mask)
        self._order_ties()
        found = self._rows.within(queries, radius, allowed=allowed)
        hits = [self._hits(hit) for hit in found]
        return hits[0] if single else hits

    def add(self, codes: Codes, *, ids: Any = None, numbers: Rows | None = None) -> None:
        """Add codes, with ids and numbers where the first ones had some.

        Parameters
        ----------
        codes : ndarray of uint8 of shape (n, n_bytes)
        ids : sequence of int or str, optional
            All different and none in the index yet.
        numbers : ndarray of int64, optional
        """
        codes = check_codes(codes, self._rows.n_bytes)
        if isinstance(self._rows, RowIndex):
            check_memory(f"{len(codes):,} more codes", codes.nbytes)
        given = _check_new_ids(ids, len(codes))
        next_id = None
        if given is None:
            if self._next_id is None:
                raise InputError("This index was given ids. Give ids= for the new codes too.")
            next_id = self._next_id + len(codes)
            given = np.arange(self._next_id, next_id, dtype=np.int64)
        if self._rows.n_rows == 0:
            self._ids = make_ids(given)
        else:
            self._check_unused(given)
            self._ids.append(cast(Any, given))
        self._next_id = next_id
        if numbers is not None:
            self._numbers.append(numbers)
        self._rows.append(codes)
        self._keys_stale = True

    def remove(self, ids: Any) -> None:
        """Remove codes by their ids, all of which must be in the index."""
        given = check_ids(ids)
        rows = self._find(given)
        if rows.min(initial=0) < 0:
            unknown = given[int(np.argmax(rows < 0))]
            raise InputError(f"There is no id {show(unknown)} in this index.")
        self._rows.remove(rows)
        n_removed = self._rows.n_rows - len(self)
        if n_removed > WORTH_COMPACTING and n_removed > len(self):
            self._compact()

    def _hits(self, hits: RowHits) -> Hits:
        return Hits(self._ids.take(hits.rows), hits.distances)

    def _find(self, given: GivenIds) -> Rows:
        """Return the row of each id, -1 where it is not there or removed."""
        if not len(given):
            return np.empty(0, np.int64)
        check_kind(self._ids, given)
        rows = self._ids.find(cast(Any, given))
        known = rows >= 0
        known[known] = self._rows.has(rows[known])
        return np.where(known, rows, -1)

    def _allowed(self, mask: Any | None) -> Mask | None:
        """Turn a mask over ids, or a list of them, into one over rows."""
        if mask is None:
            return None
        allowed = np.zeros(self._rows.n_rows, np.bool_)
        if _is_boolean(mask):
            if np.shape(mask) != (len(self),):
                raise InputError(
                    f"A boolean mask needs one value for each of the {len(self)} codes. "
                    f"Got shape {np.shape(mask)}."
                )
            allowed[self._rows.alive] = mask
            return allowed
        rows = self._find(check_ids(mask, unique=False))
        allowed[rows[rows >= 0]] = True
        return allowed

    def _check_unused(self, given: GivenIds) -> None:
        used = self._find(given) >= 0
        if np.any(used):
            first = given[int(np.argmax(used))]
            raise InputError(f"The id {show(first)} is in the index already. Remove it first.")

    def _compact(self) -> None:
        """Give back the memory of removed codes."""
        self._order_ties()
        numbered, rows = self.is_numbered, self._rows.compact()
        self._numbers = IntegerIds(self._numbers.take(rows[: len(rows) * numbered]))
        kept: Any = self._ids.take(rows)
        self._ids = make_ids(kept.tolist() if kept.dtype == object else kept)
        self._keys_stale = True

    def _order_ties(self) -> None:
        """Tell the rows how their ids sort, if that has changed."""
        with self._lock:  # searches may run in several threads
            if self._keys_stale:
                self._rows.keys = self._ids.keys()
                self._keys_stale = False


def check_device(device: str) -> None:
    """Raise where codes cannot be searched on a device: it is not there, or torch is not."""
    if device == "cpu":
        return
    with needing("A search on a GPU", "torch", "train"):
        from vdsh.search import gpu
    gpu.check_device(device)


def _on_gpu(codes: Codes, device: str) -> "GpuRows":
    check_device(device)
    from vdsh.search.gpu import GpuRows

    return GpuRows(codes, device)


def _check_new_ids(ids: Any | None, n_codes: int) -> GivenIds | None:
    if ids is None:
        return None
    given = check_ids(ids)
    if len(given) != n_codes:
        raise InputError(f"There must be one id a code. Got {len(given)} ids, {n_codes} codes.")
    return given


def _is_boolean(mask: Any) -> bool:
    if isinstance(mask, np.ndarray):
        return bool(mask.dtype == np.bool_)
    return isinstance(mask, list | tuple) and len(mask) > 0 and isinstance(mask[0], bool | np.bool_)
