"""What the verbs that ask a store share: what they take, and how hits are printed."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.codes import Codes
    from vdsh.store import Hits

Store = Annotated[str, typer.Argument(help="Folder or URL of the store.", show_default=False)]
Text = Annotated[
    str | None, typer.Argument(help="What to look for; or give --code.", show_default=False)
]
Code = Annotated[str | None, typer.Option(help="Look for a code in hex instead of a text.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(help="Filter such as label=space, year>=1990 or a JSON object; all must hold."),
]
_SNIPPET = 60


def parse_query(text: str | None, code: str | None) -> "str | Codes":
    """Take the text or the code, of which there must be one."""
    if (text is None) == (code is None):
        raise InputError("Give a text to look for, or a code with --code, and not both.")
    if text is not None:
        return text
    from vdsh.codes import from_hex

    codes: Codes = from_hex([code or ""])[0]
    return codes


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
