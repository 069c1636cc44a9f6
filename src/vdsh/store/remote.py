"""A store on a database server: what all engines share."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from threading import RLock
from typing import Any, TypeVar

from vdsh.codes import Codes, Scores, expected_distances, from_hex
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.search.checks import check_count
from vdsh.store.base import Hit, Where
from vdsh.store.engine import Engine, Found, Stored
from vdsh.store.model import StoreModel
from vdsh.store.modelled import CANDIDATES, ModelledStore
from vdsh.store.rows import Rows, check_id
from vdsh.store.where import Tree, parse

T = TypeVar("T")
Page = TypeVar("Page", list[Stored], list[tuple[str, bytes]])


class RemoteStore(ModelledStore):
    """A store on a database server; made by `open_store`.

    It may be used from several threads, which take turns.

    Parameters
    ----------
    engine : Engine
    meta : mapping of str
        What the store says about itself.
    model : StoreModel
    """

    def __init__(self, engine: Engine, meta: Mapping[str, str], model: StoreModel) -> None:
        self._engine = engine
        self._meta = meta
        self._model = model
        self._lock = RLock()
        self._closed = False

    def __repr__(self) -> str:
        return f"<RemoteStore '{self._engine.shown}', {self._model.n_bits} bits>"

    def get(self, id: str) -> Document | None:
        """Return a document, or None where there is none of that id."""
        found = self._look_up(id)
        return found and found.document

    def find(self, id: str) -> Hit | None:
        """Return a document with its code, as a hit of distance 0, or None where there is none."""
        found = self._look_up(id)
        return found and _hit(Found(0, found))

    def count(self, where: Where | None = None) -> int:
        """Count all documents, or those that match a filter."""
        return self._ask(lambda engine: engine.count(_tree(engine, where)))

    def labels(self) -> list[str]:
        """List the labels that documents have, in order."""
        return self._ask(lambda engine: engine.labels())

    def documents(self, batch_size: int = 1000) -> Iterator[list[Document]]:
        """Iterate over all documents in the order of their ids."""
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.page(last, size)):
            yield [stored.document for stored in page]

    def codes(self, batch_size: int = 10_000) -> Iterator[tuple[list[str], Codes]]:
        """Iterate over ids and codes, in the order of the ids."""
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.code_page(last, size)):
            yield self._split(page)

    def entries(
        self, after: str = "", batch_size: int = 1000
    ) -> Iterator[tuple[list[Document], Codes]]:
        """Iterate over documents with their codes, those with an id above `after`."""
        size = check_count("batch_size", batch_size, 1)
        for page in self._pages(lambda engine, last: engine.page(last, size), after):
            _, codes = self._split([(stored.document.id, stored.code) for stored in page])
            yield [stored.document for stored in page], codes

    def info(self) -> dict[str, Any]:
        """Describe the store: documents, bits, model, fields, labels, engine."""
        return self._ask(self._info)

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._closed = True
            self._engine.close()

    def _ask(self, work: Callable[[Engine], T]) -> T:
        with self._lock:
            if self._closed:
                raise InputError(f"The store '{self._engine.shown}' is closed. Open it again.")
            return work(self._engine)

    def _write(self, rows: Rows) -> None:
        self._ask(lambda engine: engine.write(rows))

    def _remove(self, ids: list[str]) -> int:
        return self._ask(lambda engine: engine.remove(ids))

    def _texts(self, ids: list[str]) -> dict[str, str]:
        found = self._ask(lambda engine: engine.look_up(ids))
        return {stored.document.id: stored.document.text for stored in found}

    def _look_up(self, id: str) -> Stored | None:
        found = self._ask(lambda engine: engine.look_up([check_id(id)]))
        return found[0] if found else None

    def _nearest(self, code: Codes, k: int, where: Where | None) -> list[Hit]:
        found = self._ask(lambda engine: engine.nearest(code, k, _tree(engine, where)))
        return [_hit(one) for one in found]

    def _nearest_expected(
        self, code: Codes, k: int, where: Where | None, probabilities: Scores
    ) -> list[Hit]:
        hits = self._nearest(code, max(4 * k, CANDIDATES), where)
        return _by_expected_distance(hits, probabilities)[:k]

    def _within(
        self, code: Codes, radius: int, limit: int | None, where: Where | None
    ) -> tuple[list[Hit], int]:
        found, total = self._ask(
            lambda engine: engine.within(code, radius, _tree(engine, where), limit)
        )
        return [_hit(one) for one in found], total

    def _info(self, engine: Engine) -> dict[str, Any]:
        facts = engine.facts()
        return {
            "path": engine.shown,
            "engine": facts["engine"],
            "search": facts["search"],
            "documents": engine.count(None),
            "bits": self._model.n_bits,
            "model": self._about_model(),
            "fields": sorted(engine.fields()),
            "labels": len(engine.labels()),
            "bytes": facts["bytes"],
            "format": int(self._meta["format"]),
            "read_only": False,
        }

    def _pages(self, read: Callable[..., Page], last: str = "") -> Iterator[Page]:
        while page := self._ask(partial(read, last=last)):
            yield page
            end = page[-1]
            last = end.document.id if isinstance(end, Stored) else end[0]


def _tree(engine: Engine, where: Where | None) -> Tree | None:
    return None if where is None else parse(where, engine.fields())


def _hit(found: Found) -> Hit:
    document, code = found.stored
    labels, metadata = document.labels, document.metadata
    return Hit(document.id, found.distance, document.text, labels, metadata, None, code.hex())


def _by_expected_distance(hits: list[Hit], probabilities: Scores) -> list[Hit]:
    if not hits:
        return []
    expected = expected_distances(from_hex([hit.code for hit in hits]), probabilities).tolist()
    ranked = [hit._replace(expected=e) for hit, e in zip(hits, expected, strict=True)]
    return sorted(ranked, key=lambda hit: (hit.expected, hit.distance, hit.id))
