"""What numba kernels share: compilation that is cached when it can be, a bit count, threads."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
T = TypeVar("T")

_most = 0  # threads that `use_threads` allows; 0 is one a CPU


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function for this machine, releasing the GIL; keep the result on disk.

    Where no cache folder is writable (a read-only install without a home) the function is
    compiled anew in each process instead of failing. Kernels assign to arrays item by item: the
    first assignment to a slice costs three seconds of compiling what it says when shapes differ.
    """
    options = {"nogil": True, "cache": True} | options

    def compile_(function: F) -> F:
        try:
            return cast(F, njit(**options)(function))
        except RuntimeError:  # numba: "cannot cache function: no locator available"
            return cast(F, njit(**(options | {"cache": False}))(function))

    return compile_


def _popcount(typingctx: Any, value: Any) -> Any:
    if not isinstance(value, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (number,) = args
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [number.type]), [number])

    return value(value), codegen


# Counts the one bits of an unsigned integer, for use in kernels; one CPU instruction or two.
popcount: Any = intrinsic(_popcount)


def in_threads(function: Callable[[S], T], tasks: Sequence[S], threads: int) -> list[T]:
    """Run tasks at once and return their results in order.

    Kernels release the GIL, so plain threads use all cores. numba's own parallel loops are
    avoided: depending on the threading layer they break after a fork or under two callers.
    `function` must not come back here itself.
    """
    if threads == 1 or len(tasks) == 1:
        return [function(task) for task in tasks]
    return list(_pool(threads, os.getpid()).map(function, tasks))


def spread(function: Callable[[int, int], T], n_items: int, *, least: int = 1) -> list[T]:
    """Call `function(start, stop)` on slices of `range(n_items)`, one thread a core.

    Parameters
    ----------
    least : int
        The smallest slice worth a thread.

    Examples
    --------
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


@lru_cache(maxsize=8)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Keep a pool for all calls; a forked child has other threads, so it makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"vdsh-{process}")
