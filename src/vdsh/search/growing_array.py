"""`GrowingArray`, of what an index keeps for each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """An array that makes room for more values now and then, not on every append."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values
        self._size = len(values)

    @property
    def values(self) -> NDArray[Any]:
        """The values so far."""
        return self._room[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes of memory, room to grow included."""
        return self._room.nbytes

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        needed = self._size + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, self._size * 3 // 2), self._room.dtype)
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : needed] = values
        self._size = needed

    def widen(self, dtype: Any) -> None:
        """Change the type of all values."""
        self._room = self.values.astype(dtype, copy=False)
