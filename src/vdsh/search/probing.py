"""Searches by tables, divided among threads, and when to build tables.

Queries for which a scan is estimated to be faster come back unanswered.
"""

import warnings
from collections.abc import Callable, Sequence
from threading import Thread
from typing import cast

import numpy as np

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.checks import free_memory, in_words
from vdsh.search.partition import Partition
from vdsh.search.parts import ALL, QUERY_SHIFT, STRIP, Found, Mask, Rows, Rules, in_order, scratch
from vdsh.search.tables import MOST, Tables, table_shape

# Measured on one core of a Neoverse-N1, in nanoseconds; only their proportions matter.
STRIP_BYTE, BUCKET = 3.5, 250.0
LOOK_UP = 4_000_000.0  # nanoseconds of a scan; where it is shorter, it is as good
LOOK_UP_ALL = 500_000.0  # of one for all within a radius, which is known from the start
KEEP = 1_000.0  # nanoseconds more for each code that is to be found
BUILD = 60.0  # nanoseconds that building takes a byte of the codes
WORTH_SHARING = 32  # so many look-ups take longer than handing them to a thread


def scan_time(partition: Partition) -> float:
    """Estimate the nanoseconds in which one thread compares a query with all codes."""
    return STRIP_BYTE * int(partition.strips.data.shape[1]) * len(partition.strips) / STRIP


def probe(
    partitions: Sequence[Partition],
    queries: Codes,
    k: int,
    bounds: Rows,
    rules: Rules,
    threads: int,
) -> tuple[Found, Mask]:
    """Find the k best within bounds, in order, and say which queries are answered.

    The bounds are lowered for those who scan for the others.
    """
    from vdsh.search.table_kernels import find_by_tables

    main, tail = partitions
    tables, parts = cast(Tables, main.tables), (main.part(), tail.part())
    scan = shared_scan_time(main, queries, threads)

    def run(first: int) -> tuple[Found, Mask]:
        some = slice(first, first + share)
        given = queries[some], k, rules, bounds[some], scan, scratch(queries.shape[1])
        hits, done = find_by_tables(tables, parts, *given)
        return hits + (first << QUERY_SHIFT) if first else hits, done

    share = max(WORTH_SHARING, -(-len(queries) // threads))
    answers = in_threads(run, range(0, len(queries), share), threads)
    found, done = (np.concatenate(arrays) for arrays in zip(*answers, strict=True))
    return in_order(found, k, rules) if k == ALL else found, done


def shared_scan_time(main: Partition, queries: Codes, threads: int) -> float:
    """Estimate the nanoseconds of a scan: few queries have all threads for themselves."""
    helpers = max(1, threads // -(-len(queries) // WORTH_SHARING))
    return scan_time(main) / helpers


def worth_probing(partition: Partition, k: int) -> bool:
    """Say whether to look the k nearest up in tables of a partition, or ALL within a radius."""
    least = LOOK_UP_ALL if k == ALL else LOOK_UP + KEEP * k
    return scan_time(partition) >= least


class TableKeeper:
    """Builds tables in the background, once scans have taken as long as building does.

    Then the time spent is never more than twice that of the better choice.
    """

    def __init__(self) -> None:
        self._scanned = 0.0
        self._builder: Thread | None = None
        self._refused = False

    def scanned(
        self, partition: Partition, n_queries: int, build: Callable[[Partition], None]
    ) -> None:
        """Note that queries were compared with all codes; build tables if they are due."""
        if self._refused:
            return
        self._scanned += n_queries * scan_time(partition)
        building = self._builder is not None and self._builder.is_alive()
        if building or self._scanned <= BUILD * partition.strips.data.nbytes:
            return
        self._scanned = 0.0
        needed, free = MOST * partition.strips.data.nbytes, free_memory()
        n_codes, n_bytes = len(partition.strips), int(partition.strips.data.shape[1])
        self._refused = table_shape(n_bytes, n_codes) is None or needed > free
        if needed > free:
            warnings.warn(
                f"Tables for {n_codes:,} codes need {in_words(needed)} of memory and "
                f"{in_words(free)} are free, so searches read all codes.",
                stacklevel=2,
            )
        if not self._refused:
            self._builder = Thread(target=build, args=(partition,), daemon=True)
            self._builder.start()

    def wait(self) -> None:
        """Return when no tables are being built."""
        if self._builder is not None:
            self._builder.join()
