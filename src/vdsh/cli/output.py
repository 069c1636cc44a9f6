"""What verbs print, and where to: standard output, or a file that is whole or absent."""

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

import typer

from vdsh.errors import VdshError, WriteError
from vdsh.files import check_new, new_file

if TYPE_CHECKING:
    from vdsh.codes import Codes
    from vdsh.store import Hits


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
    """Print a table for people or JSON lines for programs; say which words were not known.

    In JSON that is a last line of its own, which is there only where words were not known.
    """
    if hits.warning:
        typer.echo(hits.warning, err=True)
    if as_json:
        about = hits.about_query()
        for fields in (*_fields(hits, query), *([about] if about else ())):
            typer.echo(json.dumps(fields, ensure_ascii=False))
    elif hits:
        _print_table(hits, query)
    elif not hits.warning:
        typer.echo("Nothing found.", err=True)


def print_answer(query: str, hits: "Hits", *, as_json: bool) -> None:
    """Print what one query of several found: a table under the query, or one JSON object."""
    if as_json:
        fields = {"query": query, "hits": _fields(hits, query), **hits.about_query()}
        typer.echo(json.dumps(fields, ensure_ascii=False))
        return
    from vdsh.words.passages import one_line

    typer.secho(one_line(query), underline=True)
    if hits.warning or not hits:
        typer.echo(hits.warning or "Nothing found.")
    _print_table(hits, query)
    typer.echo()


def _print_table(hits: "Hits", query: "str | Codes") -> None:
    """Print lines as wide as the terminal, with the query's words in bold; plain in a pipe."""
    from vdsh.store.hits import WIDTH, table

    width = get_terminal_size((WIDTH, 0)).columns
    for line in table(hits, width, _words(query)):
        typer.echo("".join(typer.style(t, bold=True) if on else t for t, on in line))


def _fields(hits: "Hits", query: "str | Codes") -> list[dict[str, Any]]:
    words = _words(query)
    return [hit.as_fields() | {"passage": hit.passage(words=words)} for hit in hits]


def _words(query: "str | Codes") -> Collection[str]:
    from vdsh.words.query import content_words

    return content_words(query) if isinstance(query, str) else ()
