"""Models of a store in Milvus: each has a collection of documents of its own.

Milvus can neither add a code to a document nor write to two collections at once, and Milvus Lite
has no aliases. So there is a new collection, and a key `meta/now/NUMBER` says which collection and
model the store has; the highest number counts. Keys of that kind are added and never replaced, so
there is always a whole one.

Each write gives its documents a new version. What the new collection lacks, has in another version
or has too much is what is left to do. When that is little, `meta/closing/NUMBER` is written, the
rest copied, and the store switches. Whoever finds that key behind its writing writes again, with
the new model: so what was acknowledged is in the new collection. Whoever has waited for long to
write takes the key away, for the other may have been killed; if not, it closes once more.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import orjson

from vdsh.codes import Codes
from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.store import reindex
from vdsh.store.engine import Stored, check_model
from vdsh.store.engines.milvus.collection import DocumentCollection, KeyValues
from vdsh.store.engines.milvus.session import MissingCollectionError, Session
from vdsh.store.engines.milvus.tables import chunks
from vdsh.store.engines.milvus.where import in_parts
from vdsh.store.model import from_pieces

MANY = 1000  # documents of up to 64 KB in an answer
COMPARED = 4000  # ids and versions that are compared at a time
PAUSE = 0.1  # seconds
CLOSED = 5.0  # seconds after which nobody is about to switch any more, but was killed
COLLECTION = "collection"
LANGUAGE = "language"  # a key under meta/, written with the first document
NOW, NEXT, CLOSING = "now", "next", "closing"  # keys under meta/, with a number behind
STAYS = "-"  # behind a number: the store stays as it is, whoever else has written that number
KEPT = ["id", "version", "code", "document", "pieces", "check_sum", "fields", "words"]

Row = Mapping[str, Any]
Read = Callable[[Sequence[Row]], dict[str, Stored]]


class State(NamedTuple):
    """What a store says about itself, the number of that, and the reindex under way."""

    facts: dict[str, str]
    number: int
    begun: str | None = None  # the fingerprint of the model that the store gets
    run: str = ""  # which process does it
    closing: bool = False  # whether it is about to switch


def read_state(values: KeyValues) -> State:
    """Read what the store says about itself now; a run that has switched is over."""
    found = values.under("meta/")
    newest = max((key for key in found if key.startswith(f"{NOW}/")), default="")
    if not newest:
        return State({}, 0)
    number = _number(newest)
    ahead = f"{number + 1:06}"
    begun, _, run = found.get(f"{NEXT}/{ahead}", "").partition(" ")
    closing = bool(begun) and f"{CLOSING}/{ahead}" in found
    facts = json.loads(found[newest])
    facts |= {key: found[key] for key in (LANGUAGE,) if key in found}
    return State(facts, number, begun or None, run, closing)


def _number(key: str) -> int:
    return int(key.partition("/")[2].removesuffix(STAYS))


class Models(reindex.Models):
    """Models and collections of a store; see `vdsh.store.reindex.Models`.

    `read` makes documents of rows. `shown`: the store, for people.
    """

    def __init__(self, session: Session, values: KeyValues, read: Read, shown: str) -> None:
        self._session = session
        self._values = values
        self._read = read
        self.shown = shown
        self._state = State({}, 0)  # of the reindex that this process does
        self._old = self._new = DocumentCollection(session, "")

    def create(self, facts: Mapping[str, str], model: Model, collection: str) -> None:
        """Make a store of a model; what it says about itself comes last."""
        self._values.write_model(model)
        DocumentCollection(self._session, collection).make(model.n_bits)
        self._add({**facts, COLLECTION: collection}, f"{1:06}")

    def load(self, fingerprint: str) -> Model:
        """Load a model that is kept inside; raise where the store has another one by now."""
        copies = self._values.model_copies(fingerprint)
        if not copies:
            check_model(read_state(self._values).facts, fingerprint)
        for copy in copies[:-1]:
            with suppress(FolderError):  # who wrote or removed it was killed in the middle of it
                return from_pieces(copy, fingerprint, self.shown)
        return from_pieces(copies[-1] if copies else [], fingerprint, self.shown)

    def write(
        self, fingerprint: str | None, n_bytes: int | None, work: Callable[[State], None]
    ) -> None:
        """Write so that a reindex that is under way has it too.

        `fingerprint` is of the model that made the codes; None where there are none. It raises
        where the store has other codes: then they must be made anew.
        """
        while True:
            state = self._writable()
            if fingerprint is not None:
                check_model(state.facts, fingerprint, n_bytes)
            work(state)
            after = read_state(self._values)
            if not after.closing and after.facts["uuid"] == state.facts["uuid"]:
                return

    def begin(self, model: Model, *, restart: bool) -> None:
        """Make a collection for the codes of another model, beside the store's own."""
        state = read_state(self._values)
        self.check_begun(state.begun, model.fingerprint, restart=restart)
        old, ahead = state.facts[COLLECTION], f"{state.number + 1:06}"
        new = f"{self._values.name}_{ahead}_{model.fingerprint[:8]}"
        self._state = State(state.facts, state.number, model.fingerprint, uuid.uuid4().hex)
        begun = f"{model.fingerprint} {self._state.run}"
        # First, or `forget` takes the rest, and others could not tell why theirs is dropped.
        self._values.write("meta/", {f"{NEXT}/{ahead}": begun})
        if state.begun != model.fingerprint:
            self._values.remove([f"meta/{CLOSING}/{ahead}"])
            self._drop(state.number + 1, old, new)
        self._values.write_model(model)  # again, where a run was killed in the middle of it
        self._old, self._new = (
            DocumentCollection(self._session, name, self._check_own) for name in (old, new)
        )
        self._new.make(model.n_bits)
        try:
            self._session.load(self._values.name, old, new)
        except MissingCollectionError:
            self._check_own()
            raise

    def unencoded(self, fingerprint: str, after: Row | None, size: int) -> list[reindex.Unencoded]:
        """Return the next documents that the new collection lacks or has in another version.

        What was deleted from the old one is deleted from the new one.
        """
        self._check_own()
        differing = self._differing("" if after is None else after["id"])
        while wanted := list(islice(differing, size)):
            parts = in_parts(wanted, MANY)
            rows = [row for some in parts for row in self._old.query(f"id in {some}", KEPT)]
            found = self._read(rows)  # not those that were deleted a moment ago
            rows = sorted((row for row in rows if row["id"] in found), key=lambda row: row["id"])
            if rows:
                return [reindex.Unencoded(row, found[row["id"]][0].text) for row in rows]
        return []

    def _differing(self, after: str) -> Iterator[str]:
        """Compare both collections behind an id, page by page; yield ids in another version."""
        ended = False
        while not ended:
            ours = self._old.page(after, "", COMPARED, ["id", "version"])
            versions, ended = {row["id"]: row["version"] for row in ours}, not ours
            above = f'id > "{after}"'
            after = after if ended else ours[-1]["id"]
            text = above if ended else f'{above} and id <= "{after}"'
            pages = self._new.pages(text, COMPARED, ["id", "version"])
            theirs = {row["id"]: row["version"] for page in pages for row in page}
            for some in in_parts(sorted(theirs.keys() - versions.keys()), MANY):
                self._new.call("delete", filter=f"id in {some}")
            yield from (id for id in versions if theirs.get(id) != versions[id])

    def put_codes(self, fingerprint: str, batch: Sequence[reindex.Unencoded], codes: Codes) -> None:
        """Copy documents with new codes."""
        entries = [_copy(one.key, code) for one, code in zip(batch, codes, strict=True)]
        self._check_own()
        for part in chunks(entries):
            self._new.call("upsert", part)

    def switch(self, model: Model) -> int:
        """Copy what is left while nobody writes, and make the new collection the store's."""
        number = self._state.number + 1
        n_left, facts, closed = 0, self._state.facts, False
        while not closed:
            self._check_own()
            self._values.write("meta/", {f"{CLOSING}/{number:06}": ""})
            n_left += self.encode_rest(model)
            closed = self._check_own().closing
        new = facts | reindex.switched(facts, model) | {COLLECTION: self._new.name}
        self._add(new, f"{number:06}")
        if not self._there(self._new.name):  # `compact` has dropped it in the last moment
            self._add(facts, f"{number + 1:06}")
        if read_state(self._values).facts["uuid"] != new["uuid"]:
            self.check_own(None, model.fingerprint)
        self._drop(number, self._new.name)
        return n_left

    def forget(self) -> None:
        """Remove models that the store does not use, and codes that were never finished."""
        state = self._after_closing(min(CLOSED, self._session.wait))
        facts = {key: value for key, value in state.facts.items() if key != reindex.PREVIOUS}
        stays = f"{state.number + 1:06}{STAYS}"
        self._add(facts, stays)
        if not self._there(facts[COLLECTION]):  # in that moment the store has got another
            self._values.remove([f"meta/{NOW}/{stays}"])
            if read_state(self._values).number == state.number:
                raise FolderError(f"The documents of '{self.shown}' are gone. Restore a copy.")
            return self.forget()
        self._drop(state.number + 1, facts[COLLECTION])
        kept = self._values.under("model/")
        now = read_state(self._values)  # another may have begun meanwhile
        used = (now.facts["fingerprint"], now.begun)
        doomed = [key for key in kept if key.partition("/")[0] not in used]
        self._values.remove([f"model/{key}" for key in doomed])

    def _writable(self) -> State:
        """Read what the store is, when it is not about to switch."""
        state = self._after_closing(self._session.wait)
        if state.closing:
            self._values.remove([f"meta/{CLOSING}/{state.number + 1:06}"])
        return state

    def _after_closing(self, seconds: float) -> State:
        """Read what the store is; wait so long where it is about to switch."""
        deadline = time.monotonic() + seconds
        while (state := read_state(self._values)).closing and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return state

    def _check_own(self) -> State:
        mine, now = self._state, read_state(self._values)
        self.check_own(now.begun if now.number == mine.number else None, mine.begun or "")
        if now.run != mine.run:
            raise InputError(
                f"Another process has taken over encoding '{self.shown}' with this model. Let it "
                "finish."
            )
        return now

    def _add(self, facts: Mapping[str, str], number: str) -> None:
        """Say what the store is from now on."""
        key = f"{NOW}/{number}"
        self._values.write("meta/", {key: json.dumps(facts)})
        others = [one for one in self._values.under("meta/") if one.startswith(f"{NOW}/")]
        older = [one for one in others if _number(one) < _number(key)]
        self._values.remove([f"meta/{one}" for one in older])

    def _there(self, collection: str) -> bool:
        return collection in self._session.call("list_collections")

    def _drop(self, number: int, *kept: str) -> None:
        """Drop collections up to a number; this may come late, and later ones are in use."""
        name = self._values.name
        ours = re.compile(rf"{name.removesuffix('_vdsh')}|{name}_(\d+)_[0-9a-f]{{8}}")
        now = read_state(self._values).facts[COLLECTION]
        for found in self._session.call("list_collections"):
            match = ours.fullmatch(found)
            if match and int(match[1] or 0) <= number and found not in (*kept, now):
                self._session.call("drop_collection", found)


def _copy(row: Row, code: Codes) -> dict[str, Any]:
    fields = row["fields"]
    if not isinstance(fields, str):
        fields = orjson.dumps(fields).decode()
    return {**row, "fields": fields, "code": code.tobytes()}
