"""Our defaults: beside the paper and later methods, one change at a time, and with few labels."""

from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, LATER, METHODS, OURS, published
from vdsh.paper.results import Request, Results, show
from vdsh.paper.settings import ABLATIONS
from vdsh.paper.sheets import Sheet, number

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
