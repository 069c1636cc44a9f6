"""When to build tables, and when to use them."""

import warnings
from collections.abc import Callable
from threading import Thread

from vdsh.search.checks import free_memory, in_words
from vdsh.search.pieces import MOST, table_shape
from vdsh.search.segment import Segment
from vdsh.search.walk import scan_time

LOOK_UP = 4_000_000.0  # nanoseconds of a scan; where it is shorter, it is as good
KEEP = 1_000.0  # nanoseconds more for each code that is to be found
BUILD = 60.0  # nanoseconds that building takes a byte of the codes
PATIENCE, LONGEST_REST = 4, 64  # calls in a row that may fail; queries


class TableKeeper:
    """Builds tables once scans have taken as long as building does, and rests where they fail.

    Then the time spent is never more than twice that of the better choice. Tables are built in the
    background. Where one call after the other turns out to be faster by a scan, the next queries
    are scanned at once: one, then two, then four, until tables answer again.
    """

    def __init__(self) -> None:
        self._scanned = 0.0
        self._builder: Thread | None = None
        self._refused = False
        self._failed = self._resting = 0

    def worth(self, segment: Segment, n_queries: int, k: int) -> bool:
        """Say whether to look the k nearest up in the tables of a segment."""
        if segment.tables is None or _scan_time(segment) < LOOK_UP + KEEP * k:
            return False
        self._resting -= n_queries
        return self._resting < 0

    def answered(self, n_queries: int) -> None:
        """Note how many queries of a call the tables have answered."""
        self._failed = 0 if n_queries else self._failed + 1
        long = min(self._failed - PATIENCE, LONGEST_REST.bit_length() - 1)
        self._resting = 0 if long < 0 else 1 << long

    def scanned(self, segment: Segment, n_queries: int) -> bool:
        """Note that queries were compared with all codes of a segment; say if tables are due."""
        if segment.tables is not None or self._refused or _scan_time(segment) < LOOK_UP:
            return False
        self._scanned += n_queries * _scan_time(segment)
        return self._scanned > BUILD * segment.strips.nbytes

    def build(self, segment: Segment, use: Callable[[Segment], None]) -> None:
        """Begin to build tables for a segment, if there is memory; `use` takes what was built."""
        if self._builder is not None and self._builder.is_alive():
            return
        self._scanned = 0.0
        needed, free = MOST * segment.strips.nbytes, free_memory()
        n_codes, n_bytes = len(segment.strips), int(segment.strips.data.shape[1])
        self._refused = table_shape(n_bytes, n_codes) is None or needed > free
        if needed > free:
            warnings.warn(
                f"Tables for {n_codes:,} codes need {in_words(needed)} of memory and "
                f"{in_words(free)} are free, so searches read all codes.",
                stacklevel=2,
            )
        if not self._refused:
            self._builder = Thread(target=_build, args=(segment, use), daemon=True)
            self._builder.start()

    def wait(self) -> None:
        """Return when no tables are being built."""
        if self._builder is not None:
            self._builder.join()


def _build(segment: Segment, use: Callable[[Segment], None]) -> None:
    built = segment.with_tables()
    if built is not None:
        use(built)


def _scan_time(segment: Segment) -> float:
    return scan_time(len(segment.strips), int(segment.strips.data.shape[1]))
