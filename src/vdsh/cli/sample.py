"""`vdsh sample`: documents as the model imagines them."""

import json
from typing import Annotated

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh sample news-model --label sci.space -n 3"


def command(
    model: Annotated[str, typer.Argument(help="Folder of the model.", show_default=False)],
    label: Annotated[
        str | None, typer.Option(help="Draw where this label is likely (vdsh-s, vdsh-sp).")
    ] = None,
    code: Annotated[
        str | None, typer.Option(help="Draw where documents with this code, in hex, are.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Draw where the model places this text.")] = None,
    n: Annotated[int, typer.Option("-n", help="How many draws.")] = 3,
    words: Annotated[int, typer.Option(help="How many words to list.")] = 10,
    length: Annotated[int, typer.Option(help="Words in a bag.")] = 50,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Print word distributions drawn from the model, and bags of words drawn from those."""
    from vdsh.explain import as_fields, sample
    from vdsh.model import Model

    draws = sample(
        Model.load(model),
        n,
        label=label,
        code=code,
        text=text,
        n_words=words,
        length=length,
        random_state=seed,
    )
    for i, drawn in enumerate(draws, 1):
        if as_json:
            typer.echo(json.dumps(as_fields(drawn), ensure_ascii=False))
            continue
        typer.echo(f"draw {i}, code {drawn.code}")
        typer.echo(f"  most probable  {' '.join(word.word for word in drawn.words)}")
        typer.echo(f"  distinctive    {' '.join(word.word for word in drawn.distinctive)}")
        typer.echo(f"  a bag          {' '.join(drawn.bag)}")
