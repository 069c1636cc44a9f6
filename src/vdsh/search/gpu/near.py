"""Which codes are near some of many queries, as products on the cores for matrices."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from vdsh.search.gpu.layout import UNIT, Queries, Span

CHUNK = 1 << 28  # codes that are marked before those that are near are gathered
SHARED = 1 << 17  # bytes of queries at a time
MULTIPLE = 128  # of queries


@triton.jit
def _near(
    planes, plane_size, queries, allowed, flags, first, stop, step, n_blocks,
    N_QUERIES: tl.constexpr, WORDS: tl.constexpr, N_BITS: tl.constexpr, SLOT: tl.constexpr,
    MASKED: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, PER_UNIT: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    start = first + (block // PER_UNIT) * step + (block % PER_UNIT) * BLOCK
    places = start + tl.arange(0, BLOCK)
    inside = places < stop
    plane = tl.arange(0, N_BITS // 32)
    words = tl.load(planes + plane.to(tl.int64)[:, None] * plane_size + places[None, :],
                    mask=(plane < WORDS)[:, None] & inside[None, :], other=0)  # fmt: skip
    bit = tl.arange(0, 32)
    bits = (words[:, None, :] >> (bit // 4 + 8 * (bit % 4))[None, :, None]) & 1
    columns = tl.arange(0, N_BITS)
    codes = tl.reshape(bits, (N_BITS, BLOCK))
    codes = tl.where((columns == N_BITS - 1)[:, None], SLOT, codes).to(tl.int8)
    signs = tl.full([TILE, BLOCK], -1, tl.int32)
    for tile in range(N_QUERIES // TILE):
        rows = tile * (TILE) + tl.arange(0, TILE)
        asked = tl.load(queries + rows[:, None] * N_BITS + columns[None, :])
        signs &= tl.dot(asked, codes, out_dtype=tl.int32)
    hits = (tl.max(signs, axis=0) >= 0) & inside
    if MASKED:
        hits &= tl.load(allowed + places, mask=hits, other=0) != 0
    tl.store(flags + block * BLOCK + tl.arange(0, BLOCK), 1, mask=hits)


def near(
    planes: Tensor, asked: Queries, bounds: Tensor, allowed: Tensor | None, span: Span
) -> Iterator[Tensor]:
    """Find all codes of a span within the bound of some query, and a few that are not.

    One bit gives its place to the bounds, so codes are found that differ there and are one too
    far. Places come in parts.
    """
    n_words = planes.shape[0]
    n_bits = 32 * triton.next_power_of_2(n_words)
    rows = asked.products(bounds, n_bits, MULTIPLE)
    at_once = SHARED // n_bits
    for first in range(0, span.n_units, CHUNK // UNIT):
        n_units = min(CHUNK // UNIT, span.n_units - first)
        start = span.first + first * span.step
        flags = torch.zeros(n_units * UNIT, dtype=torch.int8, device=planes.device)
        for i in range(0, len(rows), at_once):
            some = rows[i : i + at_once]
            _launch(
                planes, planes.stride(0), some, flags if allowed is None else allowed, flags,
                start, span.stop, span.step, n_units,
                N_QUERIES=len(some), WORDS=n_words, N_BITS=n_bits,
                SLOT=-asked.scale(n_bits), MASKED=allowed is not None,
            )  # fmt: skip
        marked = flags.nonzero()[:, 0]
        if len(marked):
            yield start + marked // UNIT * span.step + marked % UNIT


def _launch(planes: Tensor, *given: Any, N_QUERIES: int, N_BITS: int, **constants: Any) -> None:
    """Run the kernel for this device, with sizes that were measured on an H200."""
    *given, n_units = given
    kernel = _hopper(planes.device)
    if kernel is None:
        kernel, block, tile, warps, grid = _near, 128, 64, 4, n_units * (UNIT // 128)
    else:
        fits = N_QUERIES * N_BITS <= SHARED // 2  # in shared memory, three times
        block, warps, at_once = (64, 4, 6) if fits else (128, 8, 2)
        tile = 128 if N_BITS <= 64 else 64
        processors = torch.cuda.get_device_properties(planes.device).multi_processor_count
        grid = min(processors * at_once, n_units * (UNIT // block))
    kernel[(grid,)](
        planes, *given, n_units * (UNIT // block), N_QUERIES=N_QUERIES, N_BITS=N_BITS,
        BLOCK=block, TILE=tile, PER_UNIT=UNIT // block, num_warps=warps, **constants,
    )  # fmt: skip


@cache
def _hopper(device: torch.device) -> Any:
    """Return the kernel for Hopper, where there is one."""
    if torch.cuda.get_device_capability(device) != (9, 0):
        return None
    try:
        from vdsh.search.gpu.hopper import near as kernel
    except ImportError:  # an older Triton
        return None
    return kernel
