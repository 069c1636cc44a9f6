"""Tables and figures by name: run what is missing, then write them down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import check_n_bits
from vdsh.datasets import find
from vdsh.errors import InputError, suggest
from vdsh.files import new_files
from vdsh.hashers import HASHERS
from vdsh.paper import figure4, runner, tables
from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, LATER, METHODS, OURS, published
from vdsh.paper.results import Request, Results, show
from vdsh.paper.runner import Plan
from vdsh.paper.settings import ABLATIONS
from vdsh.paper.sheets import Sheet, latex, markdown, number

SHARES = (1, 10, 50, 100)  # percent of the documents whose labels are seen

CORPORA = ("20newsgroups", "reuters20")
ALL = Request((*CORPORA, "tmc", "rcv1"), BITS, OURS, (0, 1, 2))
ABLATED = Request(CORPORA, (8, 32, 128), tuple(ABLATIONS))
FEW_LABELS = Request(CORPORA, (8, 32, 128), ("vdsh-s", "vdsh-sp"), (0, 1, 2))


def cells_of_defaults(request: Request) -> list[Cell]:
    """List the cells with our defaults; those of the preset are table 1's."""
    return request.cells(preset="best")


def defaults(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus: the paper, its settings here, our defaults, later methods."""
    return [_defaults(dataset, request, folder) for dataset in request.datasets]


def _defaults(dataset: str, request: Request, folder: Path) -> Sheet:
    ours, first = Results(folder, request.seeds), Results(folder, (0,))
    rows = []
    for model in request.models:
        name = METHODS.get(model, model)
        plain = [Cell(dataset, model, n) for n in request.bits]
        best = [cell._replace(preset="best") for cell in plain]
        rows.append([f"{name}, paper", *(number(published(*cell[:3])) for cell in plain)])
        rows.append([f"{name}, paper's settings here", *(show(first.precision(c)) for c in plain)])
        rows.append([f"**{name}, defaults**", *(show(ours.precision(c)) for c in best)])
    for name, numbers in LATER.items():
        values = dict(zip(BITS, numbers.get(dataset, ()), strict=False))
        rows.append([f"{name}, published", *(number(values.get(n)) for n in request.bits)])
    used = ours.data(request._replace(datasets=(dataset,)).cells(preset="best"))
    note = f"Defaults: mean of seeds {_list(request.seeds)}. Data: {used}."
    return request.sheet("Precision at 100", dataset, "method", rows, note)


def cells_of_ablation(request: Request) -> list[Cell]:
    """List the cells of our defaults and of each change."""
    return [
        cell
        for model in request.models
        for preset in ("best", *ABLATIONS.get(model, ()))
        for cell in request._replace(models=(model,)).cells(preset=preset)
    ]


def ablation(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus: each change with what it gains or loses."""
    results, sheets = Results(folder, request.seeds), []
    for dataset in request.datasets:
        rows = []
        for model in request.models:
            cells = [Cell(dataset, model, n, preset="best") for n in request.bits]
            name = f"**{METHODS[model]}, defaults**"
            rows.append([name, *(show(results.precision(cell)) for cell in cells)])
            for preset in ABLATIONS.get(model, ()):
                changes = [_change(results, cell, preset) for cell in cells]
                rows.append([preset.replace("-", " "), *changes])
        title = "Precision at 100 with one change"
        sheets.append(request.sheet(title, dataset, "settings", rows))
    return sheets


def _change(results: Results, cell: Cell, preset: str) -> str:
    ours, other = results.precision(cell), results.precision(cell._replace(preset=preset))
    if ours is None or other is None:
        return show(other)
    return f"{show(other)} ({other.mean - ours.mean:+.3f})"


def cells_of_semisupervised(request: Request) -> list[Cell]:
    """List the cells of each share, and those of the unsupervised model."""
    cells = [cell for n in SHARES for cell in request.cells(preset="best", labelled=n)]
    return cells + request._replace(models=("vdsh",)).cells(preset="best")


def semisupervised(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus: from no labels, which is VDSH, to those of every document."""
    results = Results(folder, request.seeds)
    wanted = [("VDSH, no labels", "vdsh", 100)]
    wanted += [
        (f"{METHODS[model]}, {share} % of the labels", model, share)
        for model in request.models
        for share in SHARES
    ]
    note = (
        f"Mean of seeds {_list(request.seeds)}. Labels of the other training and "
        "validation documents were hidden; relevance is by all labels."
    )
    sheets = []
    for dataset in request.datasets:
        rows = []
        for name, model, share in wanted:
            cells = [Cell(dataset, model, n, preset="best", labelled=share) for n in request.bits]
            rows.append([name, *(show(results.precision(cell)) for cell in cells)])
        title = "Precision at 100 with few labels"
        sheets.append(request.sheet(title, dataset, "labels", rows, note))
    return sheets


def _list(seeds: tuple[int, ...]) -> str:
    return ", ".join(map(str, seeds))


class Item(NamedTuple):
    """A table or figure, of the paper or about our defaults."""

    defaults: Request  # all of it
    cells: Callable[[Request], list[Cell]]  # the cells it needs, of one seed
    sheets: Callable[[Request, Path], list[Sheet]]  # its numbers as tables, from finished cells
    draw: Callable[[Request, Path, Path], None] | None = None  # draws it to a file
    compute: Callable[[Request, Plan], None] | None = None  # makes what is not a cell
    unfinished: Callable[[Request, Path], list[Cell]] | None = None  # of that


ITEMS = {
    "table1": Item(tables.WITH_90, tables.cells_of_table1, tables.table1),
    "table2": Item(tables.OF_OURS, Request.cells, tables.table2),
    "figure2": Item(tables.ALL, Request.cells, tables.figure2, tables.draw_figure2),
    "figure3": Item(tables.OF_OURS, tables.cells_of_figure3, tables.figure3, tables.draw_figure3),
    "figure4": Item(
        figure4.DEFAULTS,
        lambda request: [],
        figure4.sheets,
        figure4.draw,
        figure4.compute,
        figure4.unfinished,
    ),
    "defaults": Item(ALL, cells_of_defaults, defaults),
    "ablation": Item(ABLATED, cells_of_ablation, ablation),
    "semisupervised": Item(FEW_LABELS, cells_of_semisupervised, semisupervised),
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
    failed = runner.run(_cells(item, request), plan)
    if item.compute:
        item.compute(request, plan)
    sheets = item.sheets(request, plan.results)
    return Reproduced(sheets, _write(name, item, request, sheets, out, plan), failed)


def stale(name: str | None, results: Path) -> list[Cell]:
    """List the cells of a table or figure, or of all, that are missing or not of today's code."""
    if name is not None:
        _check(name, ITEMS, "table or figure")
    items = ITEMS.values() if name is None else [ITEMS[name]]
    wanted = [cell for item in items for cell in _cells(item, item.defaults)]
    found = runner.unfinished(list(dict.fromkeys(wanted)), results)
    maps = [item.unfinished(item.defaults, results) for item in items if item.unfinished]
    return found + [cell for some in maps for cell in some]


def _cells(item: Item, request: Request) -> list[Cell]:
    return [cell._replace(seed=n) for cell in item.cells(request) for n in request.seeds]


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
