"""Our defaults beside the paper's preset and the strongest later methods."""

from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, DATASETS, LATER, METHODS, OURS, published
from vdsh.paper.results import Request, Results, show
from vdsh.paper.sheets import Sheet, number

DEFAULTS = Request(("20newsgroups", "reuters20", "tmc", "rcv1"), BITS, OURS, (0, 1, 2))


def cells(request: Request) -> list[Cell]:
    """List the cells with our defaults; those of the preset are table 1's."""
    return [
        Cell(dataset, model, n_bits, seed, preset="best")
        for dataset in request.datasets
        for model in request.models
        for n_bits in request.bits
        for seed in request.seeds
    ]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus."""
    return [_sheet(dataset, request, folder) for dataset in request.datasets]


def _sheet(dataset: str, request: Request, folder: Path) -> Sheet:
    ours, first = Results(folder, request.seeds), Results(folder, (0,))
    rows = []
    for model in request.models:
        name = METHODS.get(model, model)
        wanted = [Cell(dataset, model, n, preset="best") for n in request.bits]
        rows.append(
            [f"{name}, paper", *(number(published(dataset, model, n)) for n in request.bits)]
        )
        preset = [first.precision(Cell(dataset, model, n)) for n in request.bits]
        rows.append([f"{name}, paper's settings here", *map(show, preset)])
        rows.append([f"**{name}, defaults**", *(show(ours.precision(cell)) for cell in wanted)])
    for name, numbers in LATER.items():
        values = dict(zip(BITS, numbers.get(dataset, ()), strict=False))
        rows.append([f"{name}, published", *(number(values.get(n)) for n in request.bits)])
    used = ours.data(
        [Cell(dataset, m, n, preset="best") for m in request.models for n in request.bits]
    )
    note = f"Defaults: mean of seeds {', '.join(map(str, request.seeds))}. Data: {used}."
    title = f"Precision at 100, {DATASETS.get(dataset, dataset)}"
    return Sheet(title, ["method", *(f"{n} bits" for n in request.bits)], rows, note)
