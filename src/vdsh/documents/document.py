"""What every room passes on: a text with its name, labels and other fields."""

from dataclasses import dataclass, field
from typing import Any


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
