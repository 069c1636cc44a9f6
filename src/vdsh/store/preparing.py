"""Bringing the word index of a store up to date, with a bar where that takes long."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

from vdsh.store.engine import Engine

if TYPE_CHECKING:
    from rich.progress import Progress

MANY = 20_000  # documents; fewer take less than two seconds


def prepare_words(engine: Engine, *, progress: bool = True) -> bool:
    """Index the words of documents that an older version wrote; say whether there is an index."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(done: int, total: int) -> None:
            if not bars and total >= MANY:
                from vdsh.progress import counting_bar  # which nearly no search needs

                bars.append(stack.enter_context(counting_bar("indexing words", total)))
            for bar in bars:
                bar.update(bar.task_ids[0], completed=done, total=total)

        return engine.prepare_words(show if progress else None)
