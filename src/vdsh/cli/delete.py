"""`vdsh delete`: documents out of a store."""

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.store import Store

EXAMPLE = "Example: vdsh duplicates news-store --keep first | vdsh delete news-store -"
MUCH = 0.1  # share of a store that is not deleted unasked
PART = 1000  # ids that are looked up together
TERMINAL = "CON" if os.name == "nt" else "/dev/tty"


def command(
    store: options.Store,
    ids: Annotated[
        list[str], typer.Argument(help="Ids, or - for one a line on stdin.", show_default=False)
    ],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before deleting more than a tenth.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Remove documents by their ids; ids that are not there are passed over."""
    from vdsh.store import open_store

    from_stdin = ids == ["-"]
    if from_stdin:  # to the end: nothing is deleted before it is known how much
        ids = [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    with open_store(store) as opened:
        if not yes:
            _check_amount(opened, sorted(set(ids)), from_stdin)
        deleted, left = opened.delete(ids), opened.count()
    if as_json:
        typer.echo(json.dumps({"deleted": deleted, "documents": left}))
    else:
        typer.echo(f"Deleted {deleted:,} of {len(ids):,}; {left:,} documents are left.")


def _check_amount(store: "Store", ids: list[str], from_stdin: bool) -> None:
    """Ask a person, or raise, where much of the store would go."""
    n_documents = store.count()
    if len(ids) <= MUCH * n_documents:
        return
    parts = [ids[first : first + PART] for first in range(0, len(ids), PART)]
    n_there = sum(store.count({"id": {"in": part}}) for part in parts)
    if n_there <= MUCH * n_documents:
        return
    question = f"Delete {n_there:,} of {n_documents:,} documents?"
    if (agreed := _ask(question, from_stdin)) is None:
        raise InputError(
            f"{question} That is more than a tenth, and there is no terminal to ask on. "
            "Nothing was deleted; add --yes if it is meant."
        )
    if not agreed:
        raise InputError("Nothing was deleted.")


def _ask(question: str, from_stdin: bool) -> bool | None:
    """Ask on the terminal; return None where there is none."""
    if not from_stdin and not sys.stdin.isatty():
        return None
    try:  # not stdin and stderr: one brings the ids, the other may go to a file
        with open(TERMINAL) as keyboard, open(TERMINAL, "w") as screen:
            screen.write(f"{question} [y/N] ")
            screen.flush()
            return keyboard.readline().strip().lower() in ("y", "yes")
    except OSError:
        return None
