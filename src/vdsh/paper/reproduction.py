"""Tables and figures by name: run what is missing, then write them down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import check_n_bits
from vdsh.datasets import find
from vdsh.errors import InputError, suggest
from vdsh.files import new_file
from vdsh.hashers import HASHERS
from vdsh.paper import runner, tables
from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, LATER, METHODS, OURS, published
from vdsh.paper.results import Request, Results, show
from vdsh.paper.runner import Plan
from vdsh.paper.settings import ABLATIONS, PAPER
from vdsh.paper.sheets import Sheet, markdown, number

SHARES = (1, 10, 50, 100)  # percent of the documents whose labels are seen

CORPORA = ("20newsgroups", "reuters20")
ALL = Request((*CORPORA, "tmc", "rcv1"), BITS, ("linear", *OURS), (0, 1, 2))
ABLATED = Request(CORPORA, (8, 32, 128), tuple(ABLATIONS))
FEW_LABELS = Request(CORPORA, (8, 32, 128), ("vdsh-s", "vdsh-sp"), (0, 1, 2))


def cells_of_defaults(request: Request) -> list[Cell]:
    """List the cells with our defaults; those of the preset are table 1's."""
    return request.cells(preset="best")


def defaults(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus: the paper, its settings here, our defaults, later methods."""
    (dataset,), first, rows = request.datasets, Results(results.folder, (0,)), []
    for model in request.models:
        name, plain = METHODS.get(model, model), request.row(model)
        if model in PAPER:
            rows.append([f"{name}, paper", *(number(published(*cell[:3])) for cell in plain)])
            rows.append([f"{name}, paper's settings here", *first.shown(plain)])
        rows.append([f"**{name}, defaults**", *results.shown(request.row(model, preset="best"))])
    for name, numbers in LATER.items():
        values = dict(zip(BITS, numbers.get(dataset, ()), strict=False))
        rows.append([f"{name}, published", *(number(values.get(n)) for n in request.bits)])
    used = results.data(cells_of_defaults(request))
    note = f"Defaults: mean of seeds {_list(request.seeds)}. Data: {used}."
    return request.sheet("Precision at 100", "method", rows, note)


def cells_of_ablation(request: Request) -> list[Cell]:
    """List the cells of our defaults and of each change."""
    return [
        cell
        for model in request.models
        for preset in ("best", *ABLATIONS.get(model, ()))
        for cell in request._replace(models=(model,)).cells(preset=preset)
    ]


def ablation(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus: each change with what it gains or loses."""
    rows = []
    for model in request.models:
        cells = request.row(model, preset="best")
        rows.append([f"**{METHODS[model]}, defaults**", *results.shown(cells)])
        for preset in ABLATIONS.get(model, ()):
            changes = [_change(results, cell, preset) for cell in cells]
            rows.append([preset.replace("-", " "), *changes])
    return request.sheet("Precision at 100 with one change", "settings", rows)


def _change(results: Results, cell: Cell, preset: str) -> str:
    ours, other = results.precision(cell), results.precision(cell._replace(preset=preset))
    if ours is None or other is None:
        return show(other)
    return f"{show(other)} ({other.mean - ours.mean:+.3f})"


def cells_of_semisupervised(request: Request) -> list[Cell]:
    """List the cells of each share, and those of the unsupervised model."""
    cells = [cell for n in SHARES for cell in request.cells(preset="best", labelled=n)]
    return cells + request._replace(models=("vdsh",)).cells(preset="best")


def semisupervised(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus: from no labels, which is VDSH, to those of every document."""
    rows = [["VDSH, no labels", *results.shown(request.row("vdsh", preset="best"))]]
    for model in request.models:
        for share in SHARES:
            cells = request.row(model, preset="best", labelled=share)
            rows.append([f"{METHODS[model]}, {share} % of the labels", *results.shown(cells)])
    note = (
        f"Mean of seeds {_list(request.seeds)}. Labels of the other training and "
        "validation documents were hidden; relevance is by all labels."
    )
    return request.sheet("Precision at 100 with few labels", "labels", rows, note)


def _list(seeds: tuple[int, ...]) -> str:
    return ", ".join(map(str, seeds))


class Item(NamedTuple):
    """A table or figure, of the paper or about our defaults."""

    defaults: Request  # all of it
    cells: Callable[[Request], list[Cell]]  # the cells it needs, of one seed
    sheet: Callable[[Request, Results], Sheet]  # one of its tables, from finished cells
    draw: Callable[[Request, Results, Path], None] | None = None  # draws it to a file
    by: str = "datasets"  # there is a table for each of these, or for each of the "bits"

    def sheets(self, request: Request, folder: Path) -> list[Sheet]:
        """Make its tables from the finished cells in a folder."""
        results = Results(folder, request.seeds)
        parts = [request._replace(**{self.by: (one,)}) for one in getattr(request, self.by)]
        return [sheet for part in parts if (sheet := self.sheet(part, results)).rows]


ITEMS = {
    "table1": Item(tables.WITH_90, tables.cells_of_table1, tables.table1),
    "table2": Item(tables.OF_OURS, Request.cells, tables.table2, by="bits"),
    "figure2": Item(tables.ALL, Request.cells, tables.figure2, tables.draw_figure2),
    "figure3": Item(
        tables.OF_OURS, tables.cells_of_figure3, tables.figure3, tables.draw_figure3, by="bits"
    ),
    "figure4": Item(tables.MAPPED, tables.cells_of_figure4, tables.figure4, tables.draw_figure4),
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
        Folder for the Markdown and picture files.
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
    sheets = item.sheets(request, plan.results)
    return Reproduced(sheets, _write(name, item, request, sheets, out, plan), failed)


def stale(name: str | None, results: Path) -> list[Cell]:
    """List the cells of a table or figure, or of all, that are missing or not of today's code."""
    if name is not None:
        _check(name, ITEMS, "table or figure")
    items = ITEMS.values() if name is None else [ITEMS[name]]
    wanted = [cell for item in items for cell in _cells(item, item.defaults)]
    return runner.unfinished(list(dict.fromkeys(wanted)), results)


def _cells(item: Item, request: Request) -> list[Cell]:
    return [cell._replace(seed=n) for cell in item.cells(request) for n in request.seeds]


def _write(
    name: str, item: Item, request: Request, sheets: list[Sheet], out: Path, plan: Plan
) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}.md"]
    with new_file(files[0]) as text:
        text.write_text(markdown(sheets) + "\n", encoding="utf-8")
    if item.draw:
        files.append(out / f"{name}.png")
        item.draw(request, Results(plan.results, request.seeds), files[-1])
    return files


def _check(name: str, known: Any, what: str) -> None:
    if name not in known:
        raise InputError(f"No {what} '{name}'. {suggest(name, known)}")
