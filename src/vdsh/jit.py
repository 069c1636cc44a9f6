"""Kernels, compiled by numba, and threads.

numba takes half a second and a hundred megabytes to load, more than most single searches. So
kernels are in files of their own (`*_kernels.py`), which are imported where they pay: `compiled`
says where. Smaller work is left to numpy.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, lru_cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
T = TypeVar("T")

WORTH = 0.05  # seconds of numpy that are worth loading numba, which takes ten times as long

_most = 0  # threads that `use_threads` allows; 0 is one a CPU
_lock = Lock()


class once(cached_property[T]):
    """Compute an attribute when it is first asked for, and keep it.

    Up to Python 3.11 `cached_property` has one lock for all objects of a class: a slow filter
    would hold up all searches, and loading a model could wait for itself.
    """

    def __init__(self, work: Callable[[Any], T]) -> None:
        super().__init__(work)
        self.lock: Any = nullcontext()


def compiled(seconds: float) -> bool:
    """Say whether kernels should do a piece of work that takes numpy about so many seconds."""
    return seconds > WORTH or "numba" in sys.modules


def load_kernels() -> None:
    """Leave nothing to plain numpy from now on, as in a service, where no query should wait."""
    import numba  # noqa: F401


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function for this machine, releasing the GIL; keep the result on disk.

    Where no cache folder is writable (a read-only install without a home) the function is
    compiled anew in each process instead of failing. Kernels assign to arrays item by item: the
    first assignment to a slice costs three seconds of compiling what it says when shapes differ.
    """
    from numba import njit

    options = {"nogil": True, "cache": True} | options

    def make(function: F) -> F:
        try:
            return cast(F, njit(**options)(function))
        except RuntimeError:  # numba: "cannot cache function: no locator available"
            return cast(F, njit(**(options | {"cache": False}))(function))

    return make


def in_threads(function: Callable[[S], T], tasks: Sequence[S], threads: int) -> list[T]:
    """Run tasks at once and return their results in order.

    Kernels release the GIL, so plain threads use all cores. numba's own parallel loops are
    avoided: depending on the threading layer they break after a fork or under two callers.
    `function` must not come back here itself.
    """
    if threads == 1 or len(tasks) == 1:
        return [function(task) for task in tasks]
    return list(_pool(threads, os.getpid()).map(function, tasks))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Have BLAS use one thread for each of ours: its own would wait for each other in between."""
    global _n_limiting, _limited
    with _lock:
        _n_limiting += 1
        if _n_limiting == 1:
            blas = _controller("scipy.linalg" in sys.modules)
            _limited = blas.limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_limiting -= 1
            if not _n_limiting:
                _limited.restore_original_limits()


def spread(function: Callable[[int, int], T], n_items: int, *, least: int = 1) -> list[T]:
    """Call `function(start, stop)` on slices of `range(n_items)`, one thread a core.

    `least`: the smallest slice worth a thread.

    >>> spread(lambda start, stop: (start, stop), 0)
    [(0, 0)]
    """
    threads = available_threads()
    n_slices = max(1, min(threads, n_items // max(1, least)))
    bounds = [n_items * i // n_slices for i in range(n_slices + 1)]
    return in_threads(lambda slice_: function(*slice_), list(pairwise(bounds)), threads)


def use_threads(most: int) -> None:
    """Use at most so many threads in this process from now on, as where others share its CPUs."""
    global _most
    _most = most


def available_threads() -> int:
    """Count the CPUs this process may use."""
    if _most:
        return _most
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_n_limiting = 0  # who is in `one_thread_each`
_limited: Any = None  # what gives BLAS its threads back


@lru_cache(maxsize=2)
def _controller(with_scipy: bool) -> Any:
    """Find the BLAS of numpy, and scipy's own where that is loaded: it takes ten milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=8)
def _pool(threads: int, process: int) -> "ThreadPoolExecutor":
    """Keep a pool for all calls; a forked child has other threads, so it makes its own."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=f"vdsh-{process}")
