"""Tables and figures by name: run what is missing, then write them down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import check_n_bits
from vdsh.datasets import find
from vdsh.errors import InputError, suggest
from vdsh.files import new_files
from vdsh.hashers import HASHERS
from vdsh.paper import (
    ablation,
    defaults,
    figure2,
    figure3,
    figure4,
    runner,
    semisupervised,
    table1,
    table2,
)
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
        The cells it needs.
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

    @classmethod
    def of(cls, module: Any) -> "Item":
        """Take the parts of a module that has them by these names."""
        parts = (getattr(module, name, None) for name in ("draw", "compute"))
        return cls(module.DEFAULTS, module.cells, module.sheets, *parts)


ITEMS = {
    "table1": Item.of(table1),
    "table2": Item.of(table2),
    "figure2": Item.of(figure2),
    "figure3": Item.of(figure3),
    "figure4": Item.of(figure4),
    "defaults": Item.of(defaults),
    "ablation": Item.of(ablation),
    "semisupervised": Item.of(semisupervised),
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
    failed = runner.run(item.cells(request), plan)
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
