"""A new model under an old store: documents are copied with new codes, and one note switches.

Milvus can neither add a code to a document nor write to two collections at once. So there is a new
collection, nobody writes while it is filled, and a note `meta/now/NUMBER` says which collection and
model the store has; the highest number counts. Notes of that kind are added and never replaced, so
there is always a whole one. A run notes in `meta/next` which number it is going to be, and writers
look for that before and after: what was acknowledged is in the old collection when copying begins.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from vdsh.codes import Codes
from vdsh.errors import EngineError
from vdsh.model import Model
from vdsh.store.engines.milvus.collection import DocumentCollection
from vdsh.store.engines.milvus.notes import Notes
from vdsh.store.engines.milvus.session import Session
from vdsh.store.engines.milvus.tables import chunks, documents_schema, to_words
from vdsh.store.found import Found
from vdsh.store.model import from_files, load_model, to_files
from vdsh.store.reindexing import (
    NEXT,
    PREVIOUS,
    check_begun,
    check_codes,
    check_own,
    name_of,
    read_previous,
)

BATCH = 1000  # documents of up to 64 KB
MESSAGE = 16_000_000  # bytes
COLLECTION = "collection"
NOW, LAST = "now/", "last"  # notes under meta/
KEPT = ["id", "code", "document", "pieces", "fields"]

Read = Callable[[Sequence[Mapping[str, Any]]], list[Found]]
Progress = Callable[[int], None]


class State(NamedTuple):
    """What a store says about itself, the number of that, and what a run has noted."""

    meta: dict[str, str]
    number: int
    begun: str | None
    last: str


def read_state(notes: Notes) -> State:
    """Read what the store says about itself now; a run that has switched is no longer noted."""
    found = notes.under("meta/")
    newest = max((key for key in found if key.startswith(NOW)), default="")
    meta = {key: value for key, value in found.items() if not key.startswith(NOW)}
    meta |= json.loads(found[newest]) if newest else {}
    number = int(newest.removeprefix(NOW) or 1)
    of, _, begun = meta.pop(NEXT, "").partition(" ")
    last = meta.pop(LAST, "")
    if of != str(number + 1):
        return State(meta, number, None, "")
    return State(meta, number, begun, last)


class Reencoding:
    """Encodes the documents of a store anew.

    Parameters
    ----------
    session : Session
    notes : Notes
    shown : str
        The store, for people.
    name : str
        Of its first collection.
    """

    def __init__(self, session: Session, notes: Notes, shown: str, name: str) -> None:
        self._session = session
        self._notes = notes
        self._shown = shown
        self._name = name

    def check_codes(self, known: str) -> None:
        """Raise where the store has other codes than those known."""
        check_codes(read_state(self._notes).meta.get("uuid"), known)

    def check_writable(self, known: str) -> None:
        """Raise where the store has other codes than those known, or is getting others."""
        state = read_state(self._notes)
        check_codes(state.meta.get("uuid"), known)
        if state.begun is not None:
            raise EngineError(
                f"'{self._shown}' is being encoded with another model, and nobody can write to "
                "Milvus meanwhile. Write again when vdsh reindex has ended. Was it interrupted? "
                "Start it again, or drop it with vdsh compact."
            )

    def run(self, model: Model, read: Read, *, restart: bool, progress: Progress | None) -> None:
        """Copy all documents with codes of another model, and switch to it."""
        state = self._begin(model, restart=restart)
        check = partial(self._check_own, model, state)
        old = DocumentCollection(self._session, state.meta.get(COLLECTION, self._name), check)
        new, last = self._collection_of(model, state), state.last
        while rows := old.page(last, "", BATCH, KEPT):
            check()
            texts = [found.document.text for found in read(rows)]
            entries = list(map(_copy, rows, model.encode(texts), to_words(texts)))
            for part in chunks(entries, MESSAGE):
                self._session.call("upsert", new, part)
            last = rows[-1]["id"]
            self._notes.write("meta/", {LAST: last})
            if progress is not None:
                progress(len(rows))
        check()
        self._switch(model, state, new)
        self._drop_all_but(new)

    def previous(self) -> Model:
        """Load the model that the store had before."""
        known = json.loads(read_state(self._notes).meta.get(PREVIOUS, "[null, null]"))
        name = read_previous(self._shown, known[0])
        return load_model(name) if Path(name).is_absolute() else self.load(known[1])

    def load(self, fingerprint: str) -> Model:
        """Load a model that is kept inside."""
        return from_files(self._notes.files(fingerprint))

    def forget(self) -> None:
        """Remove models that the store does not use, and codes that were never finished."""
        state = read_state(self._notes)
        self._add({key: v for key, v in state.meta.items() if key != PREVIOUS}, state.number + 1)
        self._drop_all_but(state.meta.get(COLLECTION, self._name))
        used = f"{state.meta['fingerprint']}/"
        keys = [key for key in self._notes.under("model/") if not key.startswith(used)]
        self._notes.remove([f"model/{key}" for key in keys])

    def _begin(self, model: Model, *, restart: bool) -> State:
        state = read_state(self._notes)
        check_begun(self._shown, state.begun, model.fingerprint, restart=restart)
        old, new = state.meta.get(COLLECTION, self._name), self._collection_of(model, state)
        if state.begun != model.fingerprint:
            self._drop_all_but(old)
            self._notes.remove([f"meta/{LAST}"])
            self._notes.write("meta/", {NEXT: f"{state.number + 1} {model.fingerprint}"})
            state = state._replace(begun=model.fingerprint, last="")
        if self._notes.files(model.fingerprint) != (files := to_files(model)):
            self._notes.write_files(model.fingerprint, files)
        schema = documents_schema(model.n_bits)
        self._notes.create_collection(new, schema, "code", "bm25")
        self._session.load(self._notes.name, old, new)
        return state

    def _check_own(self, model: Model, state: State) -> None:
        now = read_state(self._notes)
        begun = now.begun if now.number == state.number else None
        check_own(self._shown, begun, model.fingerprint)

    def _switch(self, model: Model, state: State, collection: str) -> None:
        before = json.dumps([json.dumps(state.meta["model"]), state.meta["fingerprint"]])
        new = {
            "uuid": uuid.uuid4().hex,
            "fingerprint": model.fingerprint,
            "n_bits": str(model.n_bits),
            "keep_model": "inside",
            "model": name_of(model),
            "words": "bm25",
            COLLECTION: collection,
            PREVIOUS: before,
        }
        self._add(state.meta | new, state.number + 1)

    def _add(self, meta: Mapping[str, str], number: int) -> None:
        """Say what the store is from now on."""
        self._notes.write(f"meta/{NOW}", {f"{number:06}": json.dumps(meta)})
        older = [key for key in self._notes.under(f"meta/{NOW}") if int(key) < number]
        over = [*(f"{NOW}{key}" for key in older), NEXT, LAST]
        self._notes.remove([f"meta/{key}" for key in over])

    def _collection_of(self, model: Model, state: State) -> str:
        return f"{self._notes.name}_{state.number + 1}_{model.fingerprint[:8]}"

    def _drop_all_but(self, kept: str) -> None:
        """Drop collections of documents that the store does not use."""
        ours = re.compile(rf"{self._name}|{self._notes.name}_\d+_[0-9a-f]{{8}}")
        for name in self._session.call("list_collections"):
            if ours.fullmatch(name) and name != kept:
                self._session.call("drop_collection", name)


def _copy(row: Mapping[str, Any], code: Codes, words: str) -> dict[str, Any]:
    fields = row["fields"]
    if not isinstance(fields, str):
        fields = orjson.dumps(fields).decode()
    return {**row, "fields": fields, "code": code.tobytes(), "words": words}
