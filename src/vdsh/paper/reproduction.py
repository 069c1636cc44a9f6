"""Tables and figures by name: run what is missing, then write them down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import check_n_bits
from vdsh.datasets import find
from vdsh.errors import InputError, suggest
from vdsh.files import new_files
from vdsh.hashers import HASHERS
from vdsh.paper import experiments, figure4, runner, tables
from vdsh.paper.cells import Cell
from vdsh.paper.results import Request
from vdsh.paper.runner import Plan
from vdsh.paper.sheets import Sheet, latex, markdown


class Item(NamedTuple):
    """A table or figure, of the paper or about our defaults.

    Attributes
    ----------
    defaults : Request
        All of it.
    cells : callable
        The cells it needs, of one seed.
    sheets : callable
        Its numbers as tables, from finished cells.
    draw : callable or None
        Draws it to a file.
    compute : callable or None
        Makes what is not a cell.
    """

    defaults: Request
    cells: Callable[[Request], list[Cell]]
    sheets: Callable[[Request, Path], list[Sheet]]
    draw: Callable[[Request, Path, Path], None] | None = None
    compute: Callable[[Request, Plan], None] | None = None


ITEMS = {
    "table1": Item(tables.ALL, Request.cells, tables.table1),
    "table2": Item(tables.OF_OURS, Request.cells, tables.table2),
    "figure2": Item(tables.ALL, Request.cells, tables.figure2, tables.draw_figure2),
    "figure3": Item(tables.OF_OURS, tables.cells_of_figure3, tables.figure3, tables.draw_figure3),
    "figure4": Item(
        figure4.DEFAULTS, lambda request: [], figure4.sheets, figure4.draw, figure4.compute
    ),
    "defaults": Item(experiments.ALL, experiments.cells_of_defaults, experiments.defaults),
    "ablation": Item(experiments.ABLATED, experiments.cells_of_ablation, experiments.ablation),
    "semisupervised": Item(
        experiments.FEW_LABELS, experiments.cells_of_semisupervised, experiments.semisupervised
    ),
}


class Reproduced(NamedTuple):
    """What came out: tables, the files they were written to, and cells that failed."""

    sheets: list[Sheet]
    files: list[Path]
    failed: dict[Cell, str]


def reproduce(
    name: str,
    out: Path,
    plan: Plan,
    *,
    datasets: list[str] | None = None,
    bits: list[int] | None = None,
    models: list[str] | None = None,
    seeds: list[int] | None = None,
) -> Reproduced:
    """Reproduce a table or figure of the paper; by default all of it.

    Parameters
    ----------
    name : str
        One of `ITEMS`.
    out : Path
        Folder for the Markdown, LaTeX and picture files.
    plan : Plan
        Where finished cells are kept and how the others run.
    """
    _check(name, ITEMS, "table or figure")
    for dataset in datasets or ():
        find(dataset)
    for model in models or ():
        _check(model, HASHERS, "method")
    item = ITEMS[name]
    request = Request(
        tuple(dict.fromkeys(datasets or item.defaults.datasets)),
        tuple(dict.fromkeys(check_n_bits(n) for n in bits or item.defaults.bits)),
        tuple(dict.fromkeys(models or item.defaults.models)),
        tuple(dict.fromkeys(seeds or item.defaults.seeds)),
    )
    cells = [cell._replace(seed=n) for cell in item.cells(request) for n in request.seeds]
    failed = runner.run(cells, plan)
    if item.compute:
        item.compute(request, plan)
    sheets = item.sheets(request, plan.results)
    return Reproduced(sheets, _write(name, item, request, sheets, out, plan), failed)


def _write(
    name: str, item: Item, request: Request, sheets: list[Sheet], out: Path, plan: Plan
) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}.md", out / f"{name}.tex"]
    with new_files(*files) as (text, table):
        text.write_text(markdown(sheets) + "\n", encoding="utf-8")
        table.write_text(latex(sheets), encoding="utf-8")
    if item.draw:
        files.append(out / f"{name}.png")
        item.draw(request, plan.results, files[-1])
    return files


def _check(name: str, known: Any, what: str) -> None:
    if name not in known:
        raise InputError(f"No {what} '{name}'. {suggest(name, known)}")
