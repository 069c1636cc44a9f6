"""Running many cells: those that are finished are kept, the others run one by one or in parallel.

joblib starts new processes, because torch and numba do not survive a fork.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress as Bar

from vdsh.errors import InputError, VdshError, needing
from vdsh.hashers.base import Report
from vdsh.jit import available_threads, use_threads
from vdsh.paper import cell_files, cells
from vdsh.paper.cells import Cell
from vdsh.progress import counting_bar


class Plan(NamedTuple):
    """How to run cells.

    Attributes
    ----------
    results : Path
        The folder of finished cells.
    root : str, optional
        The folder of the corpora.
    device : str
    jobs : int
        How many cells run side by side.
    force : bool
        Run finished cells again.
    quiet : bool
        Show no progress.
    """

    results: Path
    root: str | None = None
    device: str = "auto"
    jobs: int = 1
    force: bool = False
    quiet: bool = False


def run(wanted: Sequence[Cell], plan: Plan) -> dict[Cell, str]:
    """Run the cells that are not finished; return those that failed, with the reason."""
    if plan.jobs < 1:
        raise InputError(f"jobs must be at least 1. Got {plan.jobs}.")
    todo = list(wanted) if plan.force else unfinished(wanted, plan.results)
    # In this order each corpus is read once.
    todo.sort(key=lambda cell: (cell.dataset, cell.seed))
    failed: dict[Cell, str] = {}
    with counting_bar("cells", len(wanted), enabled=not plan.quiet) as bar:
        bar.update(bar.task_ids[0], completed=len(wanted) - len(todo))
        if plan.jobs == 1 or len(todo) < 2:
            outcomes = _in_turn(todo, plan, bar)
        else:
            outcomes = _side_by_side(todo, plan)
        for cell, error in outcomes:
            if error:
                failed[cell] = error
            bar.update(bar.task_ids[0], advance=1, description=f"cells, last {cell.name}")
    return failed


def _in_turn(todo: Sequence[Cell], plan: Plan, bar: Bar) -> Iterator[tuple[Cell, str]]:
    for cell in todo:

        def show(report: Report, cell: Cell = cell) -> None:
            step = f"{report.unit} {report.epoch}/{report.epochs}"
            bar.update(bar.task_ids[0], description=f"{cell.name} {step}")

        yield cell, _attempt(cell, plan, show)


def _side_by_side(todo: Sequence[Cell], plan: Plan) -> Iterator[tuple[Cell, str]]:
    """Run cells in processes of their own, which share the cores."""
    with needing("Running cells side by side", "joblib", "train"):
        from joblib import Parallel, delayed
    threads = max(1, available_threads() // plan.jobs)

    def job(cell: Cell) -> tuple[Cell, str]:
        use_threads(threads)
        return cell, _attempt(cell, plan)

    parallel = Parallel(plan.jobs, return_as="generator_unordered", batch_size=1)
    outcomes: Iterator[tuple[Cell, str]] = parallel(delayed(job)(cell) for cell in todo)
    return outcomes


def unfinished(wanted: Sequence[Cell], results: Path) -> list[Cell]:
    """List the cells that are missing, or were not made by today's code and settings."""
    return [cell for cell in wanted if not cells.is_finished(cell, cell_files.read(results, cell))]


def _attempt(cell: Cell, plan: Plan, show: Callable[[Report], None] | None = None) -> str:
    """Run and keep one cell; return what went wrong, or nothing."""
    try:
        record = cells.run(cell, root=plan.root, device=plan.device, progress=show)
    except VdshError as error:
        return str(error)
    cell_files.write(plan.results, cell, record)
    return ""
