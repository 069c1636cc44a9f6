"""Few labels: from none, which is VDSH, to those of every document."""

from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS
from vdsh.paper.results import Request, Results, show
from vdsh.paper.sheets import Sheet

DEFAULTS = Request(("20newsgroups", "reuters20"), (8, 32, 128), ("vdsh-s", "vdsh-sp"), (0, 1, 2))
SHARES = (1, 10, 50, 100)  # percent


def cells(request: Request) -> list[Cell]:
    """List the cells of each share, and those of the unsupervised model."""
    supervised = [
        Cell(dataset, model, n_bits, seed, preset="best", labelled=share)
        for dataset in request.datasets
        for model in request.models
        for share in SHARES
        for n_bits in request.bits
        for seed in request.seeds
    ]
    return supervised + [
        Cell(dataset, "vdsh", n_bits, seed, preset="best")
        for dataset in request.datasets
        for n_bits in request.bits
        for seed in request.seeds
    ]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus, a row for each share."""
    return [
        _sheet(dataset, request, Results(folder, request.seeds)) for dataset in request.datasets
    ]


def _sheet(dataset: str, request: Request, results: Results) -> Sheet:
    def row(name: str, cell: Cell) -> list[str]:
        return [name, *(show(results.precision(cell._replace(n_bits=n))) for n in request.bits)]

    first = Cell(dataset, "vdsh", request.bits[0], preset="best")
    rows = [row("VDSH, no labels", first)]
    for model in request.models:
        for share in SHARES:
            name = f"{METHODS[model]}, {share} % of the labels"
            rows.append(row(name, first._replace(model=model, labelled=share)))
    note = (
        f"Mean of seeds {', '.join(map(str, request.seeds))}. Labels of the other training and "
        "validation documents were hidden; relevance is by all labels."
    )
    title = f"Precision at 100 with few labels, {DATASETS.get(dataset, dataset)}"
    return Sheet(title, ["labels", *(f"{n} bits" for n in request.bits)], rows, note)
