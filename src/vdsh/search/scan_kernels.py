"""Distances of a strip of codes at once, in vectors that LLVM turns into what the CPU has."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import intrinsic
from vdsh.search.parts import STRIP

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
