"""`vdsh reproduce`: the paper's tables and figures, from corpora to numbers."""

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import say
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh reproduce table1 --datasets reuters20 --bits 16 32 --models vdsh-s lsh"


class CLASS(TyperCommand):
    """A command whose list options take several values at once: --bits 16 32."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--bits 16 32` as `--bits 16 --bits 32`, which click understands."""
        several = {name for p in self.params if getattr(p, "multiple", False) for name in p.opts}
        return super().parse_args(ctx, list(_repeat(args, several)))


def _repeat(args: list[str], several: set[str]) -> list[str]:
    """Repeat an option's name before each of its values.

    >>> _repeat(["table1", "--bits", "16", "32", "-q"], {"--bits"})
    ['table1', '--bits', '16', '--bits', '32', '-q']
    """
    result: list[str] = []
    current = ""
    for position, arg in enumerate(args):
        if arg.startswith("-"):
            current = arg if arg in several else ""
        elif current and args[position - 1] != current:
            result.append(current)
        result.append(arg)
    return result


def command(
    name: str | None = argument(
        None,
        "table1, table2, figure2, figure3, figure4 of the paper; our defaults beside them, their "
        "ablation, or semisupervised.",
    ),
    datasets: list[str] | None = option(
        None, "Corpora, see `vdsh research datasets`; by default all four."
    ),
    bits: list[int] | None = option(None, "Lengths of the codes."),
    models: list[str] | None = option(None, "Methods, such as vdsh-s or lsh."),
    seeds: list[int] | None = option(None, "Seeds of split and method; several are averaged."),
    jobs: int = option(1, "Cells to run in parallel."),
    out: str = option("results", "Folder for cells, tables and figures."),
    root: str | None = option(None, "Folder of the corpora, else VDSH_DATA or a download."),
    device: str = option("auto", "auto, cpu or cuda."),
    force: bool = option(False, "Run finished cells again.", "--force"),
    check: bool = option(
        False,
        "Run nothing: list the cells of NAME, or of all, that today's code did not make.",
        "--check",
    ),
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Run the missing cells of a table or figure, then print and write it.

    Finished cells are kept, so an interrupted run goes on where it stopped.
    """
    from vdsh.paper.reproduction import ITEMS, reproduce, stale
    from vdsh.paper.runner import Plan

    if check:
        cells = stale(name, Path(out) / "cells")
        for cell in cells:
            say(cell._asdict(), str(cell.path), as_json=as_json)
        typer.echo(f"{len(cells):,} cells are missing or not of today's code.", err=True)
        raise typer.Exit(1 if cells else 0)
    if name is None:
        raise InputError(f"Name a table or figure: {', '.join(ITEMS)}.")
    plan = Plan(Path(out) / "cells", root, device, jobs, force, quiet)
    try:
        found = reproduce(
            name, Path(out), plan, datasets=datasets, bits=bits, models=models, seeds=seeds
        )
    except KeyboardInterrupt:
        typer.echo(
            f"Finished cells are kept in {plan.results}: the same command resumes.", err=True
        )
        raise
    if as_json:
        say([sheet._asdict() for sheet in found.sheets], as_json=True)
    else:
        from rich.console import Console

        from vdsh.paper.results import print_sheets

        print_sheets(found.sheets, Console())
        typer.echo(f"Written: {', '.join(map(str, found.files))}")
    for cell, reason in found.failed.items():
        typer.echo(f"Error: {cell.dataset}/{cell.path.stem} was not made. {reason}", err=True)
    if found.failed:
        raise typer.Exit(1)
