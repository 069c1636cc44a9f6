"""The second collection of a store in Milvus: a key-value table, its keys sorted by subject."""

from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pymilvus.milvus_client.index import IndexParams

from vdsh.model import Model
from vdsh.store.engines.milvus.session import Session
from vdsh.store.engines.milvus.tables import LONGEST, chunks, model_values, values_schema
from vdsh.store.engines.milvus.where import from_key, in_parts, to_key
from vdsh.words.index import K1, B

FETCHED = 200  # values of up to 64 KB in an answer
MANY_KEYS = 1000
BM25 = {"bm25_k1": K1, "bm25_b": B}


class KeyValues:
    """Reads and writes meta/…/NUMBER, field/=NAME, label/=NAME, is/=WHAT, model/..., piece/..."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name
        self._seen: dict[str, set[str]] = {}  # names that are surely there

    def create(self) -> None:
        """Make the collection, unless it is there."""
        self.create_collection(self.name, values_schema(), "nothing")
        self._session.load(self.name)

    def create_collection(self, name: str, schema: Any, vector: str, words: str = "") -> None:
        """Make a collection, unless it is there, with an index of codes, and of words if any."""
        index = IndexParams()
        index.add_index(vector, index_type="BIN_FLAT", metric_type="HAMMING", params={})
        if words:
            index.add_index(words, "SPARSE_INVERTED_INDEX", metric_type="BM25", params=BM25)
        # Each answer shows all writes.
        self._session.call("create_collection", name, schema=schema, consistency_level="Strong")
        self._session.call("create_index", name, index, sync=False)

    def write(self, prefix: str, values: Mapping[str, str]) -> None:
        """Write values."""
        rows = [
            {"key": prefix + key, "value": value, "nothing": b"\0"} for key, value in values.items()
        ]
        for part in chunks(rows):
            self._session.call("upsert", self.name, part)

    def under(self, prefix: str) -> dict[str, str]:
        """Read all values under a prefix, without it in their names."""
        return {key.removeprefix(prefix): value for key, value in self._under(prefix)}

    def look_up(self, keys: Sequence[str]) -> dict[str, str]:
        """Read some values."""
        found: dict[str, str] = {}
        for some in in_parts(keys, FETCHED):
            found |= {row["key"]: row["value"] for row in self._query(f"key in {some}")}
        return found

    def remove(self, keys: Sequence[str]) -> None:
        """Delete values."""
        for some in in_parts(keys, MANY_KEYS):
            self._session.call("delete", self.name, filter=f"key in {some}")

    def names(self, prefix: str) -> set[str]:
        """Read the names that were added under a prefix, by this process or another."""
        names = {from_key(key.removeprefix(f"{prefix}=")) for key, _ in self._under(prefix)}
        self._seen.setdefault(prefix, set()).update(names)
        return names

    def add_names(self, prefix: str, names: Collection[str]) -> None:
        """Add names that are not there yet."""
        seen = self._seen.setdefault(prefix, set())
        new = {name: f"{prefix}={to_key(name)}" for name in set(names) - seen}
        self.write("", {key: "" for key in new.values() if len(key) <= LONGEST})
        seen.update(new)

    def write_model(self, model: Model) -> None:
        """Write a model's files."""
        self.write("", dict(model_values(model)))

    def model_pieces(self, fingerprint: str) -> list[tuple[str, bytes]]:
        """Read the names and bytes of a model's files, piece by piece, in order."""
        prefix = f"model/{fingerprint}/"
        pairs = [(key.removeprefix(prefix), value) for key, value in self._under(prefix)]
        return [(from_key(key.rpartition("/")[0]), b64decode(value)) for key, value in pairs]

    def _under(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the values under a prefix, in order; it ends in a slash."""
        last, end = prefix, prefix[:-1] + chr(ord("/") + 1)
        while rows := self._query(
            f'key > "{last}" and key < "{end}"',
            limit=FETCHED,
            iterator="True",
            reduce_stop_for_best="True",
        ):
            rows.sort(key=lambda row: str(row["key"]))
            yield from ((row["key"], row["value"]) for row in rows)
            last = rows[-1]["key"]

    def _query(self, text: str, **options: Any) -> list[dict[str, Any]]:
        fields = ["key", "value"]
        rows = self._session.call("query", self.name, filter=text, output_fields=fields, **options)
        return list(rows)


class Remembered:
    """See `vdsh.store.engine.KeyValues`; they lie under `own/`."""

    def __init__(self, values: KeyValues) -> None:
        self._values = values

    def under(self, prefix: str) -> dict[str, str]:
        """Read all values under a prefix."""
        found = self._values.under(f"own/{to_key(prefix)}")
        return {from_key(key): value for key, value in found.items()}

    def write(self, prefix: str, values: Mapping[str, str]) -> None:
        """Write values."""
        self._values.write("own/", {to_key(prefix + key): one for key, one in values.items()})

    def remove(self, keys: Sequence[str]) -> None:
        """Remove values."""
        self._values.remove([f"own/{to_key(key)}" for key in keys])
