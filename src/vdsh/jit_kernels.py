"""What kernels share: operations of one CPU instruction or two, which numba has no names for."""

from collections.abc import Callable
from typing import Any

import numba.extending
import numpy as np
from numba import types
from numpy.typing import NDArray

from vdsh.jit import kernel


def intrinsic(function: Callable[..., Any]) -> Any:
    """Have numba call `function` to write the LLVM code of an operation that it does not have."""
    return numba.extending.intrinsic(function)


@intrinsic
def popcount(typingctx: Any, value: Any) -> Any:
    """Count the one bits of an unsigned integer."""
    if not isinstance(value, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(*args)

    return value(value), codegen


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """Take a number for an address, for `numba.carray`; whoever asks keeps what lies there."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@intrinsic
def lowest_bit(typingctx: Any, value: Any) -> Any:
    """Find the position of the lowest one bit of a 64-bit integer that is not zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (number,) = args
        return builder.cttz(number, context.get_constant(types.boolean, True))

    return types.int64(types.uint64), codegen


@kernel()
def sort_places(
    order: NDArray[np.int64], values: NDArray[np.float64], keys: NDArray[np.int64]
) -> None:
    """Put places in order, the highest value first, ties by key: a shell sort compiles quickly."""
    gap = 1
    while gap < len(order) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(order)):
            one, j = order[i], i
            while j >= gap:
                other = order[j - gap]
                if values[other] > values[one]:
                    break
                if values[other] == values[one] and keys[other] <= keys[one]:
                    break
                order[j] = other
                j -= gap
            order[j] = one
        gap //= 3
