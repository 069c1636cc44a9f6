"""Which codes are near some of many queries, written for Hopper's cores for matrices.

All queries lie in shared memory and codes in registers, so the loop reads nothing: each product of
64 codes and 128 queries runs while the signs of the one before are joined.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _spread(words, shifts):
    """Take every eighth bit of words from a shift on, each as a byte."""
    return gl.inline_asm_elementwise(
        "{ .reg .b32 t; shr.b32 t, $1, $5; and.b32 $0, t, 0x01010101; }",
        "=r,r,r,r,r,r,r,r,r", [words, shifts], dtype=gl.int8, is_pure=True, pack=4,
    )  # fmt: skip


@gluon.jit
def _and3(a, b, c):
    return gl.inline_asm_elementwise(
        "lop3.b32 $0, $1, $2, $3, 0x80;",
        "=r,r,r,r", [a, b, c], dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def _and2(a, b):
    return a & b


@gluon.jit
def _halves(x):
    """Split columns so that each thread has both of a pair."""
    pairs = gl.reshape(x, (x.shape[0], x.shape[1] // 16, 2, 8))
    one, other = gl.split(gl.permute(pairs, (0, 1, 3, 2)))
    return _flat(one), _flat(other)


@gluon.jit
def _flat(x):
    return gl.reshape(x, (x.shape[0], x.shape[1] * x.shape[2]))


@gluon.jit
def _words(planes, plane_size, places, stop, column, empty, WORDS: gl.constexpr):
    """Read the codes at places, the word of each column."""
    words = empty
    for w in gl.static_range(WORDS):
        word = gl.load(planes + w * plane_size.to(gl.int64) + places, mask=places < stop, other=0)
        words = gl.where((column // 32 == w)[None, :], word[:, None], words)
    return words


@gluon.jit
def near(
    planes, plane_size, queries, allowed, flags, first, stop, step, n_blocks,
    N_QUERIES: gl.constexpr, WORDS: gl.constexpr, N_BITS: gl.constexpr, SLOT: gl.constexpr,
    MASKED: gl.constexpr, BLOCK: gl.constexpr, TILE: gl.constexpr, PER_UNIT: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Mark codes that are near some query; as `kernels.near` does."""
    N_TILES: gl.constexpr = N_QUERIES // TILE
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, TILE, 32])
    operand: gl.constexpr = gl.DotOperandLayout(0, mma, 4)
    share: gl.constexpr = gl.NVMMASharedLayout.get_default_for([TILE, N_BITS], gl.int8)
    read: gl.constexpr = gl.BlockedLayout(
        [1, 16], [512 // N_BITS, N_BITS // 16], [num_warps, 1], [1, 0]
    )
    asked = gl.allocate_shared_memory(gl.int8, [N_TILES, TILE, N_BITS], share)
    query = gl.arange(0, TILE, gl.SliceLayout(1, read))
    byte = gl.arange(0, N_BITS, gl.SliceLayout(0, read))
    for tile in gl.static_range(N_TILES):
        rows = (tile * TILE + query)[:, None] * N_BITS
        asked.index(tile).store(gl.load(queries + rows + byte[None, :]))
    fence_async_shared()
    gl.thread_barrier()

    column = gl.arange(0, N_BITS, gl.SliceLayout(0, operand))
    row = gl.arange(0, BLOCK, gl.SliceLayout(1, operand))
    empty = gl.zeros([BLOCK, N_BITS], gl.int32, operand)
    shifts = empty + ((column % 32) // 4)[None, :]
    slot = gl.full([BLOCK, N_BITS], SLOT, gl.int8, operand)
    nothing = gl.zeros([BLOCK, TILE], gl.int32, mma)
    block = gl.program_id(0)
    start = first + (block // PER_UNIT).to(gl.int64) * step + (block % PER_UNIT) * BLOCK
    words = _words(planes, plane_size, start + row, stop, column, empty, WORDS)
    while block < n_blocks:
        codes = gl.where((column == N_BITS - 1)[None, :], slot, _spread(words, shifts))
        here, flag = start, block.to(gl.int64) * BLOCK
        running = warpgroup_mma(
            codes, asked.index(0).permute((1, 0)), nothing, use_acc=False, is_async=True
        )
        block += gl.num_programs(0)
        start = first + (block // PER_UNIT).to(gl.int64) * step + (block % PER_UNIT) * BLOCK
        words = _words(planes, plane_size, start + row, stop, column, empty, WORDS)
        for tile in gl.static_range(1, N_TILES + 1):
            if tile < N_TILES:
                following = warpgroup_mma(
                    codes, asked.index(tile).permute((1, 0)), nothing, use_acc=False, is_async=True
                )
                left = warpgroup_mma_wait(1, deps=[running])
                running = following
            else:
                left = warpgroup_mma_wait(0, deps=[running])
            one, other = _halves(left)
            a, b = _halves(one)
            c, d = _halves(other)
            if tile == 1:
                signs = _and3(a, b, c) & d
            else:
                signs = _and3(_and3(signs, a, b), c, d)
        far = gl.reduce(signs, 1, _and2)
        at = gl.arange(0, BLOCK, far.type.layout)
        hits = (far >= 0) & (here + at < stop)
        if MASKED:
            hits &= gl.load(allowed + here + at, mask=hits, other=0) != 0
        gl.store(flags + flag + at, gl.full([BLOCK], 1, gl.int8, far.type.layout), mask=hits)
