"""What every room passes on: a text with its name, labels and other fields."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

BATCH = 2000  # documents that are encoded and committed together
_LONG_BATCH = 32 * 2**20  # characters that end a batch sooner


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes
    ----------
    id : str
        Its name; the record number, from 1, where the source has none.
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


def in_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Take up to 2,000 documents together, fewer where they are long."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        if isinstance(document, Document):  # a store says what else it was given
            size += sum(len(value) for value in (document.text, *document.metadata.values())
                        if isinstance(value, str))  # fmt: skip
        if len(batch) == BATCH or size > _LONG_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
