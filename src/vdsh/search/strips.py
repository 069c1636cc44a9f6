"""Where codes lie in memory: strips of 64 codes, each strip byte plane by byte plane.

Byte 0 of sixty-four codes, then byte 1 of the same codes, and so on. A scan reads memory from
front to back, and one vector instruction works on the same byte of many codes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes

STRIP = 64
IN_CACHE = 64  # strips compared with all queries of a block before the scan moves on
NARROW_BITS = 248  # up to here a distance fits one byte

Positions = NDArray[np.int64]


class Strips:
    """A growing array of codes.

    Parameters
    ----------
    n_bytes : int
        Length of a code.
    data : ndarray of shape (n_strips, n_bytes, 64), optional
        Strips already laid out, such as those of a mapped file.
    size : int, default=0
        How many codes `data` holds; the rest of the last strip is room to grow.
    """

    def __init__(self, n_bytes: int, data: Codes | None = None, size: int = 0) -> None:
        self.data = np.zeros((0, n_bytes, STRIP), np.uint8) if data is None else data
        self.size = size

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        """Bytes of memory, room to grow included."""
        return self.data.nbytes

    def append(self, codes: Codes) -> None:
        """Add codes of shape (n, n_bytes) at the end."""
        needed = -(-(self.size + len(codes)) // STRIP)
        if needed > len(self.data):
            # The first codes get just their room; later ones half as much again.
            room = max(needed, len(self.data) * 3 // 2)
            grown = np.zeros((room, *self.data.shape[1:]), np.uint8)
            grown[: len(self.data)] = self.data
            self.data = grown
        first = min(-self.size % STRIP, len(codes))  # they fill the last strip
        last = len(codes) - (len(codes) - first) % STRIP  # the others begin a new one
        self._write(codes[:first])
        strips = codes[first:last].reshape(-1, STRIP, codes.shape[1])
        at = self.size // STRIP
        self.data[at : at + len(strips)] = strips.transpose(0, 2, 1)
        self.size += last - first
        self._write(codes[last:])

    def _write(self, codes: Codes) -> None:
        """Add codes of one strip."""
        strip, lane = divmod(self.size, STRIP)
        if len(codes):
            self.data[strip, :, lane : lane + len(codes)] = codes.T
        self.size += len(codes)

    def take(self, positions: Positions) -> Codes:
        """Gather the codes at some positions, as an array of shape (n, n_bytes)."""
        taken: Codes = self.data[positions // STRIP, :, positions % STRIP]
        return taken

    def all(self) -> Codes:
        """Return all codes, as an array of shape (n, n_bytes)."""
        return self.data.transpose(0, 2, 1).reshape(-1, self.data.shape[1])[: self.size]

    def trimmed(self) -> Codes:
        """Return the strips in use, without room to grow."""
        return self.data[: -(-self.size // STRIP)]


def scratch(n_bytes: int) -> NDArray[Any]:
    """Make room for the distances of a strip, of the smallest type that holds any of them."""
    return np.empty(STRIP, np.uint8 if 8 * n_bytes <= NARROW_BITS else np.uint16)
