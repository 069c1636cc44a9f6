"""A bar for an index of a store that has to be made, where that takes long."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

MANY = 20_000  # documents; fewer take less than two seconds


@contextmanager
def bar(doing: str, *, enabled: bool = True) -> Iterator[Callable[[int, int], None] | None]:
    """Give what an engine wants as `progress`; the bar comes with the first call."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(done: int, total: int) -> None:
            if not bars and total >= MANY:
                from vdsh.progress import counting_bar  # which nearly no search needs

                bars.append(stack.enter_context(counting_bar(doing, total)))
            for shown in bars:
                shown.update(shown.task_ids[0], completed=done, total=total)

        yield show if enabled else None
