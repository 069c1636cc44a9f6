"""Which kernel compares which codes with which queries."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vdsh.search.gpu import kernels
from vdsh.search.gpu.layout import UNIT, Queries, Span, power_of_two

FEW = 12  # queries up to which bits are compared one query at a time
MANY_BITS = 256  # of a code, at most, as products; longer ones are rare
BLOCK = 1024  # codes
LISTED, QUERIES = 512, 64  # codes that are near, and queries that each is compared with
CHUNK = 1 << 28  # codes that are marked before those that are near are gathered
MOST_LISTED = 1 << 24  # of those that are near, at a time
SHARED = 1 << 17  # bytes of queries at a time
MULTIPLE = 128  # of queries
# Codes and queries of a product, warps, and programs for a processor, as measured on an H200.
MANY, FEWER = (128, 64, 8, 4), (64, 128, 4, 12)
ELSEWHERE = 128, 64, 4
_without_gluon: set[torch.device] = set()


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
        kernels.few[grid](
            planes, planes.stride(0), asked.words, bounds, *given, asked.n_queries, capacity,
            WORDS=n_words, MASKED=masked, BLOCK=BLOCK, PER_UNIT=UNIT // BLOCK, num_warps=4,
        )  # fmt: skip
        return
    for places in _near(planes, asked, bounds, allowed, span):
        tiles = -(-len(places) // LISTED), -(-asked.n_queries // QUERIES)
        kernels.listed[tiles](
            planes[:, places], places, asked.words, bounds, found, counts,
            len(places), asked.n_queries, capacity,
            WORDS=n_words, BLOCK=LISTED, QUERIES=QUERIES, num_warps=4,
        )  # fmt: skip


def _near(
    planes: Tensor, asked: Queries, bounds: Tensor, allowed: Tensor | None, span: Span
) -> Iterator[Tensor]:
    """Find all codes of a span within the bound of some query, and a few that are not.

    One bit gives its place to the bounds, so codes are found that differ there and are one too
    far. Places come in parts.
    """
    n_words = planes.shape[0]
    n_bits = 32 * power_of_two(n_words)
    rows = asked.products(bounds, n_bits, MULTIPLE)
    at_once = SHARED // n_bits
    for first in range(0, span.n_units, CHUNK // UNIT):
        n_units = min(CHUNK // UNIT, span.n_units - first)
        start = span.first + first * span.step
        flags = torch.zeros(n_units * UNIT, dtype=torch.int8, device=planes.device)
        for i in range(0, len(rows), at_once):
            some = rows[i : i + at_once]
            _mark(
                planes, planes.stride(0), some, flags if allowed is None else allowed, flags,
                start, span.stop, span.step, n_units,
                N_QUERIES=len(some), WORDS=n_words, N_BITS=n_bits,
                SLOT=-asked.scale(n_bits), MASKED=allowed is not None,
            )  # fmt: skip
        marked = flags.nonzero()[:, 0]
        for i in range(0, len(marked), MOST_LISTED):
            part = marked[i : i + MOST_LISTED]
            yield start + part // UNIT * span.step + part % UNIT


def _mark(planes: Tensor, *given: Any, N_QUERIES: int, N_BITS: int, **constants: Any) -> None:
    """Run the kernel for this device."""
    *others, n_units = given
    kernel = _hopper(planes.device)
    if kernel is None or planes.device in _without_gluon:
        kernel, (block, tile, warps) = kernels.near, ELSEWHERE
        grid = n_units * (UNIT // block)
    else:
        block, tile, warps, at_once = MANY if N_QUERIES * N_BITS >= 1 << 15 else FEWER
        processors = torch.cuda.get_device_properties(planes.device).multi_processor_count
        grid = min(processors * at_once, n_units * (UNIT // block))
    try:
        kernel[(grid,)](
            planes, *others, n_units * (UNIT // block), N_QUERIES=N_QUERIES, N_BITS=N_BITS,
            BLOCK=block, TILE=tile, PER_UNIT=UNIT // block, num_warps=warps, **constants,
        )  # fmt: skip
    except Exception:  # Gluon is experimental: another Triton may not compile this
        if kernel is kernels.near:
            raise
        _without_gluon.add(planes.device)
        _mark(planes, *given, N_QUERIES=N_QUERIES, N_BITS=N_BITS, **constants)


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
