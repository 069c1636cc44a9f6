"""What was made of a store once and is asked for again: its map, the words of its bits."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Keeps the newest version of each thing.

    >>> memo = Memo()
    >>> memo.get("map", 1, lambda: "old"), memo.get("map", 1, lambda: "new")
    ('old', 'old')
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Any, Any]] = {}

    def get(self, what: str, version: Any, make: Callable[[], T]) -> T:
        """Return the thing of that version; what is kept of another one is forgotten."""
        kept = self._kept.get(what)
        if kept is None or kept[0] != version:
            kept = self._kept[what] = (version, make())
        found: T = kept[1]
        return found
