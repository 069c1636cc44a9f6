"""What every room passes on: a text with its name, labels and other fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from reprlib import repr as short
from typing import Any, TypeVar

from vdsh.errors import InputError

T = TypeVar("T")

MOST_LEARNED = 100_000  # documents that a model learns from, by default: of more, a sample
MOST_CHARACTERS = 200_000_000  # of their texts and fields together
BATCH = 8000  # documents that are encoded and committed together
_LONG_BATCH = 32 * 2**20  # characters that end a batch sooner
# Ids are written one a line, and to terminals: there, each of these would be a command.
CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
NOT_IN_IDS = re.compile(rf"[{CONTROL}\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes
    ----------
    id : str
        Its name, without line breaks and other control characters; where a record has none, it
        is made of the source's name and the record's number: `news.csv:1`.
    text : str
        What is hashed.
    labels : tuple of str, or None
        None says that the labels are not known, `()` that it has none.
    metadata : dict
        All other fields, as the source holds them.
    """

    id: str
    text: str
    labels: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def is_id(name: str) -> bool:
    """Say whether a name can be an id: it has no line breaks and no other control characters."""
    return name.isprintable() or not NOT_IN_IDS.search(name)  # isprintable is quick, and too strict


def check_characters(id: str) -> str:
    """Return the id of a new document, or raise where it has control characters."""
    if not is_id(id):
        raise InputError(
            "An id must have no line breaks and no other control characters. "
            f"Got {short(id)}. Rename the document."
        )
    return id


def in_batches(
    items: Iterable[T],
    most: int = BATCH,
    *,
    size: Callable[[T], int] | None = None,
    room: int = _LONG_BATCH,
) -> Iterator[list[T]]:
    """Take up to 8,000 documents together, fewer where they are long."""
    batch, left, size = list[T](), room, size or length
    for item in items:
        batch.append(item)
        left -= size(item)
        if len(batch) == most or left < 0:
            yield batch
            batch, left = [], room
    if batch:
        yield batch


def draw(
    items: Iterable[T],
    most: int = MOST_LEARNED,
    *,
    size: Callable[[T], int] = lambda item: 0,
    room: int = MOST_CHARACTERS,
) -> list[T]:
    """Read a stream and keep so many at random, always the same ones; or all, in their order.

    Of items with a size fewer are kept, where more would be larger than the room.

    >>> draw("abc", 3), len(draw(range(1000), 10)), len(draw(range(1000), size=int, room=5000))
    (['a', 'b', 'c'], 10, 7)
    """
    rng, kept = Random(0), list[T]()
    for number, item in enumerate(items):
        if number < most:
            kept.append(item)
        elif (place := rng.randrange(number + 1)) < most:  # each is kept as likely as any other
            room += size(kept[place])
            kept[place] = item
        else:
            continue
        room -= size(item)
        while room < 0 and len(kept) > 1:  # fewer from now on
            place = rng.randrange(len(kept))
            kept[place], kept[-1] = kept[-1], kept[place]
            room += size(kept.pop())
            most = len(kept)
    return kept


def length(item: Any) -> int:
    """Count the characters of a document; a store says what else it was given."""
    if not isinstance(item, Document) or not isinstance(item.metadata, dict):
        return 0
    values = [item.text, *item.metadata.values()]
    return sum([len(value) for value in values if isinstance(value, str)])
