"""Questions before much of a store goes, and which documents an index run replaces."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vdsh.documents.document import in_batches
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.documents import Document
    from vdsh.store import Store

MUCH = 0.5  # share of a store that is not replaced unasked
MOST_WAITING = 100_000  # documents in memory
TERMINAL = "CON" if os.name == "nt" else "/dev/tty"
_TOGETHER = 500  # ids that are looked up together


class Replacing:
    """The order in which documents are written, so that none is lost before somebody agrees.

    Those that replace another text come last; where they are most of the store, or more than fit
    into memory, a person is asked first. `count` is how many ids were in the store already.
    """

    def __init__(self, store: "Store", *, agreed: bool, from_stdin: bool) -> None:
        self.count = 0
        self._store = store
        self._n_before = store.count()
        self._agreed = agreed
        self._from_stdin = from_stdin

    def order(self, documents: "Iterable[Document]") -> "Iterator[Document]":
        """Give all documents; of those with the same id the last one stays the last."""
        waiting: dict[str, Document] = {}
        for batch in in_batches(documents, _TOGETHER):
            texts = self._store.texts([one.id for one in batch]) if self._n_before else {}
            self.count += len(texts)
            for one in batch:
                is_same = texts.get(one.id, one.text) == one.text
                if self._agreed or (is_same and one.id not in waiting):
                    yield one
                else:
                    waiting[one.id] = one
            if len(waiting) > min(MUCH * self._n_before, MOST_WAITING):
                self._ask(len(waiting))
                yield from waiting.values()
                waiting.clear()
        yield from waiting.values()

    def _ask(self, number: int) -> None:
        confirm(
            f"Replace {number:,} of {self._n_before:,} documents by others with the same ids?",
            "That is much of the store",
            "Nothing was replaced",
            "add --replace if it is meant, or name the field of the ids with --id-field.",
            from_stdin=self._from_stdin,
        )
        self._agreed = True


def confirm(question: str, reason: str, kept: str, advice: str, *, from_stdin: bool) -> None:
    """Ask a person; raise where nobody is there, or does not agree."""
    if (agreed := _ask(question, from_stdin)) is None:
        raise InputError(
            f"{question} {reason}, and there is no terminal to ask on. {kept}; {advice}"
        )
    if not agreed:
        raise InputError(f"{kept}.")


def _ask(question: str, from_stdin: bool) -> bool | None:
    """Ask on the terminal; return None where there is none."""
    if not from_stdin and not sys.stdin.isatty():
        return None
    try:  # not stdin and stderr: one brings the data, the other may go to a file
        with open(TERMINAL) as keyboard, open(TERMINAL, "w") as screen:
            if sys.stderr.isatty():  # a bar that is shown there keeps lines above it, and no others
                print(f"{question} [y/N]", file=sys.stderr, flush=True)  # noqa: T201
            else:
                screen.write(f"{question} [y/N] ")
                screen.flush()
            return keyboard.readline().strip().lower() in ("y", "yes")
    except OSError:
        return None
