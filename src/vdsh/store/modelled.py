"""A store with a model beside it: writing in batches, and queries as codes, for every engine."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from vdsh.codes import Codes, Scores
from vdsh.documents import Document
from vdsh.documents.document import BATCH, in_batches
from vdsh.errors import InputError
from vdsh.search.checks import check_count
from vdsh.store.base import (
    Duplicates,
    Hit,
    Hits,
    Query,
    Store,
    Where,
    Within,
    check_code,
    check_rank,
)
from vdsh.store.duplicates import check_similarity, find_duplicates
from vdsh.store.rows import Rows, check_codes, check_id, read_codes, to_rows

CANDIDATES = 1000  # at least so many are re-ordered by expected distance


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
        """Add documents in batches of up to 2,000, each committed before the next is read."""
        if codes is not None:
            check_codes(codes, documents, self._model.n_bits)
        n_written = 0
        for batch in in_batches(documents, BATCH):
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
        return sum(
            self._remove(sorted({check_id(id) for id in some})) for some in in_batches(ids, BATCH)
        )

    def duplicates(
        self, radius: int | None = None, *, similarity: float = 0.8
    ) -> Iterator[Duplicates]:
        """Find groups of documents whose texts are nearly that of the one that is kept.

        All texts are read once, page by page; those that may be similar are read again.
        """
        if radius is not None:
            radius = check_count("radius", radius, 0)
        check_similarity(similarity)
        return find_duplicates(self.entries(), self._texts, similarity, radius)

    @abstractmethod
    def _texts(self, ids: list[str]) -> dict[str, str]:
        """Return the texts of those documents that are there."""

    def search(
        self, query: Query, k: int = 10, *, where: Where | None = None, rank: str = "distance"
    ) -> Hits:
        """Find the k documents nearest to a text or a code; see `Store.search`."""
        k = check_count("k", k, 1)
        check_rank(rank, query)
        code, unknown, empty = self._read(query)
        if empty:
            return self._nothing(code, unknown, where)
        if isinstance(query, str) and rank == "expected":
            hits = self._nearest_expected(code, k, where, self.model.bit_probabilities([query])[0])
        else:
            hits = self._nearest(code, k, where)
        return Hits(hits, unknown)

    def within(self, query: Query, radius: int = 2, *, where: Where | None = None) -> Hits:
        """Find every document within `radius` bits of a text or a code, nearest first."""
        return self._find_within(query, check_count("radius", radius, 0), None, where).hits

    def within_at_most(
        self, query: Query, radius: int, limit: int, *, where: Where | None = None
    ) -> Within:
        """Find the `limit` nearest documents within a radius; only these are fetched."""
        radius, limit = check_count("radius", radius, 0), check_count("limit", limit, 1)
        return self._find_within(query, radius, limit, where)

    @abstractmethod
    def _nearest(self, code: Codes, k: int, where: Where | None) -> list[Hit]:
        """Find the k documents nearest to a code, ties by id."""

    @abstractmethod
    def _nearest_expected(
        self, code: Codes, k: int, where: Where | None, probabilities: Scores
    ) -> list[Hit]:
        """Order the nearest documents by expected distance; return the first k."""

    @abstractmethod
    def _within(
        self, code: Codes, radius: int, limit: int | None, where: Where | None
    ) -> tuple[list[Hit], int]:
        """Find the documents within a radius, at most `limit`, and count all of them."""

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

    def _find_within(
        self, query: Query, radius: int, limit: int | None, where: Where | None
    ) -> Within:
        code, unknown, empty = self._read(query)
        if empty:
            return Within(self._nothing(code, unknown, where), 0)
        hits, total = self._within(code, radius, limit, where)
        return Within(Hits(hits, unknown), total)

    def _read(self, query: Query) -> tuple[Codes, list[str], bool]:
        """Return a query's code, its unknown words, and whether it has no known one."""
        if not isinstance(query, str):
            return check_code(query, self._model.n_bits), [], False
        codes, n_empty = self.model.encode_and_count([query])
        return codes[0], self.model.unknown_words(query), bool(n_empty)

    def _nothing(self, code: Codes, unknown: list[str], where: Where | None) -> Hits:
        """Find nothing; a wrong filter or a closed store is an error all the same."""
        self._nearest(code, 1, where)
        return Hits(unknown=unknown, empty=True)

    def _split(self, pairs: Sequence[tuple[str, bytes]]) -> tuple[list[str], Codes]:
        """Divide pairs of an id and a code into ids and an array of codes."""
        return read_codes(pairs, self._model.n_bits // 8)
