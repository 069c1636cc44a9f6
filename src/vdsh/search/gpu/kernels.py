"""Kernels of the scan in Triton, which comes with torch where it has CUDA, and their launch.

`few` compares queries with all codes bit by bit, as fast as memory gives codes. `near` marks codes
that are near some of many queries, as products of matrices, and `listed` compares those.
"""

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from vdsh.search.gpu.scan import UNIT, Span, power_of_two, products, scale

FEW = 12  # queries up to which bits are compared one query at a time
MANY_BITS = 256  # of a code, at most, as products; longer ones are rare
BLOCK = 1024  # codes
LISTED, QUERIES = 512, 64  # codes that are near, and queries that each is compared with
CHUNK = 1 << 28  # codes that are marked before those that are near are gathered
MOST_LISTED = 1 << 24  # of those that are near, at a time
AT_ONCE = 1 << 17  # bytes of queries
PRODUCT = {"BLOCK": 128, "TILE": 64, "num_warps": 4}  # codes and queries, as measured on an H200


@triton.jit
def few(
    planes, plane_size, queries, bounds, allowed, found, counts,
    first, stop, step, n_queries, capacity,
    WORDS: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr, PER_UNIT: tl.constexpr,
):  # fmt: skip
    """Note all codes within the bounds of queries."""
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
def listed(
    codes, places, queries, bounds, found, counts, n_places, n_queries, capacity,
    WORDS: tl.constexpr, BLOCK: tl.constexpr, QUERIES: tl.constexpr,
):  # fmt: skip
    """Note those of some codes that are within the bounds of queries."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < n_places
    first = tl.program_id(1) * QUERIES
    for q in range(first, min(first + QUERIES, n_queries)):
        distances = tl.zeros([BLOCK], tl.int32)
        for w in tl.static_range(WORDS):
            words = tl.load(codes + w * n_places.to(tl.int64) + at, mask=there, other=0)
            distances += libdevice.popc(words ^ tl.load(queries + q * WORDS + w))
        hits = there & (distances <= tl.load(bounds + q))
        one, count = tl.full([BLOCK], 1, tl.int32), counts + q + tl.zeros([BLOCK], tl.int32)
        n = tl.atomic_add(count, one, mask=hits, sem="relaxed")
        packed = (distances.to(tl.int64) << 40) | tl.load(places + at, mask=hits, other=0)
        tl.store(found + q.to(tl.int64) * capacity + n, packed, mask=hits & (n < capacity))


@triton.jit
def near(
    planes, plane_size, queries, allowed, flags, first, stop, step,
    N_QUERIES: tl.constexpr, WORDS: tl.constexpr, N_BITS: tl.constexpr, SLOT: tl.constexpr,
    MASKED: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, PER_UNIT: tl.constexpr,
):  # fmt: skip
    """Mark codes that are near some query."""
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
        rows = tile * TILE + tl.arange(0, TILE)
        asked = tl.load(queries + rows[:, None] * N_BITS + columns[None, :])
        signs &= tl.dot(asked, codes, out_dtype=tl.int32)
    hits = (tl.max(signs, axis=0) >= 0) & inside
    if MASKED:
        hits &= tl.load(allowed + places, mask=hits, other=0) != 0
    tl.store(flags + block * BLOCK + tl.arange(0, BLOCK), 1, mask=hits)


def launch(
    planes: Tensor,
    asked: Tensor,
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
    if len(asked) <= FEW or 32 * n_words > MANY_BITS:
        grid = (span.n_units * (UNIT // BLOCK),)
        few[grid](
            planes, planes.stride(0), asked, bounds, *given, len(asked), capacity,
            WORDS=n_words, MASKED=masked, BLOCK=BLOCK, PER_UNIT=UNIT // BLOCK, num_warps=4,
        )  # fmt: skip
        return
    for places in _near(planes, asked, bounds, allowed, span):
        tiles = -(-len(places) // LISTED), -(-len(asked) // QUERIES)
        listed[tiles](
            planes[:, places], places, asked, bounds, found, counts,
            len(places), len(asked), capacity,
            WORDS=n_words, BLOCK=LISTED, QUERIES=QUERIES, num_warps=4,
        )  # fmt: skip


def _near(
    planes: Tensor, asked: Tensor, bounds: Tensor, allowed: Tensor | None, span: Span
) -> Iterator[Tensor]:
    """Find all codes of a span within the bound of some query, and a few that are not.

    One bit gives its place to the bounds, so codes are found that differ there and are one too
    far. Places come in parts.
    """
    n_words = planes.shape[0]
    n_bits = 32 * power_of_two(n_words)
    rows = products(asked, bounds, n_bits, PRODUCT["TILE"])
    at_once, per_unit = AT_ONCE // n_bits, UNIT // PRODUCT["BLOCK"]
    for first in range(0, span.n_units, CHUNK // UNIT):
        n_units = min(CHUNK // UNIT, span.n_units - first)
        start = span.first + first * span.step
        flags = torch.zeros(n_units * UNIT, dtype=torch.int8, device=planes.device)
        for i in range(0, len(rows), at_once):
            some = rows[i : i + at_once]
            near[(n_units * per_unit,)](
                planes, planes.stride(0), some, flags if allowed is None else allowed, flags,
                start, span.stop, span.step, N_QUERIES=len(some), WORDS=n_words, N_BITS=n_bits,
                SLOT=-scale(n_bits), MASKED=allowed is not None, PER_UNIT=per_unit,
                **PRODUCT,
            )  # fmt: skip
        marked = flags.nonzero()[:, 0]
        for i in range(0, len(marked), MOST_LISTED):
            part = marked[i : i + MOST_LISTED]
            yield start + part // UNIT * span.step + part % UNIT
