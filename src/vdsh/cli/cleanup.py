"""`vdsh duplicates` and `delete`: documents with nearly the same text, and out of a store."""

import json
import sys
from typing import TYPE_CHECKING

import typer

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import at_terminal, columns, confirm, say
from vdsh.documents.document import in_batches, is_id
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.store import Duplicates, Store

EXAMPLES = dict.fromkeys(
    ("delete", "duplicates"),
    "Example: vdsh duplicates news-store --keep first | vdsh delete news-store -",
)
MUCH = 0.1  # share of a store that is not deleted unasked
PART = 1000  # ids that are looked up together


def duplicates(
    store: str = options.STORE,
    similarity: float = option(
        0.8, "Least share of word pairs in common (Jaccard), from 0.1 to 1."
    ),
    keep: str | None = option(
        None, "`first`: print only the ids that a clean-up would delete, one a line."
    ),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Print groups of near-duplicates: a document, and others with nearly the same text.

    In a pipe each of the others is a line of distance, similarity, its id and that of the document
    that is kept, with tabs between them.
    """
    from vdsh.progress import progress_bar

    if keep not in (None, "first"):
        raise InputError(f"--keep knows only first. Got '{keep}'.")
    n_groups = n_others = 0
    with vdsh.open_store(store, create=False) as opened, progress_bar(enabled=not quiet) as bar:
        bar.add_task("comparing", total=None)
        for group in opened.duplicates(similarity=similarity):
            n_groups += 1
            n_others += len(group.others)
            if keep:
                for name, _, _ in group.others:
                    # typer.echo would leave out what commands a terminal
                    sys.stdout.write(_to_delete(name, as_json=as_json))
            else:
                _print_group(group, as_json=as_json)
    if not as_json:
        typer.echo(
            f"{n_groups:,} groups; {n_others:,} documents are at least {similarity:g} similar to "
            "the first of their group.",
            err=True,
        )


def _to_delete(id: str, *, as_json: bool) -> str:
    """Write an id so that `vdsh delete` reads the same one."""
    if as_json:
        return json.dumps(id) + "\n"
    if not is_id(id):  # of a store that something else wrote
        raise InputError(f"The id {id!r} has control characters. List ids with --json.")
    return f"{id}\n"


def _print_group(group: "Duplicates", *, as_json: bool) -> None:
    """Print a group below the document that is kept; in a pipe, a line for each of the others."""
    from vdsh.words.passages import one_line

    names = ("id", "distance", "similarity")
    others = [dict(zip(names, other, strict=True)) for other in group.others]
    if at_terminal():
        lines = [one_line(group.keep)]
        for name, distance, similarity in group.others:
            lines.append(f"{distance:>5}  {similarity:.3f}  {one_line(name)}")
    else:
        lines = columns(
            (str(distance), f"{similarity:.3f}", name, group.keep)
            for name, distance, similarity in group.others
        )
    say({"keep": group.keep, "others": others}, *lines, as_json=as_json)


def delete(
    store: str = options.STORE,
    ids: list[str] = argument(
        ..., "Ids, or - for one per line on stdin; with --json each is a JSON string."
    ),
    yes: bool = option(False, "Do not ask before deleting more than a tenth.", "--yes"),
    as_json: bool = options.JSON,
) -> None:
    """Delete documents by id; unknown ids are ignored."""
    from_stdin = ids == ["-"]
    if from_stdin:  # to the end: nothing is deleted before it is known how much
        ids = _read_ids(as_json=as_json)
    with vdsh.open_store(store, create=False) as opened:
        if not yes:
            _check_amount(opened, sorted(set(ids)), from_stdin)
        deleted, left = opened.delete(ids), opened.count()
    line = f"Deleted {deleted:,} of {len(ids):,}; {left:,} documents are left."
    say({"deleted": deleted, "documents": left}, line, as_json=as_json)


def _read_ids(*, as_json: bool) -> list[str]:
    """Read ids from standard input, exactly as they were written."""
    lines = [line.removesuffix(b"\r") for line in sys.stdin.buffer.read().split(b"\n")]
    try:
        ids = [line.decode() for line in lines if line.strip()]
        ids = [json.loads(id) for id in ids] if as_json else ids
        if not all(isinstance(id, str) for id in ids):
            raise ValueError("no id")
        return ids
    except UnicodeDecodeError as error:
        raise InputError("Standard input is not UTF-8. Nothing was deleted.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            'With --json, each line of standard input is an id as JSON, such as "a". Nothing was '
            "deleted; leave --json out for plain ids."
        ) from error


def _check_amount(store: "Store", ids: list[str], from_stdin: bool) -> None:
    """Ask a person, or raise, where much of the store would go."""
    n_documents = store.count()
    if len(ids) <= MUCH * n_documents:
        return
    n_there = sum(store.count({"id": {"in": part}}) for part in in_batches(ids, PART))
    if n_there <= MUCH * n_documents:
        return
    confirm(
        f"Delete {n_there:,} of {n_documents:,} documents?",
        "That is more than a tenth",
        "Nothing was deleted",
        "add --yes if it is meant.",
        from_stdin=from_stdin,
    )
