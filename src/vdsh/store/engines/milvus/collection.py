"""The collections of a store in Milvus: read in the order of keys, documents found by code.

Milvus gives documents of one distance in any order and at most 16,384 of them. So the whole group
at the distance of the k-th hit is fetched and put in the order of ids; where it is larger than
that, it is fetched id range by id range, from the lowest on.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from pymilvus.milvus_client.index import IndexParams

from vdsh.codes import Codes
from vdsh.store.engines.milvus.session import MissingCollectionError, Session
from vdsh.store.engines.milvus.tables import documents_schema
from vdsh.words.index import K1, B

MOST = 16_384  # rows in one answer of Milvus
BM25 = {"bm25_k1": K1, "bm25_b": B}

Pairs = list[tuple[int, str]]  # distance, key


class Collection:
    """Reads a collection by its primary key; filters are expressions.

    `check` raises where the store has another collection by now; asked when this one is gone.
    """

    key = "id"

    def __init__(
        self, session: Session, name: str, check: Callable[[], None] = lambda: None
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
        ties = self._lowest(code, last, k - len(nearer), text)
        # Somebody may have written between both searches.
        return sorted({*pairs, *ties})[:k]

    def by_words(self, words: str, k: int, text: str) -> list[str]:
        """Return the keys of the k best by words."""
        (hits,) = self.call(
            "search",
            data=[words],
            limit=k,
            filter=text,
            anns_field="bm25",
            search_params={"metric_type": "BM25"},
        )
        return [hit["id"] for hit in hits]

    def within(self, code: Codes, radius: int, text: str) -> Pairs:
        """Return all within a radius."""
        pairs = self._search(code, text, MOST, (0, radius))
        if len(pairs) == MOST:  # there may be more
            pairs = list(chain.from_iterable(self._by_ranges(code, text, (0, radius))))
        return sorted(pairs)

    def _lowest(self, code: Codes, distance: int, n: int, text: str) -> Pairs:
        """Return the n lowest ids at a distance."""
        between = (distance, distance)
        pairs = self._search(code, text, MOST, between)
        if len(pairs) < MOST:
            return sorted(pairs)[:n]
        ranges = map(sorted, self._by_ranges(code, text, between))
        return list(islice(chain.from_iterable(ranges), n))

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
        (hits,) = self.call(
            "search",
            data=[code.tobytes()],
            limit=limit,
            filter=text,
            anns_field="code",
            search_params={"metric_type": "HAMMING", "params": params},
        )
        return [(round(hit["distance"]), hit["id"]) for hit in hits]
