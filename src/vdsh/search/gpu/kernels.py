"""Kernels of the scan in Triton, which comes with torch where it has CUDA.

Each block of codes is read once and compared with all queries. Few queries are compared bit by
bit, as fast as memory gives codes; many as products of signs, on the cores for matrices.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from vdsh.search.gpu.layout import UNIT, Span

FEW = 12  # queries up to which bits are compared one query at a time
MANY_BITS = 256  # of a code, at most, as products; longer ones do not fit beside each other
BLOCK, TILE_CODES, TILE_QUERIES = 1024, 128, 64  # measured on an H200


@triton.jit
def _few(
    planes, plane_size, queries, bounds, allowed, found, counts,
    first, stop, step, n_queries, capacity,
    WORDS: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr, PER_UNIT: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    start = first + (block // PER_UNIT) * step + (block % PER_UNIT) * BLOCK
    places = start + tl.arange(0, BLOCK)
    inside = places < stop
    if MASKED:
        inside &= tl.load(allowed + places, mask=inside, other=0) != 0
    for q in range(n_queries):
        distances = tl.zeros([BLOCK], tl.int32)
        for w in tl.static_range(WORDS):
            plane = planes + w * plane_size.to(tl.int64)
            words = tl.load(plane + places, mask=inside, other=0)
            distances += libdevice.popc(words ^ tl.load(queries + q * WORDS + w))
        hits = (inside & (distances <= tl.load(bounds + q))).to(tl.int32)
        n_hits = tl.sum(hits)
        if n_hits > 0:
            at = tl.atomic_add(counts + q, n_hits) + tl.cumsum(hits) - 1
            packed = (distances.to(tl.int64) << 40) | places
            wanted = (hits > 0) & (at < capacity)
            tl.store(found + q.to(tl.int64) * capacity + at, packed, mask=wanted)


@triton.jit
def _many(
    planes, plane_size, queries, bounds, allowed, found, counts,
    first, stop, step, n_tiles, capacity,
    WORDS: tl.constexpr, PADDED: tl.constexpr, MASKED: tl.constexpr,
    BLOCK: tl.constexpr, TILE: tl.constexpr, PER_UNIT: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    start = first + (block // PER_UNIT) * step + (block % PER_UNIT) * BLOCK
    places = start + tl.arange(0, BLOCK)
    inside = places < stop
    if MASKED:
        inside &= tl.load(allowed + places, mask=inside, other=0) != 0
    plane = tl.arange(0, PADDED)
    there = (plane < WORDS)[:, None] & inside[None, :]
    words = tl.load(planes + plane.to(tl.int64)[:, None] * plane_size + places[None, :],
                    mask=there, other=0)  # fmt: skip
    bits = (words[:, None, :] >> tl.arange(0, 32)[None, :, None]) & 1
    signs = tl.reshape(2 * bits - 1, (PADDED * 32, BLOCK)).to(tl.int8)
    columns = tl.arange(0, PADDED * 32)
    # Signs that agree minus those that do not are the length of a code less twice the distance.
    # What the bound asks for is taken off before: only where nothing is left the sign bit stays.
    signs_left = tl.full([TILE, BLOCK], -1, tl.int32)
    for tile in range(n_tiles):
        rows = tile * TILE + tl.arange(0, TILE)
        asked = tl.load(queries + rows[:, None] * (PADDED * 32) + columns[None, :])
        least = PADDED * 32 - 2 * tl.load(bounds + rows)
        owed = tl.zeros([TILE, BLOCK], tl.int32) - least[:, None]
        signs_left &= tl.dot(asked, signs, acc=owed, out_dtype=tl.int32)
    if tl.max(signs_left) >= 0:
        for tile in range(n_tiles):
            rows = tile * TILE + tl.arange(0, TILE)
            asked = tl.load(queries + rows[:, None] * (PADDED * 32) + columns[None, :])
            least = PADDED * 32 - 2 * tl.load(bounds + rows)
            products = tl.dot(asked, signs, out_dtype=tl.int32)
            if tl.max(products - least[:, None]) >= 0:
                hits = ((products >= least[:, None]) & inside[None, :]).to(tl.int32)
                n_hits = tl.sum(hits, axis=1)
                before = tl.atomic_add(counts + rows, n_hits, mask=n_hits > 0)
                at = before[:, None] + tl.cumsum(hits, axis=1) - 1
                distances = (PADDED * 32 - products) // 2
                packed = (distances.to(tl.int64) << 40) | places[None, :]
                wanted = (hits > 0) & (at < capacity)
                kept = found + rows.to(tl.int64)[:, None] * capacity + at
                tl.store(kept, packed, mask=wanted)


def launch(
    planes: Tensor,
    asked: Any,
    bounds: Tensor,
    allowed: Tensor | None,
    span: Span,
    found: Tensor,
    counts: Tensor,
) -> None:
    """Note all codes of a span within the bounds of queries; `scan` says how."""
    n_words, capacity = planes.shape[0], found.shape[1]
    mask = counts if allowed is None else allowed  # any address, where it is not read
    given = (mask, found, counts, span.first, span.stop, span.step)
    masked = allowed is not None
    padded = triton.next_power_of_2(n_words)
    if asked.n_queries <= FEW or 32 * padded > MANY_BITS:
        grid = (span.n_units * (UNIT // BLOCK),)
        _few[grid](
            planes, planes.stride(0), asked.words, bounds, *given, asked.n_queries, capacity,
            WORDS=n_words, MASKED=masked, BLOCK=BLOCK, PER_UNIT=UNIT // BLOCK, num_warps=4,
        )  # fmt: skip
        return
    signs = asked.signs(32 * padded, TILE_QUERIES)
    grid = (span.n_units * (UNIT // TILE_CODES),)
    _many[grid](
        planes, planes.stride(0), signs, bounds, *given, len(signs) // TILE_QUERIES, capacity,
        WORDS=n_words, PADDED=padded, MASKED=masked, BLOCK=TILE_CODES, TILE=TILE_QUERIES,
        PER_UNIT=UNIT // TILE_CODES, num_warps=4,
    )  # fmt: skip
