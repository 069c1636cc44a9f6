"""A new model under an old store: documents are copied with new codes, and one note switches.

Milvus can neither add a code to a document nor write to two collections at once. So there is a new
collection, and a note `meta/now/NUMBER` says which collection and model the store has; the highest
number counts. Notes of that kind are added and never replaced, so there is always a whole one.

A run notes in `meta/next` which number it is going to be. From then on writers, who look for that
before and after, note which documents they change, and the run copies those again (see `changes`).
When few are left it notes `meta/closing`, copies them and switches. Whoever sees that note behind
its writing waits for the switch, and writes again with the new model; whoever does not has noted
its documents before, so the run still sees them. Writes are thus in the new collection when they
are acknowledged, or will be when it is the store's.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from vdsh.codes import Codes
from vdsh.errors import EngineError, InputError
from vdsh.model import Model
from vdsh.store.engines.milvus.changes import CHANGED, DONE, copy_changes, note_changes
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
PAUSE = 0.1  # seconds
FEW = 10  # notes of what was written meanwhile that are copied while nobody writes
COLLECTION = "collection"
NOW, LAST, RUN, CLOSING = "now/", "last", "run", "closing"  # notes under meta/
KEPT = ["id", "code", "document", "pieces", "fields"]

Row = Mapping[str, Any]
Read = Callable[[Sequence[Row]], dict[str, Found]]
Progress = Callable[[int], None]


class State(NamedTuple):
    """What a store says about itself, the number of that, and what a run has noted."""

    meta: dict[str, str]
    number: int
    begun: str | None = None  # the fingerprint of the model that the store gets
    last: str = ""  # the last document that was copied
    run: str = ""  # which process does it
    closing: bool = False  # whether it is about to switch


def read_state(notes: Notes) -> State:
    """Read what the store says about itself now; a run that has switched is no longer noted."""
    found = notes.under("meta/")
    newest = max((key for key in found if key.startswith(NOW)), default="")
    meta = {key: value for key, value in found.items() if not key.startswith(NOW)}
    meta |= json.loads(found[newest]) if newest else {}
    number = int(newest.removeprefix(NOW) or 1)
    begun, last, run, closing = (meta.pop(key, "") for key in (NEXT, LAST, RUN, CLOSING))
    of, _, fingerprint = begun.partition(" ")
    if of != str(number + 1):
        return State(meta, number)
    return State(meta, number, fingerprint, last, run, closing == begun)


class Reencoding:
    """Encodes the documents of a store anew.

    Parameters
    ----------
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

    def note_changes(self, known: str, keys: Sequence[str], write: Callable[[], None]) -> None:
        """Write documents so that a run which is under way has them too.

        Raises where the store has other codes than those known: then they must be made anew.
        """
        state = self._writable(known)
        while True:
            if state.begun is None:
                write()
            else:
                note_changes(self._notes, keys, write)
            before, state = state, self._writable(known)
            if state.begun is None or _same_run(state, before):
                return

    def run(self, model: Model, read: Read, *, restart: bool, progress: Progress | None) -> None:
        """Copy all documents with codes of another model, and switch to it."""
        state = self._begin(model, restart=restart)
        check = partial(self._check_own, model, state)
        old = DocumentCollection(self._session, state.meta.get(COLLECTION, self._name), check)
        new = DocumentCollection(self._session, self._collection_of(model, state), check)
        last, end = state.last, old.highest()  # what comes behind that is noted

        def copy(rows: Sequence[Row]) -> None:
            found = read(rows)  # not those that were deleted a moment ago
            texts = [found[row["id"]].document.text for row in rows if row["id"] in found]
            kept = [row for row in rows if row["id"] in found]
            entries = list(map(_copy, kept, model.encode(texts), to_words(texts))) if kept else []
            check()
            for part in chunks(entries, MESSAGE):
                new.call("upsert", part)

        def copy_again(keys: Sequence[str]) -> None:
            for first in range(0, len(keys), BATCH):
                some = keys[first : first + BATCH]
                rows = old.query(_these(some), KEPT)
                copy(rows)
                gone = sorted({*some} - {row["id"] for row in rows})
                if gone:
                    new.call("delete", filter=_these(gone))

        while last < end and (rows := old.page(last, "", BATCH, KEPT)):
            copy(rows)
            last = rows[-1]["id"]
            self._notes.write("meta/", {LAST: last})
            if progress is not None:
                progress(len(rows))
        before, left = inf, copy_changes(self._notes, copy_again, DONE)
        while FEW < left < before:  # writers who are as fast as this cannot be caught up with
            before, left = left, copy_changes(self._notes, copy_again, DONE)
        check()
        self._notes.write("meta/", {CLOSING: f"{state.number + 1} {model.fingerprint}"})
        copy_changes(self._notes, copy_again, CHANGED)
        check()
        self._switch(model, state, new.name)
        self._drop_all_but(new.name)

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
        self._notes.remove([f"{CHANGED}{key}" for key in self._notes.under(CHANGED)])

    def _writable(self, known: str) -> State:
        """Read what the store is; wait where it is about to switch, and raise where it has."""
        deadline = time.monotonic() + self._session.wait
        while True:
            state = read_state(self._notes)
            check_codes(state.meta.get("uuid"), known)
            if not state.closing:
                return state
            if time.monotonic() > deadline:
                raise EngineError(
                    f"'{self._shown}' is about to get another model, for {self._session.wait:g} s "
                    "now, and nobody can write in that moment. Was vdsh reindex killed? Start it "
                    "again, or drop it with vdsh compact."
                )
            time.sleep(PAUSE)

    def _begin(self, model: Model, *, restart: bool) -> State:
        state = read_state(self._notes)
        check_begun(self._shown, state.begun, model.fingerprint, restart=restart)
        old, new = state.meta.get(COLLECTION, self._name), self._collection_of(model, state)
        if state.begun != model.fingerprint:
            self._drop_all_but(old)
            self._notes.remove([f"meta/{LAST}", f"meta/{CLOSING}"])
            self._notes.write("meta/", {NEXT: f"{state.number + 1} {model.fingerprint}"})
            state = State(state.meta, state.number, model.fingerprint)
        state = state._replace(run=uuid.uuid4().hex)
        self._notes.write("meta/", {RUN: state.run})
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
        if now.run != state.run:
            raise InputError(
                f"Another process encodes '{self._shown}' with this model now, from where this one "
                "was. Leave it to that."
            )

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
        over = [*(f"{NOW}{key}" for key in older), NEXT, LAST, RUN, CLOSING]
        self._notes.remove([f"meta/{key}" for key in over])

    def _collection_of(self, model: Model, state: State) -> str:
        return f"{self._notes.name}_{state.number + 1}_{model.fingerprint[:8]}"

    def _drop_all_but(self, kept: str) -> None:
        """Drop collections of documents that the store does not use."""
        ours = re.compile(rf"{self._name}|{self._notes.name}_\d+_[0-9a-f]{{8}}")
        for name in self._session.call("list_collections"):
            if ours.fullmatch(name) and name != kept:
                self._session.call("drop_collection", name)


def _same_run(one: State, other: State) -> bool:
    return (one.number, one.begun) == (other.number, other.begun)


def _these(keys: Sequence[str]) -> str:
    """Write an expression for some documents."""
    return "id in [" + ", ".join([f'"{key}"' for key in keys]) + "]"


def _copy(row: Row, code: Codes, words: str) -> dict[str, Any]:
    fields = row["fields"]
    if not isinstance(fields, str):
        fields = orjson.dumps(fields).decode()
    return {**row, "fields": fields, "code": code.tobytes(), "words": words}
