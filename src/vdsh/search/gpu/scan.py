"""One scan: all codes of a span within a bound of each query."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from vdsh.search.gpu.layout import NOTHING, PLACE_BITS, UNIT, Queries, Span


def scan(
    planes: Tensor,
    asked: Queries,
    bounds: Tensor,
    span: Span,
    capacity: int,
    allowed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find all codes of a span within a bound of each query.

    Parameters
    ----------
    planes : tensor of int32 of shape (n_words, n_codes)
    asked : Queries
    bounds : tensor of int32 of shape (n_queries,)
        The largest distance of each query that counts.
    span : Span
    capacity : int
        What is kept for a query; of more, any.
    allowed : tensor of uint8 of shape (n_codes,), optional
        1 for codes that may be found.

    Returns
    -------
    found : tensor of int64 of shape (n_queries, capacity)
        Distance and place of each, in no order, and `NOTHING` behind them.
    counts : tensor of int32 of shape (n_queries,)
        How many there are, which may be more than are kept.
    """
    found = planes.new_full((asked.n_queries, capacity), NOTHING, dtype=torch.int64)
    counts = planes.new_zeros(asked.n_queries)
    launch = _launcher(planes.device)
    launch(planes, asked, bounds, allowed, span, found, counts)
    return found, counts


@cache
def _launcher(device: torch.device) -> Callable[..., None]:
    if device.type == "cuda":
        try:
            from vdsh.search.gpu.launch import launch
        except ImportError:  # torch for Windows has no Triton
            return _launch_plainly
        return launch
    return _launch_plainly


def _launch_plainly(
    planes: Tensor,
    asked: Queries,
    bounds: Tensor,
    allowed: Tensor | None,
    span: Span,
    found: Tensor,
    counts: Tensor,
) -> None:
    """Do with torch alone what the kernels do."""
    capacity = found.shape[1]
    for start in range(span.first, span.stop, span.step):
        places = torch.arange(start, min(start + UNIT, span.stop), device=planes.device)
        for q, words in enumerate(asked.words):
            differ = planes[:, places] ^ words[:, None]
            distances = _count_bits(differ).sum(0)
            near = distances <= bounds[q]
            if allowed is not None:
                near &= allowed[places] > 0
            hits = (distances[near].long() << PLACE_BITS) | places[near]
            at = int(counts[q])
            room = max(0, capacity - at)
            found[q, at : at + min(room, len(hits))] = hits[:room]
            counts[q] += len(hits)


def _count_bits(words: Tensor) -> Tensor:
    """Count the ones of 32-bit words."""
    wide = words.long() & 0xFFFFFFFF
    wide = wide - (wide >> 1 & 0x55555555)
    wide = (wide & 0x33333333) + (wide >> 2 & 0x33333333)
    wide = wide + (wide >> 4) & 0x0F0F0F0F
    return wide * 0x01010101 >> 24 & 0xFF
