"""The kernel of the sparse layer."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel

Floats = NDArray[np.float32]
Places = NDArray[np.int32]


@kernel()
def sparse_relu(
    data: Floats,
    indices: Places,
    indptr: Places,
    W: Floats,
    out: Floats,
) -> None:
    """Compute max(0, x @ W + out) for sparse rows x."""
    for i in range(len(out)):
        row = out[i]
        j = indptr[i]
        while j + 4 <= indptr[i + 1]:  # four terms at a time: a quarter of the loads and stores
            w0, w1, w2, w3 = W[indices[j]], W[indices[j + 1]], W[indices[j + 2]], W[indices[j + 3]]
            x0, x1, x2, x3 = data[j], data[j + 1], data[j + 2], data[j + 3]
            for h in range(len(row)):
                row[h] += (x0 * w0[h] + x1 * w1[h]) + (x2 * w2[h] + x3 * w3[h])
            j += 4
        while j < indptr[i + 1]:
            x0, w0 = data[j], W[indices[j]]
            for h in range(len(row)):
                row[h] += x0 * w0[h]
            j += 1
        for h in range(len(row)):
            row[h] = max(row[h], np.float32(0))
