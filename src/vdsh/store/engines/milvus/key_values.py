"""The second collection of a store in Milvus: a key-value table, its keys sorted by subject."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vdsh.model import Model
from vdsh.store.engines.milvus.collection import Collection
from vdsh.store.engines.milvus.session import Session
from vdsh.store.engines.milvus.tables import LONGEST, chunks, values_schema
from vdsh.store.engines.milvus.where import from_key, in_parts, to_key
from vdsh.store.model import to_pieces

FETCHED = 200  # values of up to 64 KB in an answer
MANY_KEYS = 1000
FILE_PIECE = 48_000  # bytes of a file, 64,000 characters in base64
FIELDS = ["key", "value"]


class KeyValues(Collection):
    """Reads and writes meta/…/NUMBER, field/=NAME, label/=NAME, is/=WHAT, model/..., piece/..."""

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
        """Read all values under a prefix, without it in their names."""
        return {key.removeprefix(prefix): value for key, value in self._under(prefix)}

    def look_up(self, keys: Sequence[str]) -> dict[str, str]:
        """Read some values."""
        parts = [self.query(f"key in {some}", FIELDS) for some in in_parts(keys, FETCHED)]
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
        names = {from_key(key.removeprefix(f"{prefix}=")) for key, _ in self._under(prefix)}
        self._seen.setdefault(prefix, set()).update(names)
        return names

    def add_names(self, prefix: str, names: Iterable[str]) -> None:
        """Add names that are not there yet."""
        seen = self._seen.setdefault(prefix, set())
        new = {name: f"{prefix}={to_key(name)}" for name in set(names) - seen}
        self.write("", {key: "" for key in new.values() if len(key) <= LONGEST})
        seen.update(new)

    def write_model(self, model: Model) -> None:
        """Write a model's files."""
        pieces = to_pieces(model, FILE_PIECE)
        files = {
            f"model/{fingerprint}/{to_key(name)}/{number:08}": b64encode(data).decode()
            for fingerprint, name, number, data in pieces
        }
        self.write("", files)

    def model_pieces(self, fingerprint: str) -> list[tuple[str, bytes]]:
        """Read the names and bytes of a model's files, piece by piece, in order."""
        prefix = f"model/{fingerprint}/"
        pairs = [(key.removeprefix(prefix), value) for key, value in self._under(prefix)]
        return [(from_key(key.rpartition("/")[0]), b64decode(value)) for key, value in pairs]

    def _under(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the values under a prefix, in order; it ends in a slash, which "0" follows."""
        for page in self.pages(f'key > "{prefix}" and key < "{prefix[:-1]}0"', FETCHED, FIELDS):
            yield from ((row["key"], row["value"]) for row in page)
