"""Searches by tables, divided among threads.

Queries for which a scan is estimated to be faster come back unanswered.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.partition import Partition
from vdsh.search.parts import Distances, Mask, RowHits, Rows, Rules
from vdsh.search.radius import Found, to_rows
from vdsh.search.strips import STRIP, scratch
from vdsh.search.tables import Tables

# Measured on one core of a Neoverse-N1, in nanoseconds; only their proportions matter.
STRIP_BYTE, BUCKET = 3.5, 250.0
WORTH_SHARING = 32  # so many look-ups take longer than handing them to a thread


def scan_time(n_codes: int, n_bytes: int) -> float:
    """Estimate the nanoseconds in which one thread compares a query with all codes."""
    return STRIP_BYTE * n_bytes * n_codes / STRIP


def search_tables(
    partitions: Sequence[Partition], queries: Codes, k: int, rules: Rules, threads: int
) -> tuple[RowHits, Mask, Rows]:
    """Find the k nearest; say which queries are answered, and within which distance others lie."""
    from vdsh.search.table_search_kernels import nearest_by_tables

    main, tail = partitions
    tables, parts = cast(Tables, main.tables), (main.part(), tail.part())
    n_rows, scan = main.n_rows + tail.n_rows, _scan_time(main, queries, threads)

    def run(some: Codes) -> tuple[Rows, Distances, Mask, Rows]:
        room = scratch(queries.shape[1])
        return nearest_by_tables(tables, parts, some, k, rules, n_rows, scan, room)

    answers = in_threads(run, _shares(queries, threads), threads)
    rows, distances, done, known = (np.concatenate(part) for part in zip(*answers, strict=True))
    return RowHits(rows, distances), done, known


def within_tables(
    main: Partition, queries: Codes, radius: int, rules: Rules, threads: int
) -> tuple[Rows, list[Found]]:
    """Find all within a radius; return the queries that are left to a scan, and the hits."""
    from vdsh.search.table_search_kernels import within_by_tables

    tables, part = cast(Tables, main.tables), main.part()
    everyone, scan = np.arange(len(queries)), _scan_time(main, queries, threads)

    def run(some: Rows) -> tuple[Found, Mask]:
        room = scratch(queries.shape[1])
        found, done = within_by_tables(tables, part.data, queries[some], some, radius, scan, room)
        return to_rows(part, rules.allowed, found), done

    answers = in_threads(run, _shares(everyone, threads), threads)
    done = np.concatenate([done for _, done in answers])
    return everyone[~done], [found for found, _ in answers]


def _shares(queries: NDArray[Any], threads: int) -> list[NDArray[Any]]:
    share = max(WORTH_SHARING, -(-len(queries) // threads))
    return [queries[i : i + share] for i in range(0, len(queries), share)]


def _scan_time(main: Partition, queries: Codes, threads: int) -> float:
    """Estimate the nanoseconds of a scan: few queries have all threads for themselves."""
    helpers = max(1, threads // -(-len(queries) // WORTH_SHARING))
    return scan_time(len(main.strips), queries.shape[1]) / helpers
