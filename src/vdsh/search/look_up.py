"""Searches that walk over tables: the k nearest, all within a radius, many among threads."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import in_threads, kernel
from vdsh.search.nearest import (
    KTH,
    NO_KEY,
    Best,
    Distances,
    Part,
    Rows,
    Rules,
    empty_best,
    finish,
    scan_stretch,
)
from vdsh.search.radius import Found, Mask, collect, to_rows
from vdsh.search.sample import SAMPLED, sample
from vdsh.search.scan import RowHits
from vdsh.search.segment import Segment
from vdsh.search.strips import STRIP, Whole, distance_type
from vdsh.search.tables import Tables
from vdsh.search.walk import (
    AT_HAND,
    STRIP_BYTE,
    Waiting,
    Walk,
    begin_walk,
    end_step,
    first_time,
    met_within,
    new_walk,
    next_buckets,
    scan_time,
    stretch,
    take_step,
    time_left,
)

WORTH = 0.7  # share of a scan's time within which a walk should end
WAITING = 512  # buckets put in order before they are scanned
VISIT = 600.0  # nanoseconds to begin with a bucket

WORTH_SHARING = 32  # so many look-ups take longer than handing them to a thread


def looked_up(
    main: Segment, tail: Segment, queries: Codes, k: int, rules: Rules, scan: float
) -> tuple[RowHits, Mask, Rows]:
    """Find the k best rows of each query; say which are answered, and how far the k best are."""
    scratch = np.empty(STRIP, distance_type(8 * queries.shape[1]))
    parts, n_rows = (main.part(), tail.part()), main.n_rows + tail.n_rows
    rows, distances, done, bounds = nearest_by_tables(
        cast(Tables, main.tables), parts, queries, k, rules, n_rows, scan, scratch
    )
    return RowHits(rows, distances), done, bounds


def looked_up_within(
    main: Segment, queries: Codes, owners: Rows, radius: int, scan: float
) -> tuple[Found, Mask]:
    """Find the positions within `radius` of each query, and say which queries were answered."""
    scratch = np.empty(STRIP, distance_type(8 * queries.shape[1]))
    radius = min(radius, 8 * queries.shape[1])
    found, done = within_by_tables(
        cast(Tables, main.tables), main.strips.data, queries, owners, radius, scan, scratch
    )
    return found, done


@kernel()
def within_by_tables(
    tables: Tables,
    data: Codes,
    queries: Codes,
    owners: Rows,
    radius: int,
    scan: float,
    scratch: NDArray[Any],
) -> tuple[Found, Mask]:
    """Find every position within `radius`, for those queries whose walk is shorter than a scan."""
    found, size, walk = np.empty(STRIP, np.int64), 0, new_walk(tables)
    done, waiting = np.zeros(queries.shape[0], np.bool_), np.empty((2, WAITING), np.int64)
    for q in range(queries.shape[0]):
        begin_walk(walk, tables, queries[q])
        if time_left(walk, tables, radius) > WORTH * scan:
            continue
        while met_within(walk) < radius:
            take_step(walk, tables)
            n_waiting = WAITING
            while n_waiting == WAITING:
                n_waiting = next_buckets(walk, tables, radius, waiting)
                for i in range(n_waiting):
                    if first_time(walk, waiting[0, i]):
                        start, stop = stretch(tables, waiting[0, i])
                        found, size = collect(
                            data, start, stop, queries[q], owners[q], radius, scratch, found, size
                        )
            end_step(walk, tables)
        done[q] = True
    return found[:size], done


@kernel()
def nearest_by_tables(
    tables: Tables,
    parts: tuple[Part, Part],
    queries: Codes,
    k: int,
    rules: Rules,
    n_rows: int,
    scan: float,
    scratch: NDArray[Any],
) -> tuple[Rows, Distances, Mask, Rows]:
    """Find the k best rows of two parts, the first of which has tables.

    Returns
    -------
    rows, distances : ndarray of shape (n_queries, k)
    done : ndarray of bool of shape (n_queries,)
        Queries that were answered; for others a scan is faster.
    bounds : ndarray of int64 of shape (n_queries,)
        Distances within which k rows lie.
    """
    best = empty_best(queries, k, n_rows, scratch)
    done, bounds = np.zeros(queries.shape[0], np.bool_), np.zeros(queries.shape[0], np.int64)
    walk, status = new_walk(tables), best.status
    waiting = np.empty((2, WAITING), np.int64)
    main, tail = parts
    for q in range(queries.shape[0]):
        query = queries[q : q + 1]
        begin_walk(walk, tables, queries[q])
        scan_stretch(tail, tail.start, tail.stop, q, query, k, rules, best)
        limit, guess = status[q, KTH], 8 * queries.shape[1] + 1
        while limit > met_within(walk):
            wanted = min(limit, max(guess, met_within(walk) + 1))
            if walk.radii[0] >= AT_HAND and (
                walk.spent[0] + time_left(walk, tables, wanted) > WORTH * scan
            ):
                if guess <= 8 * queries.shape[1]:
                    break
                bound, guess = sample(main, queries[q], k, rules, scratch)
                limit = min(limit, bound)
                walk.spent[0] += SAMPLED * scan
                continue
            take_step(walk, tables)
            _follow(walk, tables, waiting, main, q, query, k, limit, rules, best)
            end_step(walk, tables)
            limit = min(limit, status[q, KTH])
        done[q], bounds[q] = limit <= met_within(walk), limit
    rows, found = finish(k, rules, best)
    return rows, found, done, bounds


@kernel()
def _follow(
    walk: Walk,
    tables: Tables,
    waiting: Waiting,
    main: Part,
    q: int,
    query: Codes,
    k: int,
    limit: Whole,
    rules: Rules,
    best: Best,
) -> None:
    """Scan the buckets of one step."""
    size = WAITING
    while size == WAITING:
        limit = min(limit, best.status[q, KTH])
        size = next_buckets(walk, tables, limit, waiting)
        _visit(walk, tables, waiting[:, :size], main, q, query, k, limit, rules, best)


@kernel()
def _visit(
    walk: Walk,
    tables: Tables,
    waiting: Waiting,
    main: Part,
    q: int,
    query: Codes,
    k: int,
    limit: Whole,
    rules: Rules,
    best: Best,
) -> None:
    """Scan buckets, those that seem nearest first: others may then be too far."""
    status = best.status
    strip_cost = STRIP_BYTE * query.shape[1]
    distance, cost = np.int64(0), 0.0
    while distance <= min(limit, status[q, KTH]):
        following = np.int64(NO_KEY)
        for i in range(waiting.shape[1]):
            if waiting[1, i] == distance:
                bucket = waiting[0, i]
                if first_time(walk, bucket):
                    start, stop = stretch(tables, bucket)
                    scan_stretch(main, start, stop, q, query, k, rules, best)
                    cost += VISIT + strip_cost * ((stop - start) // STRIP + 1)
            elif waiting[1, i] > distance:
                following = min(following, waiting[1, i])
        distance = following
    walk.spent[0] += cost


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
