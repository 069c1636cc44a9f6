"""RowIndex: exact Hamming search over numbered rows, the layer under `HammingIndex`."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import available_threads, compiled
from vdsh.search.id_kinds import GrowingArray
from vdsh.search.partition import Partition, make_partition, one_row_each
from vdsh.search.parts import (
    ALL,
    MAX_QUERIES,
    QUERY_SHIFT,
    Found,
    Mask,
    RowHits,
    Rows,
    Rules,
    Strips,
    as_hits,
    by_query,
    in_order,
)
from vdsh.search.probing import TableKeeper, probe, worth_probing
from vdsh.search.scan import find_plainly, scan

PLAIN = 2e-9  # seconds that numpy takes for a byte of a code and a query
AGAIN = 50  # an index that is searched again is expected to be searched so often
FEW_ALLOWED = 128  # with fewer than one row in this many allowed, copy those out and scan them
SMALL_TAIL = 4096  # rows appended lately, scanned on their own until there are more
NO_MASK = np.empty(0, np.bool_)
NO_KEYS = np.empty(0, np.int64)


class NumberedRows:
    """Rows 0, 1, 2, ..., some with a tombstone: what an index has on a CPU and on a GPU."""

    n_rows: int

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._alive: GrowingArray | None = None  # made for the first tombstone
        self._n_removed = 0

    def __len__(self) -> int:
        return self.n_rows - self._n_removed

    @property
    def n_bits(self) -> int:
        """Length of a code in bits."""
        return 8 * self.n_bytes

    @property
    def alive(self) -> Mask:
        """Which rows are still there, shape (n_rows,)."""
        return np.ones(self.n_rows, np.bool_) if self._alive is None else self._alive.values

    def has(self, rows: Rows) -> Mask:
        """Say which rows are still there."""
        return np.ones(len(rows), np.bool_) if self._alive is None else self._alive.values[rows]

    def remove(self, rows: Rows) -> None:
        """Remove rows; those removed before are passed over."""
        if self._alive is None:
            self._alive = GrowingArray(self.alive)
        rows = np.unique(rows)
        self._n_removed += int(np.count_nonzero(self._alive.values[rows]))
        self._alive.values[rows] = False

    def _appended(self, n_rows: int) -> None:
        if self._alive is not None:
            self._alive.append(np.ones(n_rows, np.bool_))

    def _count_allowed(self, allowed: Mask | None) -> tuple[Mask | None, int]:
        """Leave tombstones out of what is allowed, and count it; None allows every row."""
        if allowed is None:
            return None if self._alive is None else self._alive.values, len(self)
        allowed = allowed if self._alive is None else allowed & self._alive.values
        return allowed, int(np.count_nonzero(allowed))


class RowIndex(NumberedRows):
    """Codes under row numbers 0, 1, 2, ...: add, remove, exact top-k, exact radius.

    For callers that keep ids themselves, such as a store: a row number is given on `append`, stays
    valid until `compact`, and comes back from `search` and `within`.

    Parameters
    ----------
    codes : ndarray of uint8 of shape (n, n_bytes)
        The first rows.
    threads : int, optional
        Threads of a search; all CPUs by default. Answers do not depend on it.
    tables : bool, default=True
        Whether to build tables when they are worth it. Codes, row numbers and tables together
        take at most three times the memory of the codes.

    Attributes
    ----------
    n_rows : int
        Rows ever appended, removed ones included; `len()` counts those still there.
    keys : ndarray of int64 of shape (n_rows,) or None
        Equal distances are ordered by key; None orders them by row number.
    """

    def __init__(self, codes: Codes, *, threads: int | None = None, tables: bool = True) -> None:
        super().__init__(int(codes.shape[1]))
        self.threads = threads or available_threads()
        self.tables = tables
        self._keeper = TableKeeper()
        self._was_searched = False
        self._main: Partition
        self._lock = Lock()
        self._keys: NDArray[np.int64] | None = None
        self._settle(codes)

    @classmethod
    def from_partition(
        cls,
        main: Partition,
        alive: Mask | None = None,
        keys: NDArray[np.int64] | None = None,
        *,
        threads: int | None = None,
    ) -> "RowIndex":
        """Make an index of a partition that exists already, such as one read from a file."""
        index = cls(np.empty((0, main.strips.data.shape[1]), np.uint8), threads=threads)
        index._main, index._decided_at = main, main.n_rows
        index._tail = Partition(Strips(index.n_bytes), main.n_rows)
        index._keys = keys
        if alive is not None:
            index._alive, index._n_removed = GrowingArray(alive), int(np.count_nonzero(~alive))
        return index

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Rows ever appended, removed ones included."""
        return self._main.n_rows + self._tail.n_rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory for codes, row lists, tables and removal marks."""
        alive = 0 if self._alive is None else self._alive.nbytes
        return self._main.nbytes + self._tail.nbytes + alive

    @property
    def keys(self) -> NDArray[np.int64] | None:
        """What orders equal distances; None means row numbers."""
        return self._keys

    @keys.setter
    def keys(self, keys: NDArray[np.int64] | None) -> None:
        # Further rows may come and keys be renumbered, but rows keep their order among each other.
        if self._keys is None:
            self._main = self._main.in_order_of(keys)
        self._keys = keys

    def append(self, codes: Codes) -> range:
        """Add codes and return their row numbers.

        An index with `keys` needs keys for the new rows too, before the next search.
        """
        first = self.n_rows
        self._tail.strips.append(codes)
        self._appended(len(codes))
        return range(first, self.n_rows)

    def codes(self) -> Codes:
        """Return the codes of all rows, removed ones included, in row order."""
        return np.concatenate([self._main.all_codes(), self._tail.all_codes()])

    def take(self, rows: Rows) -> Codes:
        """Return the codes of some rows."""
        with self._lock:  # a search in another thread may bring the tail into the main part
            main, tail, n = self._main, self._tail, self._main.n_rows
        late = rows >= n
        if not late.any():
            return main.take(rows)
        codes = np.empty((len(rows), self.n_bytes), np.uint8)
        codes[~late], codes[late] = main.take(rows[~late]), tail.take(rows[late] - n)
        return codes

    def compact(self) -> Rows:
        """Forget removed rows, numbering the others anew; return their old numbers in order."""
        kept = np.flatnonzero(self.alive)
        codes = self.codes()[kept]
        self._keys = None if self._keys is None else self._keys[kept]
        self._alive, self._n_removed = None, 0
        self._settle(codes)
        return kept

    def settled(self) -> Partition:
        """Bring everything appended so far into one partition and return it."""
        self._keeper.wait()
        if self._tail.n_rows:
            self._absorb_tail()
        return self._main

    def build_tables(self) -> None:
        """Build tables now, rather than when scans have taken as long as that."""
        main = self.settled()
        if main.tables is None:
            self._build(main)

    def search(self, queries: Codes, k: int, *, allowed: Mask | None = None) -> RowHits:
        """Find the k nearest rows of each query, ties by key.

        Parameters
        ----------
        queries : ndarray of uint8 of shape (n_queries, n_bytes)
        k : int
        allowed : ndarray of bool of shape (n_rows,), optional
            Rows that may be returned.

        Returns
        -------
        RowHits
            Arrays of shape (n_queries, k), or fewer columns where fewer rows are allowed.
        """
        partitions, rules, n_allowed = self._prepare(allowed)
        k = min(k, n_allowed)
        chunks = _chunks(queries) if k else []
        found = [self._find(partitions, some, k, self.n_bits, rules) for some in chunks]
        hits = found[0] if len(found) == 1 else np.concatenate([NO_KEYS, *found])
        return as_hits(hits.reshape(len(queries), k))

    def within(self, queries: Codes, radius: int, *, allowed: Mask | None = None) -> list[RowHits]:
        """Find every row within `radius` of each query, nearest first, ties by key."""
        partitions, rules, _ = self._prepare(allowed)
        hits: list[RowHits] = []
        for some in _chunks(queries):
            found = self._find(partitions, some, ALL, min(radius, self.n_bits), rules)
            hits += by_query(found, len(some))
        return hits

    def _find(
        self, partitions: Sequence[Partition], queries: Codes, k: int, radius: int, rules: Rules
    ) -> Found:
        """Find the k best rows within `radius`: by tables where they are faster than a scan."""
        if self._search_plainly(partitions, queries):
            return find_plainly(partitions, queries, k, radius, rules)
        bounds = np.full(len(queries), radius + rules.in_order)
        if not self._by_tables(partitions, len(queries), k):
            return scan(partitions, queries, k, bounds, rules, self.threads)
        hits, done = probe(partitions, queries, k, bounds, rules, self.threads)
        if done.all():
            return hits
        left = np.flatnonzero(~done)
        rest = scan(partitions, queries[left], k, bounds[left], rules, self.threads)
        moved = (left - np.arange(len(left))) << QUERY_SHIFT
        return in_order(np.concatenate([hits, rest + moved[rest >> QUERY_SHIFT]]), k, rules)

    def _search_plainly(self, partitions: Sequence[Partition], queries: Codes) -> bool:
        """Say whether to leave a search to numpy: a first one need not wait for numba."""
        if compiled(0):  # it is loaded
            return False
        seconds = PLAIN * queries.size * sum(len(partition.strips) for partition in partitions)
        expected = AGAIN if self._was_searched else 1
        self._was_searched = True
        return not compiled(expected * seconds)

    def _by_tables(self, partitions: Sequence[Partition], n_queries: int, k: int) -> bool:
        """Say whether to look queries up; where there are no tables, see if some are due."""
        main = partitions[0]
        if not self.tables or len(partitions) == 1 or not worth_probing(main, k):
            return False
        if main.tables is None:
            self._keeper.scanned(main, n_queries, self._build)
        return main.tables is not None

    def _build(self, main: Partition) -> None:
        """Build tables, and search by them unless rows have changed meanwhile."""
        built = main.with_tables()
        with self._lock:
            if self._main is main and built is not None:
                self._main = built

    def _prepare(self, allowed: Mask | None) -> tuple[Sequence[Partition], Rules, int]:
        """Bring partitions and rules into the form that answers fastest."""
        with self._lock:  # searches may run in several threads
            if self._tail.n_rows > SMALL_TAIL + self._main.n_rows // 4:
                self._absorb_tail()
            partitions = [self._main, self._tail]
        allowed, n_allowed = self._count_allowed(allowed)
        if allowed is not None and n_allowed * FEW_ALLOWED < self.n_rows:
            rows = np.flatnonzero(allowed)
            partitions, allowed = [one_row_each(self.take(rows), rows)], None
        in_order = self._keys is None and not len(partitions[0].members)
        mask = NO_MASK if allowed is None else allowed
        keys = NO_KEYS if self._keys is None else self._keys
        return partitions, Rules(mask, keys, in_order), n_allowed

    def _settle(self, codes: Codes) -> None:
        """Lay all codes out anew, in the way that suits them."""
        self._main = make_partition(codes).in_order_of(self._keys)
        self._tail = Partition(Strips(self.n_bytes), len(codes))
        self._decided_at = len(codes)

    def _absorb_tail(self) -> None:
        """Make the rows appended lately part of the main partition."""
        if len(self._main.members) or self.n_rows >= 2 * self._decided_at:
            self._settle(self.codes())
            return
        # Others may be searching the strips as they are, or making tables of them.
        strips = Strips(self.n_bytes, self._main.strips.data, len(self._main.strips))
        strips.append(self._tail.all_codes())
        self._main, self._tail = Partition(strips), Partition(Strips(self.n_bytes), len(strips))


def _chunks(queries: Codes) -> list[Codes]:
    """Divide queries into as many at a time as hits tell apart."""
    return [queries[i : i + MAX_QUERIES] for i in range(0, len(queries), MAX_QUERIES)]
