"""Work that stops when nobody waits for its result any more.

The service gives each request a time. A database can be interrupted from outside; our own work
looks here, between one text and the next, whether to go on.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import TypeVar

from vdsh.errors import EngineError

T = TypeVar("T")

_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)


class GivenUpError(EngineError):
    """Work was given up because nobody waited for it any more."""

    def __init__(self) -> None:
        super().__init__("The work was given up: nobody waits for it any more.")


@contextmanager
def given_up_by(event: Event) -> Iterator[None]:
    """Let the work inside the block stop soon after an event is set; it raises `GivenUpError`."""
    token = _given_up.set(event)
    try:
        yield
    finally:
        _given_up.reset(token)


def can_be_given_up() -> bool:
    """Say whether anybody may give up what this thread does, so that small steps are better."""
    return _given_up.get() is not None


def check_wanted() -> None:
    """Raise where nobody waits any more for what this thread does; else it costs nothing."""
    event = _given_up.get()
    if event is not None and event.is_set():
        raise GivenUpError


def while_wanted(items: Iterable[T]) -> Iterator[T]:
    """Go through items for as long as somebody waits for what comes of them."""
    for item in items:
        check_wanted()
        yield item
