"""Options that several verbs share, and how documents are read with them."""

import json
from typing import Annotated, Any

import typer

from vdsh.errors import InputError

Docs = Annotated[
    str,
    typer.Argument(
        help="JSONL, CSV, TSV, Parquet or text file (gz or plain), a folder of text files, "
        "or - for stdin.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None, typer.Option(help="jsonl, csv, tsv, parquet or text; by default from the ending.")
]
IdField = Annotated[str, typer.Option(help="Field of the id.")]
TextField = Annotated[
    list[str] | None,
    typer.Option(help="Field of the text; give it again to join several.  [default: text]"),
]
LabelsField = Annotated[str, typer.Option(help="Field of the labels.")]
Encoding = Annotated[str, typer.Option(help="Of the file's text.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Read `--set name=value` options; values are JSON where they can be, else text.

    >>> parse_settings(["epochs=5", "threshold=sign", "stop_words=null"])
    {'epochs': 5, 'threshold': 'sign', 'stop_words': None}
    """
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, such as --set epochs=5. Got '{pair}'.")
        try:
            settings[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            settings[name.replace("-", "_")] = value
    return settings
