"""What verbs print, and where to: standard output, or a file that is whole or absent."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from vdsh.errors import VdshError, WriteError
from vdsh.files import check_new, new_file

if TYPE_CHECKING:
    from vdsh.store import Hits

_SNIPPET = 60


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
    for name, value in values.items():
        typer.echo(f"  {name:<20} {value:.3f}{sizes.get(name, '')}")


def print_hits(hits: "Hits", *, as_json: bool) -> None:
    """Print a table for people or JSON lines for programs; say which words were not known.

    In JSON that is a last line of its own, which is there only where words were not known.
    """
    if hits.warning:
        typer.echo(hits.warning, err=True)
    if as_json:
        about = hits.about_query()
        for fields in (*(hit.as_fields() for hit in hits), *([about] if about else ())):
            typer.echo(json.dumps(fields, ensure_ascii=False))
        return
    if not hits:
        if not hits.warning:
            typer.echo("Nothing found.", err=True)
        return
    width = min(40, max(len(hit.id) for hit in hits))
    tags = [", ".join(hit.labels or ()) for hit in hits]
    tag_width = min(24, max(len(tag) for tag in tags))
    for hit, tag in zip(hits, tags, strict=True):
        name, label = _cut(hit.id, width), _cut(tag, tag_width)
        typer.echo(f"{hit.distance:>3}  {name:<{width}}  {label:<{tag_width}}  {snippet(hit.text)}")


def snippet(text: str) -> str:
    """Take the beginning of a text as one line."""
    return _cut(" ".join(text[: 8 * _SNIPPET].split()), _SNIPPET)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "\u2026"
