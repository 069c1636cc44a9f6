"""`vdsh reproduce`: the paper's tables and figures, from corpora to numbers."""

from pathlib import Path

import typer

from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import say
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh reproduce table1 --datasets reuters20 --bits 16 --bits 32"


def command(
    name: str | None = argument(
        None,
        "table1, table2, figure2, figure3, figure4 of the paper; our defaults beside them, their "
        "ablation, or semisupervised.",
    ),
    datasets: list[str] | None = option(
        None,
        "Corpora, see `vdsh research datasets`; by default all four; repeat for several.",
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
            say(cell._asdict(), cell.name, as_json=as_json)
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
        typer.echo(f"Error: {cell.name} was not made. {reason}", err=True)
    if found.failed:
        raise typer.Exit(1)
