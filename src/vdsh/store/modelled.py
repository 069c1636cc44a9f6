"""A store with a model beside it: writing in batches, and queries as codes, for every engine."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.store.base import Query, Store, check_code
from vdsh.store.rows import Rows, check_codes, check_id, read_codes, to_rows

BATCH = 2000  # documents a transaction
CANDIDATES = 1000  # at least so many are re-ordered by expected distance

T = TypeVar("T")


class ModelledStore(Store):
    """What the stores share; an engine writes and removes a batch at a time."""

    _meta: Mapping[str, str]  # what the store says about itself

    def upsert(
        self,
        documents: Iterable[Document],
        codes: Codes | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add documents in batches of 2,000, each committed before the next is read."""
        if codes is not None:
            check_codes(codes, documents, self._model.n_bits)
        n_written = 0
        for batch in _batches(documents):
            some = None if codes is None else codes[n_written : n_written + len(batch)]
            self._write(to_rows(batch, some, self._model.encode))
            n_written += len(batch)
            if progress is not None:
                progress(n_written)
        self._model.warn_of_empty(n_written)
        if codes is not None and len(codes) > n_written:
            raise InputError(f"There are {len(codes)} codes but only {n_written} documents.")
        return n_written

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; return how many were there."""
        if isinstance(ids, str):
            raise InputError(f"ids must be a list of ids. Got one string: [{ids!r}] is a list.")
        return sum(self._remove(sorted({check_id(id) for id in some})) for some in _batches(ids))

    @abstractmethod
    def _write(self, rows: Rows) -> None:
        """Write rows, all or none; those with their ids are replaced."""

    @abstractmethod
    def _remove(self, ids: list[str]) -> int:
        """Delete documents, all or none; return how many were there."""

    def _about_model(self) -> dict[str, str]:
        return {
            "fingerprint": self._model.fingerprint,
            "kept": self._meta["keep_model"],
            "path": str(self._model.folder),
        }

    def _code(self, query: Query) -> Codes:
        if isinstance(query, str):
            code: Codes = self._model.encode([query])[0]
            self._model.warn_of_empty(1)
            return code
        return check_code(query, self._model.n_bits)

    def _split(self, pairs: Sequence[tuple[str, bytes]]) -> tuple[list[str], Codes]:
        """Divide pairs of an id and a code into ids and an array of codes."""
        return read_codes(pairs, self._model.n_bits // 8)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch
