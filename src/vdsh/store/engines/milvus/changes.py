"""Which documents were written while a run gives the store other codes.

A writer notes the ids of its documents before it writes them, as open, and again behind, as done.
The run copies again what is noted as done, and forgets the note. What is still open when it is
about to switch belongs to a writer that has not been answered yet, or never will be: it is copied
once more too, as it is in the old collection.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence

from vdsh.store.engines.milvus.notes import Notes
from vdsh.store.engines.milvus.tables import LONGEST

CHANGED = "changed/"
OPEN, DONE = f"{CHANGED}open/", f"{CHANGED}done/"


def note_changes(notes: Notes, keys: Sequence[str], write: Callable[[], None]) -> None:
    """Write documents, and note their ids before and behind."""
    name = uuid.uuid4().hex
    lists = {f"{name}/{number:06}": value for number, value in enumerate(_lists(keys))}
    notes.write(OPEN, lists)
    write()
    notes.write(DONE, lists)
    notes.remove([f"{OPEN}{name}" for name in lists])


def copy_changes(notes: Notes, copy: Callable[[list[str]], None], prefix: str) -> int:
    """Copy all documents that are noted, and forget the notes; return how many notes there were."""
    found = notes.under(prefix)
    for name, value in found.items():
        copy(value.split("\n"))
        notes.remove([f"{prefix}{name}"])
    return len(found)


def _lists(keys: Sequence[str]) -> Iterator[str]:
    """Join keys, as many as a note can hold."""
    part: list[str] = []
    size = 0
    for key in keys:
        if part and size + len(key) > LONGEST:
            yield "\n".join(part)
            part, size = [], 0
        part.append(key)
        size += len(key) + 1
    yield "\n".join(part)
