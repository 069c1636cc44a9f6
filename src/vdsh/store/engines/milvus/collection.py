"""The collections of a store in Milvus: read in the order of keys, documents found by code.

Milvus gives documents of one distance in any order and at most 16,384 of them. So the whole group
at the distance of the k-th hit is fetched and put in the order of ids; where it is larger than
that, it is fetched id range by id range, from the lowest on.
"""

import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from pymilvus.milvus_client.index import IndexParams

from vdsh.codes import Codes
from vdsh.model import Model
from vdsh.store.engines.milvus.session import MissingCollectionError, Session
from vdsh.store.engines.milvus.tables import LONGEST, chunks, documents_schema, values_schema
from vdsh.store.engines.milvus.where import from_key, in_parts, to_key
from vdsh.store.model import to_pieces
from vdsh.words.index import K1, B

MOST = 16_384  # rows in one answer of Milvus
BM25 = {"bm25_k1": K1, "bm25_b": B}
FETCHED = 200  # values of up to 64 KB in an answer
MANY_KEYS = 1000
FILE_PIECE = 48_000  # bytes of a file, 64,000 characters in base64

Pairs = list[tuple[int, str]]  # distance, key


class Collection:
    """Reads a collection by its primary key; filters are expressions.

    `check` raises where the store has another collection by now; asked when this one is gone.
    """

    key = "id"

    def __init__(
        self, session: Session, name: str, check: Callable[[], object] = lambda: None
    ) -> None:
        self._session = session
        self.name = name
        self._check = check

    def create(self, schema: Any, vector: str, words: str = "") -> None:
        """Make the collection, unless it is there, with an index of codes, and of words if any."""
        index = IndexParams()
        index.add_index(vector, index_type="BIN_FLAT", metric_type="HAMMING", params={})
        if words:
            index.add_index(words, "SPARSE_INVERTED_INDEX", metric_type="BM25", params=BM25)
        # Each answer shows all writes.
        self.call("create_collection", schema=schema, consistency_level="Strong")
        self.call("create_index", index, sync=False)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the client on the collection."""
        try:
            return self._session.call(method, self.name, *arguments, **options)
        except MissingCollectionError:
            self._check()
            raise

    def page(self, last: str, text: str, size: int, fields: list[str]) -> list[dict[str, Any]]:
        """Return the rows with the lowest keys above one."""
        above = f'{self.key} > "{last}"'
        expression = f"{above} and ({text})" if text else above
        # As its own iterator asks, so that these are the lowest keys and not just any.
        best = {"iterator": "True", "reduce_stop_for_best": "True"}
        rows = self.query(expression, fields, limit=size, **best)
        return sorted(rows, key=lambda row: row[self.key])

    def pages(self, text: str, size: int, fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        """Yield all rows in the order of their keys, page by page."""
        last = ""
        while page := self.page(last, text, size, fields):
            yield page
            last = page[-1][self.key]

    def query(self, text: str, fields: list[str], **options: Any) -> list[dict[str, Any]]:
        """Return the rows that pass an expression."""
        rows = self.call("query", filter=text, output_fields=fields, **options)
        return list(rows)

    def count(self, text: str) -> int:
        """Count the rows that pass an expression."""
        (row,) = self.query(text, ["count(*)"])
        return int(row["count(*)"])


class DocumentCollection(Collection):
    """Finds documents; ids are keys."""

    def make(self, n_bits: int) -> None:
        """Make the collection, unless it is there."""
        self.create(documents_schema(n_bits), "code", "bm25")

    def nearest(self, code: Codes, k: int, text: str) -> Pairs:
        """Return the k nearest; all of those at the last distance were looked at."""
        if k > MOST:
            return sorted(chain.from_iterable(self._by_ranges(code, text)))[:k]
        pairs = self._search(code, text, k)
        if len(pairs) < k:
            return sorted(pairs)
        last = max(pairs)[0]
        nearer = [pair for pair in pairs if pair[0] < last]
        ties = islice(self._between(code, (last, last), text), k - len(nearer))
        # Somebody may have written between both searches.
        return sorted({*pairs, *ties})[:k]

    def by_words(self, words: str, k: int, text: str) -> list[str]:
        """Return the keys of the k best by words."""
        return [hit["id"] for hit in self._hits("bm25", "BM25", words, k, text)]

    def within(self, code: Codes, radius: int, text: str) -> Pairs:
        """Return all within a radius."""
        return sorted(self._between(code, (0, radius), text))

    def _between(
        self, code: Codes, between: tuple[int, int], text: str
    ) -> Iterator[tuple[int, str]]:
        """Yield all that are so far away; those of one distance in the order of ids."""
        pairs = self._search(code, text, MOST, between)
        few = len(pairs) < MOST  # or there may be more
        ranges = [pairs] if few else self._by_ranges(code, text, between)
        return chain.from_iterable(map(sorted, ranges))

    def _by_ranges(
        self, code: Codes, text: str, between: tuple[int, int] | None = None
    ) -> Iterator[Pairs]:
        """Search ranges of ids, in order, each few enough for one answer."""
        for page in self.pages(text, MOST - 1, ["id"]):
            inside = f'id >= "{page[0]["id"]}" and id <= "{page[-1]["id"]}"'
            inside = f"{inside} and ({text})" if text else inside
            yield self._search(code, inside, MOST, between)

    def _search(
        self, code: Codes, text: str, limit: int, between: tuple[int, int] | None = None
    ) -> Pairs:
        params: dict[str, int] = {}
        if between is not None:
            low, high = between  # Milvus finds distances from range_filter to below radius
            params = {"radius": min(high, 8 * len(code)) + 1, "range_filter": low}
        hits = self._hits("code", "HAMMING", code.tobytes(), limit, text, params)
        return [(round(hit["distance"]), hit["id"]) for hit in hits]

    def _hits(
        self, field: str, metric: str, query: Any, limit: int, text: str, params: Any = None
    ) -> Any:
        how = {"metric_type": metric, "params": params or {}}
        options = {"anns_field": field, "limit": limit, "filter": text, "search_params": how}
        return self.call("search", data=[query], **options)[0]


class KeyValues(Collection):
    """Everything else: meta/…/NUMBER, field/=NAME, label/=NAME, is/=WHAT, model/..., piece/..."""

    key = "key"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._seen: dict[str, set[str]] = {}  # names that are surely there

    def make(self) -> None:
        """Make the collection, unless it is there."""
        self.create(values_schema(), "nothing")
        self._session.load(self.name)

    def write(self, prefix: str, values: Mapping[str, str]) -> None:
        """Write values."""
        rows = [
            {"key": prefix + key, "value": value, "nothing": b"\0"} for key, value in values.items()
        ]
        for part in chunks(rows):
            self.call("upsert", part)

    def under(self, prefix: str) -> dict[str, str]:
        """Read all values under a prefix, without it in their names, in order."""
        inside = f'key > "{prefix}" and key < "{prefix[:-1]}0"'  # "0" follows the slash
        rows = chain.from_iterable(self.pages(inside, FETCHED, ["key", "value"]))
        return {row["key"].removeprefix(prefix): row["value"] for row in rows}

    def look_up(self, keys: Sequence[str]) -> dict[str, str]:
        """Read some values."""
        parts = [self.query(f"key in {some}", ["key", "value"]) for some in in_parts(keys, FETCHED)]
        return {row["key"]: row["value"] for rows in parts for row in rows}

    def remove(self, keys: Sequence[str]) -> None:
        """Delete values."""
        for some in in_parts(keys, MANY_KEYS):
            self.call("delete", filter=f"key in {some}")

    def remembered(self, prefix: str) -> dict[str, str]:
        """See `vdsh.store.engine.KeyValues`; they lie under `own/`."""
        found = self.under(f"own/{to_key(prefix)}")
        return {from_key(key): value for key, value in found.items()}

    def remember(self, prefix: str, values: Mapping[str, str]) -> None:
        """See there."""
        self.write("own/", {to_key(prefix + key): one for key, one in values.items()})

    def forget(self, keys: Sequence[str]) -> None:
        """See there."""
        self.remove([f"own/{to_key(key)}" for key in keys])

    def names(self, prefix: str) -> set[str]:
        """Read the names that were added under a prefix, by this process or another."""
        names = {from_key(key.removeprefix("=")) for key in self.under(prefix)}
        self._seen.setdefault(prefix, set()).update(names)
        return names

    def add_names(self, prefix: str, names: Iterable[str]) -> None:
        """Add names that are not there yet."""
        seen = self._seen.setdefault(prefix, set())
        new = {name: f"{prefix}={to_key(name)}" for name in set(names) - seen}
        self.write("", {key: "" for key in new.values() if len(key) <= LONGEST})
        seen.update(new)

    def write_model(self, model: Model) -> None:
        """Write a model's files, as a copy of its own: whoever removes others has not seen it."""
        copy = uuid.uuid4().hex
        files = {
            f"model/{fingerprint}/{copy}/{to_key(name)}/{number:08}": b64encode(data).decode()
            for fingerprint, name, number, data in to_pieces(model, FILE_PIECE)
        }
        self.write("", files)

    def model_copies(self, fingerprint: str) -> list[list[tuple[str, bytes]]]:
        """Read the names and bytes of a model's files, piece by piece, in order, of each copy."""
        copies: dict[str, list[tuple[str, bytes]]] = {}
        for key, value in self.under(f"model/{fingerprint}/").items():
            copy, _, piece = key.partition("/")
            name = from_key(piece.rpartition("/")[0])
            copies.setdefault(copy, []).append((name, b64decode(value)))
        return list(copies.values())
