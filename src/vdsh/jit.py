"""What numba kernels share: compilation that is cached when it can be, a bit count, threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function for this machine, releasing the GIL; keep the result on disk.

    Where no cache folder is writable (a read-only install without a home) the function is
    compiled anew in each process instead of failing.
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


def spread(function: Callable[[int, int], T], n_items: int, *, least: int = 1) -> list[T]:
    """Call `function(start, stop)` on slices of `range(n_items)`, one thread a core.

    Kernels release the GIL, so plain threads use all cores. numba's own parallel loops are
    avoided: depending on the threading layer they break after a fork or under two callers.
    `function` must not call `spread` itself.

    Parameters
    ----------
    least : int
        The smallest slice worth a thread.

    Examples
    --------
    >>> [pair for part in spread(lambda i, j: [(i, j)], 0) for pair in part]
    [(0, 0)]
    """
    n_threads = max(1, min(os.cpu_count() or 1, n_items // max(1, least)))
    bounds = [n_items * i // n_threads for i in range(n_threads + 1)]
    if n_threads == 1:
        return [function(0, n_items)]
    return list(_pool(os.getpid()).map(function, bounds[:-1], bounds[1:]))


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Keep one pool for all calls; a forked child has other threads, so it makes its own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=f"vdsh-{process}")
