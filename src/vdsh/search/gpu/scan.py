"""How codes lie in the memory of a GPU, and one scan: all codes within a bound of each query.

Codes lie in planes: one of the first four bytes of all codes, one of the next four, and so on, so
that neighbouring threads read neighbouring words.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vdsh.codes import Codes

UNIT = 4096  # codes that are read together; a sample is made of such units
CHUNK = 1 << 24  # codes that travel at a time
NOTHING = torch.iinfo(torch.int64).max  # where nothing was found
PLACE_BITS = 40  # of what is found: the place below, the distance above


class Span(NamedTuple):
    """Units of codes from a first one on, `step` places from one to the next, up to a stop."""

    first: int
    stop: int
    step: int = UNIT

    @property
    def n_units(self) -> int:
        """How many units are read."""
        return -(-(self.stop - self.first) // self.step)


def products(words: Tensor, bounds: Tensor, n_bits: int, multiple: int) -> Tensor:
    """Write queries as rows whose products with bits of codes are negative where those are far.

    A bit of a code counts 1 where the query has it and -1 where not; the sum is what the query
    has less the distance. The last bit gives its place to what the bound asks for, which a
    code counts -`scale` times. Rows of no query are far from all; there are as many rows as
    make a power of two times a multiple.
    """
    n_rows = multiple * power_of_two(-(-len(words) // multiple))
    bits = to_bits(words)
    rows = bits.new_full((n_rows, n_bits), -1, dtype=torch.int8)
    rows[: len(words), : bits.shape[1]] = (2 * bits - 1).to(torch.int8)
    has = (rows[: len(words), :-1] > 0).sum(1)
    rows[:, -1] = 127
    asked = (has - bounds).div(scale(n_bits), rounding_mode="floor")
    rows[: len(words), -1] = asked.clamp(-128, 127).to(torch.int8)
    return rows


def scale(n_bits: int) -> int:
    """Say how often a code counts what the bound asks for, so that it fits in a byte."""
    return -(-n_bits // 128)


def n_words(n_bytes: int) -> int:
    """Say how many words a code takes."""
    return -(-n_bytes // 4)


def to_words(codes: Codes, device: torch.device) -> Tensor:
    """Bring codes to the device as words, shape (n, n_words)."""
    n, n_bytes = codes.shape
    given = torch.from_numpy(np.ascontiguousarray(codes)).to(device)
    if n_bytes % 4:
        wide = given.new_zeros((n, 4 * n_words(n_bytes)))
        wide[:, :n_bytes] = given
        given = wide
    return given.view(torch.int32)


def to_bits(words: Tensor) -> Tensor:
    """Spread the bits of words, in the order in which kernels take them: every eighth first."""
    bit = torch.arange(32, device=words.device, dtype=torch.int32)
    return (words[:, :, None] >> (bit // 4 + 8 * (bit % 4)) & 1).flatten(1)


def fill(planes: Tensor, first: int, codes: Codes) -> None:
    """Write codes into planes from a place on."""
    for i in range(0, len(codes), CHUNK):
        words = to_words(codes[i : i + CHUNK], planes.device)
        planes[:, first + i : first + i + len(words)] = words.T


def to_codes(planes: Tensor, n_bytes: int) -> Codes:
    """Bring codes back."""
    codes = np.empty((planes.shape[1], n_bytes), np.uint8)
    for i in range(0, len(codes), CHUNK):
        part = planes[:, i : i + CHUNK].T
        words = part.clone(memory_format=torch.contiguous_format).view(torch.uint8)
        codes[i : i + CHUNK] = words[:, :n_bytes].cpu().numpy()
    return codes


def power_of_two(n: int) -> int:
    """Return the least power of two that is not smaller.

    >>> power_of_two(5), power_of_two(8)
    (8, 8)
    """
    return 1 << (n - 1).bit_length()


def scan(
    planes: Tensor,
    asked: Tensor,
    bounds: Tensor,
    span: Span,
    capacity: int,
    allowed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find all codes of a span within a bound of each query.

    `planes` (n_words, n_codes), the words `asked` (n_queries, n_words) and `bounds` (n_queries,)
    are int32; `allowed` (n_codes,) is 1 for codes that may be found. It gives distance and place of
    each hit, in no order, up to `capacity` a query and `NOTHING` behind them; and how many there
    are, which may be more than are kept.
    """
    found = planes.new_full((len(asked), capacity), NOTHING, dtype=torch.int64)
    counts = planes.new_zeros(len(asked))
    launch = _launcher(planes.device)
    launch(planes, asked, bounds, allowed, span, found, counts)
    return found, counts


@cache
def _launcher(device: torch.device) -> Callable[..., None]:
    if device.type == "cuda":
        try:
            from vdsh.search.gpu.kernels import launch
        except ImportError:  # torch for Windows has no Triton
            return _launch_plainly
        return launch
    return _launch_plainly


def _launch_plainly(
    planes: Tensor,
    asked: Tensor,
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
        for q, words in enumerate(asked):
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
