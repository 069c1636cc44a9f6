"""What a `RemoteStore` asks of a database server; one class an engine fills it in."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.store.rows import Rows
from vdsh.store.where import Tree


class Stored(NamedTuple):
    """A document with its code, as it lies in the engine."""

    document: Document
    code: bytes


class Found(NamedTuple):
    """A stored document and its distance from the query."""

    distance: int
    stored: Stored


class FoundWithin(NamedTuple):
    """The nearest documents within a radius, and how many there are in all."""

    found: list[Found]
    total: int


class Engine(ABC):
    """A connection to a server. Calls come one at a time.

    Ids are in the order of their UTF-8 bytes everywhere. Each engine turns what its driver raises
    into errors of ours, and tries again where that is safe.

    Attributes
    ----------
    shown : str
        The URL without a password.
    """

    shown: str

    @abstractmethod
    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""

    @abstractmethod
    def create(self, meta: Mapping[str, str], files: Mapping[str, bytes]) -> dict[str, str]:
        """Make the store with its model's files; return what `meta` says then.

        It may be called again after a failure, and by several processes at once.
        """

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Read the model's files; none where the model is only referenced."""

    @abstractmethod
    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""

    @abstractmethod
    def labels(self) -> list[str]:
        """Return all labels, in order."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields, all or nothing."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""

    @abstractmethod
    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        """Return the documents of some ids, in any order."""

    @abstractmethod
    def count(self, where: Tree | None) -> int:
        """Count documents."""

    @abstractmethod
    def nearest(self, code: Codes, k: int, where: Tree | None) -> list[Found]:
        """Return the k nearest documents, ties by id."""

    @abstractmethod
    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> FoundWithin:
        """Find the documents within a radius, nearest first, ties by id.

        With a limit only so many are fetched, where the engine can count the others.
        """

    @abstractmethod
    def page(self, after: str, size: int) -> list[Stored]:
        """Return some of the documents with the lowest ids above `after`, in order, up to `size`.

        Only the last page is empty.
        """

    @abstractmethod
    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Do what `page` does, for ids and codes."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Say which engine this is, how it searches, and its bytes on disk."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back; a second call does nothing."""
