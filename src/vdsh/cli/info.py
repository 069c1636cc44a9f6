"""`vdsh info`: what a store holds."""

import json
from collections.abc import Iterator
from typing import Any

import typer

from vdsh.cli import hits, options

EXAMPLE = "Example: vdsh info news-store"


def command(store: hits.Store, as_json: options.Json = False) -> None:
    """Print how many documents a store has, which model made their codes, and its size."""
    from vdsh.store import open_store

    with open_store(store) as opened:
        facts = opened.info()
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    lines = dict(_lines(facts))
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        typer.echo(f"{name:<{width}}  {value}")


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
