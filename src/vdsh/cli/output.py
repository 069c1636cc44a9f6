"""What verbs print and ask; where to: standard output, or a file that is whole or absent."""

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

import typer

from vdsh.errors import InputError, VdshError, WriteError
from vdsh.files import check_new, new_file

if TYPE_CHECKING:
    from vdsh.codes import Codes
    from vdsh.store import Hits

NOTHING = "Nothing found."
TERMINAL = "CON" if os.name == "nt" else "/dev/tty"
# Control characters, ends of lines and marks of direction. No id has any but the last.
_NOT_IN_CELLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
)


def say(facts: "Mapping[str, Any] | list[Any]", *lines: str, as_json: bool) -> None:
    """Print facts as JSON for a program, a line each, or lines for a person."""
    several = facts if isinstance(facts, list) else [facts]
    for line in (json.dumps(one, ensure_ascii=False) for one in several) if as_json else lines:
        typer.echo(line)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lay rows out in columns.

    >>> aligned([("bit", "words"), ("0", "orbit")])
    ['bit  words', '0    orbit']
    """
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def confirm(question: str, reason: str, kept: str, advice: str, *, from_stdin: bool) -> None:
    """Ask a person; raise where nobody is there, or does not agree."""
    from vdsh.progress import paused

    answer = None
    if from_stdin or sys.stdin.isatty():
        # Not stdin and stderr: one brings the data, the other may go to a file.
        with suppress(OSError), open(TERMINAL) as keyboard, open(TERMINAL, "w") as screen, paused():
            screen.write(f"{question} [y/N] ")
            screen.flush()
            answer = keyboard.readline().strip().lower()
    if answer is None:
        raise InputError(
            f"{question} {reason}, and there is no terminal to ask on. {kept}; {advice}"
        )
    if answer not in ("y", "yes"):
        raise InputError(f"{kept}.")


@contextmanager
def output(path: str | None, *, force: bool) -> Iterator[TextIO]:
    """Give a file to write to; one with a name appears whole or not at all."""
    if path is None:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except (BrokenPipeError, VdshError):  # some of our errors are OSErrors too
            raise
        except OSError as error:
            raise WriteError(f"Could not write to standard output: {error.strerror}.") from error
        return
    check_new(path, force=force)
    with new_file(Path(path)) as draft, draft.open("w", encoding="utf-8") as file:
        yield file


def print_values(values: Mapping[str, float], n_bits: int) -> None:
    """Print what codes reach, beside what chance and exact tf-idf do."""
    sizes = {"exact tf-idf cosine": "  sparse floats", "codes": f"  {n_bits // 8} bytes"}
    sizes["words and codes"] = "  as vdsh search ranks"
    for name, value in values.items():
        typer.echo(f"  {name:<20} {value:.3f}{sizes.get(name, '')}")


def print_hits(hits: "Hits", query: "str | Codes", *, as_json: bool) -> None:
    """Print a table for people, rows for a pipe, or JSON lines; say which words were not known.

    In JSON that is a last line of its own, which is there only where words were not known.
    """
    if hits.warning or not hits:
        typer.echo(hits.warning or NOTHING, err=True)
    if not as_json:
        _print_table(hits, query)
        return
    about = hits.about_query()
    say([*fields_of(hits, query), *([about] if about else ())], as_json=True)


def print_answer(query: str, hits: "Hits", *, as_json: bool) -> None:
    """Print what one query of several found: a table under the query, or one JSON object."""
    if as_json:
        say({"query": query, "hits": fields_of(hits, query), **hits.about_query()}, as_json=True)
        return
    from vdsh.words.passages import one_line

    typer.secho(one_line(query), underline=True)
    if hits.warning or not hits:
        typer.echo(hits.warning or NOTHING)
    _print_table(hits, query)
    typer.echo()


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lay rows out for a person at a terminal; in a pipe, with a tab between two cells."""
    if at_terminal():
        return aligned(rows)
    return ["\t".join(map(_one_cell, row)) for row in rows]


def at_terminal() -> bool:
    """Say whether a person reads standard output, and not a program or a file."""
    return sys.stdout.isatty()


def _one_cell(text: str) -> str:
    """Replace what would end a cell or a line, or command a terminal; all else stays as it is."""
    return _NOT_IN_CELLS.sub(" ", text)


def _print_table(hits: "Hits", query: "str | Codes") -> None:
    """Print lines as wide as the terminal, with the query's words in bold.

    In a pipe a hit is one line, whose cells have a tab between them: number, id, labels, passage.
    """
    from vdsh.store.hits import WIDTH, row, table

    if not at_terminal():
        words = _words(hits, query)
        for cells in columns(row(hit, words) for hit in hits):
            typer.echo(cells)
        return
    width = get_terminal_size((WIDTH, 0)).columns
    for line in table(hits, width, _words(hits, query)):
        typer.echo("".join(typer.style(t, bold=True) if on else t for t, on in line))


def fields_of(hits: "Hits", query: "str | Codes") -> list[dict[str, Any]]:
    """Give the fields of each hit, with its passage."""
    words = _words(hits, query)
    return [hit.as_fields() | {"passage": hit.passage(words=words)} for hit in hits]


def _words(hits: "Hits", query: "str | Codes") -> Collection[str] | None:
    """Say which words to mark: those that each hit was found by, or the query's."""
    from vdsh.text import SMART, tokenize

    if any(hit.score is not None for hit in hits):
        return None
    return [w for w in tokenize(query) if w not in SMART] if isinstance(query, str) else ()
