"""Kernels of the scan in Triton, which comes with torch where it has CUDA.

Few queries are compared with all codes bit by bit, as fast as memory gives codes; many only with
codes that are near some of them, which `near` finds as products of matrices.
"""

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from vdsh.search.gpu.layout import UNIT, Queries, Span
from vdsh.search.gpu.near import near

FEW = 12  # queries up to which bits are compared one query at a time
MANY_BITS = 256  # of a code, at most, as products; longer ones are rare
BLOCK = 1024  # codes
LISTED, QUERIES = 512, 64  # codes that are near, and queries that each is compared with


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
def _listed(
    codes, places, queries, bounds, found, counts, n_places, n_queries, capacity,
    WORDS: tl.constexpr, BLOCK: tl.constexpr, QUERIES: tl.constexpr,
):  # fmt: skip
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


def launch(
    planes: Tensor,
    asked: Queries,
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
    if asked.n_queries <= FEW or 32 * n_words > MANY_BITS:
        grid = (span.n_units * (UNIT // BLOCK),)
        _few[grid](
            planes, planes.stride(0), asked.words, bounds, *given, asked.n_queries, capacity,
            WORDS=n_words, MASKED=masked, BLOCK=BLOCK, PER_UNIT=UNIT // BLOCK, num_warps=4,
        )  # fmt: skip
        return
    for places in near(planes, asked, bounds, allowed, span):
        grid = (triton.cdiv(len(places), LISTED), triton.cdiv(asked.n_queries, QUERIES))
        _listed[grid](
            planes[:, places], places, asked.words, bounds, found, counts,
            len(places), asked.n_queries, capacity,
            WORDS=n_words, BLOCK=LISTED, QUERIES=QUERIES, num_warps=4,
        )  # fmt: skip
