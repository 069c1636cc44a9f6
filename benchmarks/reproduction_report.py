"""`docs/reproduction.md`: every table and figure, and what agrees with the paper, from results."""

from collections.abc import Sequence
from pathlib import Path

from vdsh.paper.cells import Cell
from vdsh.paper.reference import BITS, DATASETS, METHODS, OURS, published
from vdsh.paper.reproduction import ITEMS
from vdsh.paper.results import Outcome, Results, is_better
from vdsh.paper.sheets import Sheet, markdown, number

_NEAR = 0.05  # a baseline this far below the paper asks for an explanation


def report(folder: Path, seeds: Sequence[int] = (0,)) -> str:
    """Write summary, tables and links to figures from the finished cells of a folder."""
    parts = [markdown(summary(folder, seeds), level=2)]
    for name in ("table1", "table2", "figure2", "figure3", "figure4"):
        item = ITEMS[name]
        request = item.defaults._replace(seeds=tuple(seeds))
        figure = f"\n\n![{name}](../results/{name}.png)" if item.draw else ""
        tables = markdown(item.sheets(request, folder), level=3)
        parts.append(f"## {name[:-1].capitalize()} {name[-1]}{figure}\n\n{tables}")
    return "\n\n".join(parts)


def summary(folder: Path, seeds: Sequence[int]) -> list[Sheet]:
    """Count what agrees with the paper, and list every exception."""
    results = Results(folder, seeds)
    cells = [Cell(d, m, n) for d in DATASETS for m in METHODS for n in BITS]
    ours = [cell for cell in cells if cell.model in OURS]
    reached = [cell for cell in ours if not _gap(cell, results) > 0]
    supervised = [cell for cell in ours if cell.model != "vdsh"]
    beaten = [cell for cell in supervised if _is_best(cell, results)]
    baselines = [c for c in cells if c.model not in OURS and published(*c[:3]) is not None]
    near = [cell for cell in baselines if not _gap(cell, results) > _NEAR]
    rows = [
        ["cells run", f"{sum(results.precision(c) is not None for c in cells)} of {len(cells)}"],
        ["VDSH, VDSH-S, VDSH-SP at least at the paper's number", _share(reached, ours)],
        ["VDSH-S, VDSH-SP above every baseline, p < 0.01", _share(beaten, supervised)],
        ["baselines better than the paper's number or within 0.05", _share(near, baselines)],
    ]
    return [
        Sheet("Summary", ["what", "cells"], rows),
        _exceptions("Ours below the paper", [c for c in ours if c not in reached], results),
        _exceptions(
            "Baselines more than 0.05 below the paper",
            [c for c in baselines if c not in near],
            results,
        ),
        _exceptions(
            "VDSH-S or VDSH-SP not significantly above the best baseline",
            [c for c in supervised if c not in beaten],
            results,
        ),
    ]


def _exceptions(title: str, cells: Sequence[Cell], results: Results) -> Sheet:
    rows = [
        [
            DATASETS[cell.dataset],
            METHODS[cell.model],
            str(cell.n_bits),
            number(published(*cell[:3])),
            number(_mean(results.precision(cell))),
            number(_mean(results.best_baseline(cell, list(METHODS)))),
        ]
        for cell in cells
    ]
    header = ["corpus", "method", "bits", "paper", "ours", "best baseline here"]
    return Sheet(title, header, rows, "" if rows else "None.")


def _gap(cell: Cell, results: Results) -> float:
    """Return how far a cell is below the paper; infinitely where it was not run."""
    found, paper = results.precision(cell), published(*cell[:3])
    if found is None:
        return float("inf")
    return 0.0 if paper is None else round(paper - found.mean, 4)


def _is_best(cell: Cell, results: Results) -> bool:
    found, best = results.precision(cell), results.best_baseline(cell, list(METHODS))
    return found is not None and best is not None and is_better(found, best)


def _mean(outcome: Outcome | None) -> float | None:
    return outcome.mean if outcome else None


def _share(some: Sequence[Cell], of: Sequence[Cell]) -> str:
    return f"{len(some)} of {len(of)} ({len(some) / len(of):.0%})"
