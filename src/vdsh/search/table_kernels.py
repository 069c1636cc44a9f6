"""Kernels that build tables: what a table reads of codes, sorting by it, entries in strips."""

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.search.strips import STRIP

Order = NDArray[np.uint32]


@kernel()
def read(lut: NDArray[np.uint64], code: Codes) -> np.uint64:
    """Return what a table reads of one code."""
    value = np.uint64(0)
    for byte in range(code.size):
        value |= lut[byte, code[byte]]
    return value


@kernel()
def read_all(data: Codes, n_codes: int, lut: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return what a table reads of every code."""
    values = np.zeros(n_codes, np.uint64)
    for strip in range((n_codes + STRIP - 1) // STRIP):
        first = strip * STRIP
        for byte in range(data.shape[1]):
            for lane in range(min(STRIP, n_codes - first)):
                values[first + lane] |= lut[byte, data[strip, byte, lane]]
    return values


@kernel()
def sort_by_substring(substrings: NDArray[np.uint64], starts: NDArray[np.uint32]) -> Order:
    """List positions by substring: count, add up, put in place."""
    for substring in substrings:
        starts[np.int64(substring) + 1] += 1
    for v in range(starts.size - 1):
        starts[v + 1] += starts[v]
    filled = starts.copy()
    order = np.empty(substrings.size, np.uint32)
    for i in range(substrings.size):
        substring = np.int64(substrings[i])
        order[filled[substring]] = i
        filled[substring] += 1
    return order


@kernel()
def place_entries(values: NDArray[np.uint64], order: Order, planes: Codes) -> None:
    """Write the entries of a table into its strips."""
    n_entry = planes.shape[1]
    for i in range(order.size):
        value = values[order[i]]
        for byte in range(n_entry):
            planes[i // STRIP, n_entry - 1 - byte, i % STRIP] = value & np.uint64(0xFF)
            value >>= np.uint64(8)
