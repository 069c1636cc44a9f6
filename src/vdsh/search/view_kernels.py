"""Kernels that look codes up by row: see `RowIndex.view`."""

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.jit import kernel
from vdsh.jit_kernels import pointer
from vdsh.search.parts import STRIP

Facts = NDArray[np.int64]  # of a `View`
Numbers = NDArray[np.int64]


@kernel()
def take(view: Facts, rows: Numbers) -> tuple[Codes, Numbers]:
    """Give the codes of rows, and keys that sort as their ids do."""
    n_bytes, n_main = view[0], view[1]
    main = carray(pointer(view[6]), (view[2], n_bytes, STRIP), np.uint8)
    tail = carray(pointer(view[7]), (view[3], n_bytes, STRIP), np.uint8)
    positions = carray(pointer(view[8]), view[4], np.uint32)
    sorting = carray(pointer(view[9]), view[5], np.int64)
    codes, keys = np.empty((len(rows), n_bytes), np.uint8), np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        keys[i] = sorting[row] if len(sorting) else row
        strips, at = (main, row) if row < n_main else (tail, row - n_main)
        if row < n_main and len(positions):
            at = np.int64(positions[row])
        for byte in range(n_bytes):
            codes[i, byte] = strips[at // STRIP, byte, at % STRIP]
    return codes, keys
