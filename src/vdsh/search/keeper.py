"""When to build tables, and when to use them."""

import warnings
from collections.abc import Callable
from threading import Thread

from vdsh.search.checks import free_memory, in_words
from vdsh.search.partition import Partition
from vdsh.search.probing import scan_time
from vdsh.search.substrings import MOST, table_shape

LOOK_UP = 4_000_000.0  # nanoseconds of a scan; where it is shorter, it is as good
KEEP = 1_000.0  # nanoseconds more for each code that is to be found
BUILD = 60.0  # nanoseconds that building takes a byte of the codes


class TableKeeper:
    """Builds tables in the background, once scans have taken as long as building does.

    Then the time spent is never more than twice that of the better choice.
    """

    def __init__(self) -> None:
        self._scanned = 0.0
        self._builder: Thread | None = None
        self._refused = False

    def worth(self, partition: Partition, k: int) -> bool:
        """Say whether to look the k nearest up in the tables of a partition."""
        return partition.tables is not None and _scan_time(partition) >= LOOK_UP + KEEP * k

    def scanned(self, partition: Partition, n_queries: int) -> bool:
        """Note that queries were compared with all codes; say if tables are due."""
        time = _scan_time(partition)
        if partition.tables is not None or self._refused or time < LOOK_UP:
            return False
        self._scanned += n_queries * time
        return self._scanned > BUILD * partition.strips.nbytes

    def build(self, partition: Partition, use: Callable[[Partition], None]) -> None:
        """Begin to build tables, if there is memory; `use` takes the partition that has them."""
        if self._builder is not None and self._builder.is_alive():
            return
        self._scanned = 0.0
        needed, free = MOST * partition.strips.nbytes, free_memory()
        n_codes, n_bytes = len(partition.strips), int(partition.strips.data.shape[1])
        self._refused = table_shape(n_bytes, n_codes) is None or needed > free
        if needed > free:
            warnings.warn(
                f"Tables for {n_codes:,} codes need {in_words(needed)} of memory and "
                f"{in_words(free)} are free, so searches read all codes.",
                stacklevel=2,
            )
        if not self._refused:
            self._builder = Thread(target=_build, args=(partition, use), daemon=True)
            self._builder.start()

    def wait(self) -> None:
        """Return when no tables are being built."""
        if self._builder is not None:
            self._builder.join()


def _build(partition: Partition, use: Callable[[Partition], None]) -> None:
    built = partition.with_tables()
    if built is not None:
        use(built)


def _scan_time(partition: Partition) -> float:
    return scan_time(len(partition.strips), int(partition.strips.data.shape[1]))
