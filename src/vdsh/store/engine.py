"""What a `Store` asks of the place where its documents lie; one class an engine fills it in."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from vdsh.documents import Document
from vdsh.errors import EngineError, MissingFileError
from vdsh.model import Model
from vdsh.model.health import sample
from vdsh.retrieval import Query, Ranking
from vdsh.store.addresses import STORE_FILE
from vdsh.store.hits import pages
from vdsh.store.reindex import Models
from vdsh.store.rows import Rows
from vdsh.store.where import Tree
from vdsh.text.languages import NONE, Language, find_language, language


class ModelChangedError(EngineError):
    """The store has got another model: codes must be made anew."""

    def __init__(self, message: str = "The store got another model meanwhile. Open it again."):
        super().__init__(message)


FORMAT = 5  # of what a store says about itself, and of its tables
# Of a store in a folder, and of its backup: the database, and what may lie beside it.
PARTS = (STORE_FILE, "map.safetensors", "examples.txt")
PAGE = 10_000  # codes that are read at a time

Progress = Callable[[int, int], None]  # called with what is done and all that there is to do
# A document with its code.
Stored = tuple[Document, bytes]
T = TypeVar("T")


def check_model(facts: Mapping[str, Any], fingerprint: str, n_bytes: int | None = None) -> None:
    """Raise unless a store has codes of a model, and of so many bytes.

    Engines ask it in the transaction that writes or compares codes, with the store's facts as that
    transaction sees them and the fingerprint that came with the codes: what this process believes
    the model to be says nothing.
    """
    is_other = facts.get("fingerprint") != fingerprint
    if is_other or n_bytes not in (None, int(facts["n_bits"]) // 8):
        raise ModelChangedError


class FilterIndexes(Protocol):
    """Indexes of a database, by which filters need not read all documents."""

    def prepare(self, where: Tree, progress: Progress | None = None) -> None:
        """Index the fields of a filter, where documents are many and that can be done."""


class Maintenance(Protocol):
    """What is done to the files of a store; a server has tools of its own for that."""

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the store, and what to do; nothing where all is well."""

    def copy_to(self, folder: Path, progress: Progress | None = None) -> None:
        """Write one state of the store into an empty folder, whatever others write meanwhile."""


class KeyValues(Protocol):
    """Short texts by key, beside the documents: what a store remembers for those who use it."""

    def remembered(self, prefix: str) -> dict[str, str]:
        """Read all values whose keys begin with a prefix, which ends in a slash, without it."""

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """Write values under a prefix; those of the same keys are replaced."""

    def forget(self, keys: Sequence[str]) -> None:
        """Remove values by their whole keys."""


class Search(Protocol):
    """Searches one state of a store; `vdsh.retrieval.Searcher` does it over indexes in memory."""

    def by_relevance(self, query: Query, k: int, *, strict: bool = False) -> Ranking:
        """Find the k best documents by words and code together."""

    def by_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the nearest codes, ties by id."""

    def by_expected_distance(self, query: Query, k: int) -> Ranking:
        """Find the k documents with the least expected distance among the nearest by code."""

    def within(self, query: Query, radius: int, limit: int | None = None) -> Ranking:
        """Find all documents within a radius, nearest first, ties by id; list the first of them."""


@dataclass(frozen=True)
class Snapshot:
    """What a search sees from its beginning to its end, whatever others write meanwhile.

    Attributes
    ----------
    facts : mapping
        What the store says about itself.
    language : Language
        Of its words.
    search : Search
    fetch : callable
        Gives the documents of the rows of a `Ranking`, in their order.
    """

    facts: Mapping[str, str]
    language: Language
    search: Search
    fetch: Callable[[NDArray[Any]], list[Stored]]


class Engine(ABC):
    """A place for documents and codes. Calls come one at a time, but for `interrupt`.

    Ids are in the order of their UTF-8 bytes everywhere. Each engine turns what its driver raises
    into errors of ours, and tries again where that is safe.
    """

    shown: str  # the path, or the URL without a password
    read_only: bool = False
    _language: Language | None = None  # of the words, once it is known
    own_tool: str = ""  # which tool of the engine's own makes copies of it and gives back space
    # Holds a lock of a name, as a context: True where no other has it. Milvus has no locks.
    hold: Callable[[str], AbstractContextManager[bool]] | None = None
    # Gives the n documents that were written last, where that is known.
    written: Callable[[int], list[Stored]] | None = None
    models: Models  # that are kept inside
    values: KeyValues  # what the store remembers
    filters: FilterIndexes | None = None  # where there are indexes for filters
    maintenance: Maintenance | None = None  # where the store is not on a server

    @abstractmethod
    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""

    @abstractmethod
    def create(self, meta: Mapping[str, str], model: Model) -> dict[str, str]:
        """Make the store with its model inside; return what `meta` says then.

        It may be called again after a failure, and by several processes at once.
        """

    @abstractmethod
    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""

    @abstractmethod
    def labels(self) -> list[str]:
        """Return all labels, in order."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields, all or nothing; the same id replaces.

        Raises `ModelChangedError` where the codes of the store are of another model than theirs.
        """

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""

    @abstractmethod
    def look_up(self, ids: Sequence[str]) -> list[Stored]:
        """Return the documents of some ids, in any order."""

    @abstractmethod
    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of some ids have a document."""

    @abstractmethod
    def count(self, where: Tree | None) -> int:
        """Count documents."""

    @abstractmethod
    def read(
        self,
        work: Callable[[Snapshot], T],
        *,
        where: Tree | None = None,
        by_words: bool = False,
        progress: Progress | None = None,
    ) -> T:
        """Run some work on one state of the store, and return its result.

        Where a connection was lost, the work is run again on a new one.

        Parameters
        ----------
        work : callable
        where : Tree, optional
            Only documents that match are found.
        by_words : bool, default=False
            Whether the search looks for words, rather than for codes alone.
        progress : callable, optional
            Called while a damaged word index is made anew.
        """

    def language(self) -> Language:
        """Return the language of the words, which the first documents settle."""
        if self._language is None and (name := self.meta().get("language")):
            self._language = language(name)
        return self._language or language(NONE)

    def _settled_language(self, texts: Sequence[str], note: Callable[[str], object]) -> Language:
        """Return the language of the words; that of the first texts is noted down."""
        self.language()
        if self._language is None:
            note(find_language(texts))
        return self.language()

    @abstractmethod
    def page(self, after: str, size: int, of: str | None = None) -> list[Stored]:
        """Return some of the documents with the lowest ids above `after`, in order, up to `size`.

        Only the last page is empty. `of`: the fingerprint that the model of the codes must have.
        """

    @abstractmethod
    def code_page(self, after: str, size: int, of: str | None = None) -> list[tuple[str, bytes]]:
        """Do what `page` does, for ids and codes."""

    def some_codes(self, n: int) -> list[tuple[str, bytes]]:
        """Return n ids with their codes, always the same ones at random; or all, where fewer."""
        size = self.count(None)
        wanted, first, found = set(sample(size, n).tolist()), 0, []
        for page in pages(lambda after: self.code_page(after, PAGE), ""):
            found += [pair for place, pair in enumerate(page, first) if place in wanted]
            first += len(page)
        return found

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Say how many `bytes` there are and how `words` are looked for.

        A server also says which `engine` it is and how its `search` works.
        """

    @abstractmethod
    def compact(self) -> None:
        """Forget models that are not used, and give back the space of what was deleted."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make a call of another thread give up soon; it raises then."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back; a second call does nothing."""


def no_store(shown: str) -> MissingFileError:
    """Say that there is no store, and how to make one."""
    return MissingFileError(
        f"No store at '{shown}'. To make one: vdsh add '{shown}' PATH (in Python: "
        "open_store(path))."
    )
