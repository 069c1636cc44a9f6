"""What each idea in our defaults is worth: one change at a time."""

from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import DATASETS, METHODS
from vdsh.paper.results import Request, Results, show
from vdsh.paper.settings import ABLATIONS
from vdsh.paper.sheets import Sheet

DEFAULTS = Request(("20newsgroups", "reuters20"), (8, 32, 128), tuple(ABLATIONS))


def cells(request: Request) -> list[Cell]:
    """List the cells of our defaults and of each change."""
    return [
        Cell(dataset, model, n_bits, seed, preset=preset)
        for dataset in request.datasets
        for model in request.models
        for preset in ("best", *ABLATIONS.get(model, ()))
        for n_bits in request.bits
        for seed in request.seeds
    ]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Make one table a corpus: each change with what it gains or loses."""
    return [
        _sheet(dataset, request, Results(folder, request.seeds)) for dataset in request.datasets
    ]


def _sheet(dataset: str, request: Request, results: Results) -> Sheet:
    rows = []
    for model in request.models:
        wanted = [Cell(dataset, model, n, preset="best") for n in request.bits]
        rows.append(
            [f"**{METHODS[model]}, defaults**", *(show(results.precision(c)) for c in wanted)]
        )
        for preset in ABLATIONS.get(model, ()):
            rows.append([preset.replace("-", " "), *(_change(results, c, preset) for c in wanted)])
    title = f"Precision at 100 with one change, {DATASETS.get(dataset, dataset)}"
    return Sheet(title, ["settings", *(f"{n} bits" for n in request.bits)], rows)


def _change(results: Results, cell: Cell, preset: str) -> str:
    ours, other = results.precision(cell), results.precision(cell._replace(preset=preset))
    if ours is None or other is None:
        return show(other)
    return f"{show(other)} ({other.mean - ours.mean:+.3f})"
