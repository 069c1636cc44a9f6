"""Kernels: compiled by numba when they are first called, cached where that can be, and threads.

numba takes half a second and a hundred megabytes to load, more than most single searches. So it is
loaded when a kernel is called, and work that numpy does in a moment is left to numpy: `compiled`
says when the kernels pay.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, update_wrapper
from itertools import pairwise
from threading import RLock
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
T = TypeVar("T")

PRICE = 0.5  # seconds that loading numba takes

_most = 0  # threads that `use_threads` allows; 0 is one a CPU
_spent = 0.0  # seconds that plain numpy took where kernels would have taken hardly any
_lock = RLock()


def compiled(seconds: float) -> bool:
    """Say whether kernels should do a piece of work that takes numpy about so many seconds.

    They should once they are loaded, or when all that was left to numpy has taken as long as
    loading them: then never more than twice the time of the better choice is spent.
    """
    global _spent
    if "numba" in sys.modules:
        return True
    _spent += seconds
    return _spent > PRICE


def load_kernels() -> None:
    """Leave nothing to plain numpy from now on, as in a service, where no query should wait."""
    import numba  # noqa: F401


class Lazy:
    """A function for kernels that is made by numba when it is first needed.

    `make`: gives what stands for the function in compiled code.
    """

    def __init__(self, function: Callable[..., Any], make: Callable[[Any], Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._make = make
        self._made: Any = None
        self._ready: Any = None  # the same, once all that it calls is made too

    def __call__(self, *args: Any) -> Any:
        """Call what numba made of the function."""
        return (self._ready or self.made())(*args)

    def made(self) -> Any:
        """Return what numba made of the function."""
        with _lock:
            if self._ready is None:
                _make_module(self._function.__globals__)
                self._ready = self._made = self._made or self._make(self._function)
            return self._ready

    def _make_own(self) -> Any:
        self._made = self._made or self._make(self._function)
        return self._made


def _make_module(names: dict[str, Any]) -> None:
    """Make all kernels of a module, after those that it has from others.

    numba looks names up in the module, so they must stand for what it made. They change in one
    step: a thread that sees one of them changed may call it, and it calls the others.
    """
    lazy = {name: value for name, value in names.items() if isinstance(value, Lazy)}
    others = {n: value for n, value in lazy.items() if value._function.__globals__ is not names}
    made = {name: value.made() for name, value in others.items()}
    names.update(made | {n: v._make_own() for n, v in lazy.items() if n not in others})


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function for this machine, releasing the GIL; keep the result on disk.

    Where no cache folder is writable (a read-only install without a home) the function is
    compiled anew in each process instead of failing. Kernels assign to arrays item by item: the
    first assignment to a slice costs three seconds of compiling what it says when shapes differ.
    """
    options = {"nogil": True, "cache": True} | options

    def make(function: Any) -> Any:
        from numba import njit

        try:
            return njit(**options)(function)
        except RuntimeError:  # numba: "cannot cache function: no locator available"
            return njit(**(options | {"cache": False}))(function)

    def lazy(function: F) -> F:
        return cast(F, Lazy(function, make))

    return lazy


def vector_code(function: Callable[..., Any]) -> Any:
    """Make numba call `function` to write the LLVM code of an operation it does not have."""

    def make(function: Any) -> Any:
        from numba.extending import intrinsic

        return intrinsic(function)

    return Lazy(function, make)


@vector_code
def popcount(typingctx: Any, value: Any) -> Any:
    """Count the one bits of an unsigned integer; one CPU instruction or two."""
    from numba import types

    if not isinstance(value, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (number,) = args
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [number.type]), [number])

    return value(value), codegen


@vector_code
def lowest_bit(typingctx: Any, value: Any) -> Any:
    """Find the lowest one bit of an unsigned integer of 64 bits, which has one."""
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (number,) = args
        return builder.cttz(number, context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), codegen


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
    global _n_limiting
    with _lock:
        _n_limiting += 1
        if _n_limiting == 1:
            _limit_blas(1)
    try:
        yield
    finally:
        with _lock:
            _n_limiting -= 1
            if not _n_limiting:
                _limit_blas(None)


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


_n_limiting = 0  # who is in `one_thread_each`
_limited: list[Any] = []  # what gives BLAS its threads back


def _limit_blas(threads: int | None) -> None:
    while _limited:
        _limited.pop().restore_original_limits()
    if threads is not None and available_threads() > 1:
        with suppress(ImportError):  # it comes with scikit-learn
            _limited.append(_controller().limit(limits=threads, user_api="blas"))


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=8)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Keep a pool for all calls; a forked child has other threads, so it makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"vdsh-{process}")
