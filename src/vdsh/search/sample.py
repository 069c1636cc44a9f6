"""How near the k nearest are, by counting distances in a sample of the codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.search.nearest import Part, Rules
from vdsh.search.strips import STRIP, Whole, lanes_up_to, lowest_bit, next_near

STRETCHES, SAMPLED = 64, 1 / 64  # here and there, since codes with tables are sorted


@kernel()
def sample(
    part: Part, query: Codes, k: int, rules: Rules, scratch: NDArray[Any]
) -> tuple[Whole, Whole]:
    """Return distances within which k rows lie, surely and probably."""
    counts = np.zeros(8 * query.size + 2, np.int64)
    kth, below, data = 8 * query.size + 1, 0, part.data
    step = (part.stop // STRIP) / STRETCHES
    for i in range(STRETCHES):
        strip = int(i * step)
        end = min(strip + int(step * SAMPLED) + 1, part.stop // STRIP)
        strip = next_near(data, strip, end, query, kth - 1, scratch)
        while strip < end:
            near = lanes_up_to(scratch, kth - 1)
            while near:
                lane = lowest_bit(near)
                near &= near - np.uint64(1)
                distance = int(scratch[lane])
                if distance < kth:
                    n_rows = _n_rows(part, strip * STRIP + lane, k, rules)
                    counts[distance] += n_rows
                    below += n_rows
                    while below >= k:
                        kth -= 1
                        below -= counts[kth]
            strip = next_near(data, strip + 1, end, query, kth - 1, scratch)
    guess, n_near = 0, counts[0]
    while n_near < k * SAMPLED and guess < kth:
        guess += 1
        n_near += counts[guess]
    return kth, guess


@kernel()
def _n_rows(part: Part, position: Whole, k: int, rules: Rules) -> Whole:
    """Count the allowed rows at a position, up to k."""
    if part.offsets.size == 0:
        row = part.members[position] if part.members.size else part.base + position
        return 1 if rules.allowed.size == 0 or rules.allowed[row] else 0
    n_rows = 0
    for j in range(part.offsets[position], part.offsets[position + 1]):
        if rules.allowed.size == 0 or rules.allowed[part.members[j]]:
            n_rows += 1
        if n_rows == k:
            break
    return n_rows
