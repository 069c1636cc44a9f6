"""`vdsh info`: what a store holds, or a model learned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import aligned, say

EXAMPLE = "Example: vdsh info news-store"


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|STORE",
            help="Model folder; or folder or URL of a store.",
            show_default=False,
        ),
    ],
    as_json: options.Json = False,
) -> None:
    """Print the facts about a store and its model, or about a model folder."""
    from vdsh.persistence import MANIFEST
    from vdsh.store import open_store

    if Path(source, MANIFEST).is_file():
        facts = _about_model(source)
    else:
        with open_store(source, create=False) as opened:
            facts = opened.info()
    say(facts, *aligned(_lines(facts)), as_json=as_json)


def _about_model(path: str) -> dict[str, Any]:
    from vdsh.model import Model

    model = Model.load(path)
    return {
        "path": path,
        "model": model.name,
        "bits": model.n_bits,
        "fingerprint": model.fingerprint,
        "labels": model.labels,
        "training": model.training,
        "settings": model.given,
    }


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value of each fact; those inside a fact come with its name in front."""
    for name, value in facts.items():
        name = name.replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", shown) for inner, shown in _lines(value))
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value)) or "none"
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, f"{value:,}"
        else:
            yield name, str(value)
