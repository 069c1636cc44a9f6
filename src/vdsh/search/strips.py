"""Where codes lie in memory: strips of 64 codes, each strip byte plane by byte plane.

Byte 0 of sixty-four codes, then byte 1 of the same codes, and so on. A scan reads memory from
front to back, and one vector instruction works on the same byte of many codes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import compiled, kernel, vector_code

STRIP = 64
PLAIN_WRITE = 5e-9  # seconds a byte in numpy
NARROW_BITS = 248  # up to here a distance fits one byte

Positions = NDArray[np.int64]
Whole = Any  # an integer of whatever kind: in kernels they are the same


class Strips:
    """A growing array of codes.

    Parameters
    ----------
    n_bytes : int
        Length of a code.
    data : ndarray of shape (n_strips, n_bytes, 64), optional
        Strips already laid out, such as those of a mapped file.
    size : int, default=0
        How many codes `data` holds; the rest of the last strip is room to grow.
    """

    def __init__(self, n_bytes: int, data: Codes | None = None, size: int = 0) -> None:
        self.data = np.zeros((0, n_bytes, STRIP), np.uint8) if data is None else data
        self.size = size

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        """Bytes of memory, room to grow included."""
        return self.data.nbytes

    def append(self, codes: Codes) -> None:
        """Add codes of shape (n, n_bytes) at the end."""
        needed = -(-(self.size + len(codes)) // STRIP)
        if needed > len(self.data):
            # The first codes get just their room; later ones half as much again.
            room = max(needed, len(self.data) * 3 // 2)
            grown = np.zeros((room, *self.data.shape[1:]), np.uint8)
            grown[: len(self.data)] = self.data
            self.data = grown
        if compiled(PLAIN_WRITE * codes.size):
            _write(self.data, self.size, np.ascontiguousarray(codes))
        else:
            places = np.arange(self.size, self.size + len(codes))
            self.data[places // STRIP, :, places % STRIP] = codes
        self.size += len(codes)

    def take(self, positions: Positions) -> Codes:
        """Gather the codes at some positions, as an array of shape (n, n_bytes)."""
        taken: Codes = self.data[positions // STRIP, :, positions % STRIP]
        return taken

    def trimmed(self) -> Codes:
        """Return the strips in use, without room to grow."""
        return self.data[: -(-self.size // STRIP)]


def distance_type(n_bits: int) -> type[np.uint8] | type[np.uint16]:
    """Choose the smallest integer that holds any distance between two codes."""
    return np.uint8 if n_bits <= NARROW_BITS else np.uint16


@kernel()
def _write(data: Codes, start: int, codes: Codes) -> None:
    for i in range(codes.shape[0]):
        position = start + i
        for p in range(codes.shape[1]):
            data[position // STRIP, p, position % STRIP] = codes[i, p]


def _splat(builder: Any, value: Any) -> Any:
    """Repeat a value in every lane of a vector."""
    from llvmlite import ir

    lanes, index = ir.VectorType(value.type, STRIP), ir.IntType(32)
    empty = ir.Constant(lanes, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, STRIP), None)
    return builder.shuffle_vector(first, first, zeros)


def _call(builder: Any, name: str, result: Any, value: Any) -> Any:
    """Call an LLVM intrinsic of one vector."""
    from llvmlite import ir
    from numba.core import cgutils as untyped

    cgutils: Any = untyped

    kind = ir.FunctionType(result, [value.type])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [value])


@vector_code
def strip_distances(typingctx: Any, data: Any, strip: Any, query: Any, out: Any) -> Any:
    """Write the distances of one strip to a query into `out`; return the smallest.

    LLVM turns the vectors below into whatever the CPU has (NEON, SSE, AVX-512 ...), so the speed
    does not hang on a loop being recognised as vectorisable.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils as untyped

    cgutils: Any = untyped

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


@vector_code
def lanes_up_to(typingctx: Any, distances: Any, limit: Any) -> Any:
    """Set bit i of a 64-bit integer where distance i of a strip is at most `limit`."""
    from llvmlite import ir
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        lane, wide = ir.IntType(signature.args[0].dtype.bitwidth), ir.IntType(64)
        pointer = builder.bitcast(array.data, ir.VectorType(lane, STRIP).as_pointer())
        bound = _splat(builder, builder.trunc(args[1], lane))
        near = builder.icmp_unsigned("<=", builder.load(pointer, align=1), bound)
        return builder.bitcast(near, wide)

    return types.uint64(distances, types.int64), codegen


@vector_code
def lowest_bit(typingctx: Any, value: Any) -> Any:
    """Find the position of the lowest set bit of a 64-bit integer that is not zero."""
    from llvmlite import ir
    from numba import types

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@kernel()
def next_near(
    data: Codes, strip: int, end: int, query: Codes, limit: int, scratch: NDArray[Any]
) -> int:
    """Return the first strip from `strip` on with a distance of at most `limit`, else `end`."""
    while strip < end and strip_distances(data, strip, query, scratch) > limit:
        strip += 1
    return strip
