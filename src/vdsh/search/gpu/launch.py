"""Which kernel compares which codes with which queries."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vdsh.search.gpu import kernels
from vdsh.search.gpu.scan import UNIT, Queries, Span, power_of_two

FEW = 12  # queries up to which bits are compared one query at a time
MANY_BITS = 256  # of a code, at most, as products; longer ones are rare
BLOCK = 1024  # codes
LISTED, QUERIES = 512, 64  # codes that are near, and queries that each is compared with
CHUNK = 1 << 28  # codes that are marked before those that are near are gathered
MOST_LISTED = 1 << 24  # of those that are near, at a time
AT_ONCE = 1 << 17  # bytes of queries
PRODUCT = {"BLOCK": 128, "TILE": 64, "num_warps": 4}  # codes and queries, as measured on an H200


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
    rows = asked.products(bounds, n_bits, PRODUCT["TILE"])
    at_once, per_unit = AT_ONCE // n_bits, UNIT // PRODUCT["BLOCK"]
    for first in range(0, span.n_units, CHUNK // UNIT):
        n_units = min(CHUNK // UNIT, span.n_units - first)
        start = span.first + first * span.step
        flags = torch.zeros(n_units * UNIT, dtype=torch.int8, device=planes.device)
        for i in range(0, len(rows), at_once):
            some = rows[i : i + at_once]
            kernels.near[(n_units * per_unit,)](
                planes, planes.stride(0), some, flags if allowed is None else allowed, flags,
                start, span.stop, span.step, N_QUERIES=len(some), WORDS=n_words, N_BITS=n_bits,
                SLOT=-asked.scale(n_bits), MASKED=allowed is not None, PER_UNIT=per_unit,
                **PRODUCT,
            )  # fmt: skip
        marked = flags.nonzero()[:, 0]
        for i in range(0, len(marked), MOST_LISTED):
            part = marked[i : i + MOST_LISTED]
            yield start + part // UNIT * span.step + part % UNIT
