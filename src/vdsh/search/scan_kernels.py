"""Distances of a strip of codes at once, in vectors that LLVM turns into what the CPU has.

From them, all codes within a radius; `nearest_kernels` keeps the k nearest.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import intrinsic, lowest_bit
from vdsh.search.parts import DISTANCE_SHIFT, IN_CACHE, PLACE, QUERY_SHIFT, STRIP, Found, Part

Whole = Any  # an integer of whatever kind: in kernels they are the same
cgutils: Any = untyped


def _splat(builder: Any, value: Any) -> Any:
    """Repeat a value in every lane of a vector."""
    lanes, index = ir.VectorType(value.type, STRIP), ir.IntType(32)
    empty = ir.Constant(lanes, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, STRIP), None)
    return builder.shuffle_vector(first, first, zeros)


def _call(builder: Any, name: str, result: Any, value: Any) -> Any:
    """Call an LLVM intrinsic of one vector."""
    kind = ir.FunctionType(result, [value.type])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [value])


@intrinsic
def strip_distances(typingctx: Any, data: Any, strip: Any, query: Any, out: Any) -> Any:
    """Write the distances of one strip to a query into `out`; return the smallest.

    LLVM turns the vectors below into whatever the CPU has (NEON, SSE, AVX-512 ...), so the speed
    does not hang on a loop being recognised as vectorisable.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        planes, code, target = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2, 3)
        )
        byte, wide = ir.IntType(8), ir.IntType(64)
        lane = ir.IntType(signature.args[3].dtype.bitwidth)
        bytes_, lanes = ir.VectorType(byte, STRIP), ir.VectorType(lane, STRIP)
        n_planes = builder.extract_value(code.shape, 0)
        first = builder.mul(args[1], n_planes)

        def count(plane: Any) -> Any:
            """Count the differing bits of one byte of every code."""
            offset = builder.mul(builder.add(first, plane), ir.Constant(wide, STRIP))
            pointer = builder.bitcast(builder.gep(planes.data, [offset]), bytes_.as_pointer())
            query_byte = builder.load(builder.gep(code.data, [plane]))
            differing = builder.xor(builder.load(pointer, align=1), _splat(builder, query_byte))
            counts = _call(builder, f"llvm.ctpop.v{STRIP}i8", bytes_, differing)
            return builder.zext(counts, lanes) if lane.width > byte.width else counts

        total = cgutils.alloca_once_value(builder, ir.Constant(lanes, None))
        with cgutils.for_range(builder, n_planes) as loop:
            builder.store(builder.add(builder.load(total), count(loop.index)), total)
        distances = builder.load(total)
        builder.store(distances, builder.bitcast(target.data, lanes.as_pointer()), align=1)
        name = f"llvm.vector.reduce.umin.v{STRIP}i{lane.width}"
        return builder.zext(_call(builder, name, lane, distances), wide)

    return types.int64(data, types.intp, query, out), codegen


@intrinsic
def lanes_up_to(typingctx: Any, distances: Any, limit: Any) -> Any:
    """Set bit i of a 64-bit integer where distance i of a strip is at most `limit`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        lane, wide = ir.IntType(signature.args[0].dtype.bitwidth), ir.IntType(64)
        pointer = builder.bitcast(array.data, ir.VectorType(lane, STRIP).as_pointer())
        bound = _splat(builder, builder.trunc(args[1], lane))
        near = builder.icmp_unsigned("<=", builder.load(pointer, align=1), bound)
        return builder.bitcast(near, wide)

    return types.uint64(distances, types.int64), codegen


@kernel()
def next_near(
    data: Codes, strip: int, end: int, query: Codes, limit: int, scratch: NDArray[Any]
) -> int:
    """Return the first strip from `strip` on with a distance of at most `limit`, else `end`."""
    while strip < end and strip_distances(data, strip, query, scratch) > limit:
        strip += 1
    return strip


@kernel()
def _grown(found: Found) -> Found:
    """Return a copy with twice the room."""
    copy = np.empty(2 * found.size, np.int64)
    for i in range(found.size):
        copy[i] = found[i]
    return copy


@kernel()
def scan_within(
    part: Part, queries: Codes, owners: NDArray[np.int64], radius: int, scratch: NDArray[Any]
) -> Found:
    """Find every position of a part within `radius` of each query.

    `owners` are the numbers under which the queries' hits are reported.
    """
    data, start, stop, _, _, _ = part
    found = np.empty(4 * STRIP, np.int64)
    size = 0
    last = (stop + STRIP - 1) // STRIP
    block = IN_CACHE if queries.shape[0] > 1 else max(last, 1)
    for first in range(start // STRIP, last, block):
        begin, end = max(start, first * STRIP), min(stop, (first + block) * STRIP)
        for q in range(queries.shape[0]):
            found, size = collect(
                data, begin, end, queries[q], owners[q], radius, scratch, found, size
            )
    return found[:size]


@kernel()
def collect(
    data: Codes,
    start: Whole,
    stop: Whole,
    query: Codes,
    owner: Whole,
    radius: int,
    scratch: NDArray[Any],
    found: Found,
    size: int,
) -> tuple[Found, int]:
    """Add the positions of a range within `radius` to the first `size` that were found."""
    end = (stop + STRIP - 1) // STRIP
    strip = next_near(data, start // STRIP, end, query, radius, scratch)
    while strip < end:
        near = lanes_up_to(scratch, radius)
        while near:
            lane = lowest_bit(near)
            near &= near - np.uint64(1)
            position = strip * STRIP + lane
            if start <= position < stop:
                if size == found.size:
                    found = _grown(found)
                distance = np.int64(scratch[lane]) << DISTANCE_SHIFT
                found[size] = (owner << QUERY_SHIFT) | distance | position
                size += 1
        strip = next_near(data, strip + 1, end, query, radius, scratch)
    return found, size


@kernel()
def expand(found: Found, offsets: NDArray[np.uint32], members: NDArray[np.uint32]) -> Found:
    """Replace each position by the rows that lie there."""
    total = np.int64(0)
    for hit in found:
        position = hit & PLACE
        total += np.int64(offsets[position + 1]) - np.int64(offsets[position])
    expanded = np.empty(total, np.int64)
    size = 0
    for hit in found:
        position = hit & PLACE
        for j in range(offsets[position], offsets[position + 1]):
            expanded[size] = (hit - position) | np.int64(members[j])
            size += 1
    return expanded
