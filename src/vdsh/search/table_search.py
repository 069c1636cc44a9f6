"""Many queries looked up in tables, shared out among threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import in_threads
from vdsh.search.look_up import looked_up, looked_up_within
from vdsh.search.nearest import Rows, Rules
from vdsh.search.radius import Found, Mask, to_rows
from vdsh.search.scan import RowHits
from vdsh.search.segment import Segment
from vdsh.search.walk import scan_time

WORTH_SHARING = 32  # so many look-ups take longer than handing them to a thread


def search_tables(
    segments: Sequence[Segment], queries: Codes, k: int, rules: Rules, threads: int
) -> tuple[RowHits, Mask, Rows]:
    """Find the k nearest; say which queries are answered, and within which distance others lie."""
    main, tail = segments
    scan = _scan_time(main, queries, threads)

    def run(some: Codes) -> tuple[RowHits, Mask, Rows]:
        return looked_up(main, tail, some, k, rules, scan)

    hits, done, known = zip(*in_threads(run, _shares(queries, threads), threads), strict=True)
    rows, distances = (np.concatenate(arrays) for arrays in zip(*hits, strict=True))
    return RowHits(rows, distances), np.concatenate(done), np.concatenate(known)


def within_tables(
    main: Segment, queries: Codes, radius: int, rules: Rules, threads: int
) -> tuple[Rows, list[Found]]:
    """Find all within a radius; return the queries that are left to a scan, and the hits."""
    everyone, scan = np.arange(len(queries)), _scan_time(main, queries, threads)

    def run(some: Rows) -> tuple[Found, Mask]:
        found, done = looked_up_within(main, queries[some], some, radius, scan)
        return to_rows(main.part(), rules.allowed, found), done

    answers = in_threads(run, _shares(everyone, threads), threads)
    done = np.concatenate([done for _, done in answers])
    return everyone[~done], [found for found, _ in answers]


def _shares(queries: NDArray[Any], threads: int) -> list[NDArray[Any]]:
    share = max(WORTH_SHARING, -(-len(queries) // threads))
    return [queries[i : i + share] for i in range(0, len(queries), share)]


def _scan_time(main: Segment, queries: Codes, threads: int) -> float:
    """Estimate the nanoseconds of a scan: few queries have all threads for themselves."""
    helpers = max(1, threads // -(-len(queries) // WORTH_SHARING))
    return scan_time(len(main.strips), queries.shape[1]) / helpers
