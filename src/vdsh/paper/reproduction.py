"""Tables and figures by name: run what is missing, then write them down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import check_n_bits
from vdsh.errors import InputError, suggest
from vdsh.files import new_file
from vdsh.hashers import HASHERS
from vdsh.hashers.vdsh.presets import PAPER
from vdsh.paper import runner, tables
from vdsh.paper.cells import Cell
from vdsh.paper.datasets import find
from vdsh.paper.reference import BITS, LATER, METHODS, OURS, published
from vdsh.paper.results import Request, Results, Sheet, markdown, number, show
from vdsh.paper.runner import Plan
from vdsh.paper.settings import ABLATIONS

# Percent of the documents whose labels are seen.
SHARES = (1, 10, 50, 100)

CORPORA = ("20newsgroups", "reuters20")
ALL = Request((*CORPORA, "tmc", "rcv1"), BITS, ("linear", *OURS), (0, 1, 2))
ABLATED = Request(CORPORA, (8, 32, 128), tuple(ABLATIONS))
FEW_LABELS = Request(CORPORA, (8, 32, 128), ("vdsh-s", "vdsh-sp"), (0, 1, 2))


def defaults(request: Request, results: Results) -> Sheet:
    """Make the table of a corpus: the paper, its settings here, our defaults, later methods."""
    # The cells of the preset are table 1's: shown where they are there, not asked for.
    (dataset,) = request.datasets
    first_seed = Results(results.folder, (0,))
    rows = []
    for model in request.models:
        name = METHODS.get(model, model)
        if model in PAPER:
            cells = request.row(model)
            printed = [published(cell.dataset, cell.model, cell.n_bits) for cell in cells]
            rows.append([f"{name}, paper", *map(number, printed)])
            rows.append([f"{name}, paper's settings here", *first_seed.shown(cells)])
        rows.append([f"**{name}, defaults**", *results.shown(request.row(model, preset="best"))])
    for name, numbers in LATER.items():
        values = dict(zip(BITS, numbers.get(dataset, ()), strict=False))
        rows.append([f"{name}, published", *(number(values.get(n)) for n in request.bits)])
    used = results.data(request.cells(preset="best"))
    note = f"Defaults: mean of seeds {_list(request.seeds)}. Data: {used}."
    return request.sheet("Precision at 100", "method", rows, note)


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
    ours = results.precision(cell)
    other = results.precision(cell._replace(preset=preset))
    if ours is None or other is None:
        return show(other)
    return f"{show(other)} ({other.mean - ours.mean:+.3f})"


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
    """A table or figure, of the paper or about our defaults.

    Attributes
    ----------
    defaults : Request
        All of it.
    sheet : callable
        Makes one of its tables from finished cells.
    draw : callable, optional
        Draws it to a file.
    by : {"datasets", "bits"}
        There is a table for each of these.
    """

    defaults: Request
    sheet: Callable[[Request, Results], Sheet]
    draw: Callable[[Request, Results, Path], None] | None = None
    by: str = "datasets"

    def sheets(self, request: Request, results: Results) -> list[Sheet]:
        """Make its tables from finished cells."""
        sheets = []
        for one in getattr(request, self.by):
            sheet = self.sheet(request._replace(**{self.by: (one,)}), results)
            if sheet.rows:
                sheets.append(sheet)
        return sheets

    def cells(self, request: Request) -> list[Cell]:
        """List the cells that its tables ask for."""
        results = Results(None, request.seeds)
        self.sheets(request, results)
        return list(results.asked)


ITEMS = {
    "table1": Item(tables.WITH_90, tables.table1),
    "table2": Item(tables.OF_OURS, tables.table2, by="bits"),
    "figure2": Item(tables.ALL, tables.figure2, tables.draw_figure2),
    "figure3": Item(tables.OF_OURS, tables.figure3, tables.draw_figure3, by="bits"),
    "figure4": Item(tables.MAPPED, tables.figure4, tables.draw_figure4),
    "defaults": Item(ALL, defaults),
    "ablation": Item(ABLATED, ablation),
    "semisupervised": Item(FEW_LABELS, semisupervised),
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
    failed = runner.run(item.cells(request), plan)
    results = Results(plan.results, request.seeds)
    sheets = item.sheets(request, results)
    out.mkdir(parents=True, exist_ok=True)
    text = out / f"{name}.md"
    with new_file(text) as draft:
        draft.write_text(markdown(sheets) + "\n", encoding="utf-8")
    files = [text]
    if item.draw:
        picture = out / f"{name}.png"
        item.draw(request, results, picture)
        files.append(picture)
    return Reproduced(sheets, files, failed)


def stale(name: str | None, results: Path) -> list[Cell]:
    """List the cells of a table or figure, or of all, that are missing or not of today's code."""
    if name is not None:
        _check(name, ITEMS, "table or figure")
    items = ITEMS.values() if name is None else [ITEMS[name]]
    wanted = [cell for item in items for cell in item.cells(item.defaults)]
    return runner.unfinished(list(dict.fromkeys(wanted)), results)


def _check(name: str, known: Any, what: str) -> None:
    if name not in known:
        raise InputError(f"No {what} '{name}'. {suggest(name, known)}")
