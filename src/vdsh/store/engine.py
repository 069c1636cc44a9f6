"""What a `Store` asks of the place where its documents lie; one class an engine fills it in."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vdsh.codes import Codes
from vdsh.errors import EngineError, InputError, MissingFileError
from vdsh.model import Model
from vdsh.model.health import sample
from vdsh.store.found import Choose, Found, pages
from vdsh.store.ranking import ByRelevance, fits, reorder
from vdsh.store.rows import Rows
from vdsh.store.where import Tree
from vdsh.words import WordQuery


class ModelChangedError(EngineError):
    """The store has got another model since it was opened: codes must be made anew."""


PAGE = 10_000  # codes that are read at a time
NEAREST = 1000  # documents that words re-order where there is no word index
# What an engine may say about words, besides how it looks for all of them.
REORDERS = f"re-orders the {NEAREST:,} nearest by code"
WORDS_LATER = "none yet: made at the first search"


class Engine(ABC):
    """A place for documents and codes. Calls come one at a time, but for `interrupt`.

    Ids are in the order of their UTF-8 bytes everywhere. Each engine turns what its driver raises
    into errors of ours, and tries again where that is safe.

    `shown`: the path, or the URL without a password. `care`: which tool of the engine's own makes
    copies of it and gives back space.
    """

    shown: str
    read_only: bool = False
    care: str = ""

    @property
    def model_place(self) -> str:
        """Where a model inside the store is, for people."""
        return self.shown

    @abstractmethod
    def meta(self) -> dict[str, str]:
        """Return what the store says about itself; an empty dict where it is not made yet."""

    @abstractmethod
    def create(self, meta: Mapping[str, str], model: Model | None) -> dict[str, str]:
        """Make the store, with a model inside where one is given; return what `meta` says then.

        It may be called again after a failure, and by several processes at once.
        """

    @abstractmethod
    def load_model(self) -> Model:
        """Load the model that is kept inside."""

    @abstractmethod
    def fields(self) -> set[str]:
        """Return the names of all metadata fields."""

    @abstractmethod
    def labels(self) -> list[str]:
        """Return all labels, in order."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Write rows and the names of their fields, all or nothing; the same id replaces."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> int:
        """Delete documents; return how many were there."""

    @abstractmethod
    def look_up(self, ids: Sequence[str]) -> list[Found]:
        """Return the documents of some ids, in any order."""

    @abstractmethod
    def count(self, where: Tree | None) -> int:
        """Count documents."""

    @abstractmethod
    def nearest(
        self, code: Codes, n: int, where: Tree | None, choose: Choose | None = None
    ) -> list[Found]:
        """Return the n nearest documents, ties by id; or those that `choose` chooses of them.

        Engines that can fetch only the documents that were chosen.
        """

    def prepare_filter(  # noqa: B027  (not every engine needs to)
        self, where: Tree, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index the fields of a filter, where documents are many and that can be done."""

    def index_fields(
        self, fields: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Index fields for filters; "labels" are one. What is written later is indexed too."""
        raise InputError(f"'{self.shown}' has no index for filters. Leave --index-field out.")

    def prepare_words(self, progress: Callable[[int, int], None] | None = None) -> bool:
        """Bring the word index up to date, if need be; say whether there is one.

        `progress` is called with the documents done and all that there are to do; also by
        `relevant`, where that finds the index damaged and makes it anew.
        """
        return False

    def relevant(self, ranking: ByRelevance, where: Tree | None) -> list[Found]:
        """Return the documents that words and codes together find, best first.

        Where there is no word index, the nearest by code are put in order.
        """
        return reorder(self.nearest(ranking.code, NEAREST, where), ranking)

    @abstractmethod
    def within(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None = None
    ) -> tuple[list[Found], int]:
        """Find the documents within a radius, nearest first, ties by id, and count them.

        With a limit only so many are fetched, where the engine can count the others.
        """

    def within_fitting(
        self, code: Codes, radius: int, where: Tree | None, limit: int | None, query: WordQuery
    ) -> tuple[list[Found], int]:
        """Do what `within` does for documents that have a query's phrases, and nothing it excludes.

        Engines with a word index need not read all texts.
        """
        found, _ = self.within(code, radius, where)
        found = [one for one in found if fits(query, one.document.text)]
        return found[:limit], len(found)

    @abstractmethod
    def page(self, after: str, size: int) -> list[Found]:
        """Return some of the documents with the lowest ids above `after`, in order, up to `size`.

        Only the last page is empty.
        """

    @abstractmethod
    def code_page(self, after: str, size: int) -> list[tuple[str, bytes]]:
        """Do what `page` does, for ids and codes."""

    def written(self, n: int) -> list[Found]:
        """Return the n documents that were written last."""
        raise InputError(
            f"'{self.shown}' does not know which documents were written last. Give them: vdsh "
            "drift STORE DOCS, or store.drift(documents)."
        )

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

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the store, and what to do; nothing where all is well."""
        yield from ()

    def copy_to(self, folder: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Write one state of the store into an empty folder, whatever others write meanwhile."""
        raise InputError(f"'{self.shown}' is on a server. {self.care}")

    @abstractmethod
    def compact(self) -> None:
        """Forget models that are not used, and give back the space of what was deleted."""

    @abstractmethod
    def reencode(
        self,
        model: Model,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model beside the old codes, then switch to it.

        `progress` is called with the number of documents of each batch. Other handles get
        `ModelChangedError` from their next call that has to do with codes, until they ask `meta`.
        """

    @abstractmethod
    def previous_model(self) -> Model:
        """Load the model that the store had before `reencode`."""

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        return True

    def interrupt(self) -> None:  # noqa: B027  (not every engine can)
        """Make a call of another thread give up soon, where the engine can; it raises then."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back; a second call does nothing."""


def no_store(shown: str) -> MissingFileError:
    """Say that there is no store, and how to make one."""
    return MissingFileError(
        f"No store at '{shown}'. Give a model to make one: open_store(path, hasher), or "
        f"vdsh index MODEL DOCS --store '{shown}'."
    )
