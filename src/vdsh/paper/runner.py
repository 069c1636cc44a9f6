"""Running many cells: those that are finished are kept, the others run one by one or side by side.

Processes are started anew (spawn), because torch and numba do not survive a fork.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.queues import Queue
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress as Bar

from vdsh.errors import InputError, VdshError
from vdsh.hashers.base import Report
from vdsh.paper import cells
from vdsh.paper.cells import Cell
from vdsh.progress import counting_bar


class Plan(NamedTuple):
    """How to run cells."""

    results: Path  # the folder of finished cells
    root: str | None = None  # the folder of the corpora
    device: str = "auto"
    jobs: int = 1  # cells that run side by side
    force: bool = False  # run finished cells again
    quiet: bool = False


def run(wanted: Sequence[Cell], plan: Plan) -> dict[Cell, str]:
    """Run the cells that are not finished; return those that failed, with the reason."""
    if plan.jobs < 1:
        raise InputError(f"jobs must be at least 1. Got {plan.jobs}.")
    todo = list(wanted) if plan.force else unfinished(wanted, plan.results)
    todo.sort(key=lambda cell: (cell.dataset, cell.seed))  # a corpus is read once
    failed: dict[Cell, str] = {}
    with counting_bar("cells", len(wanted), enabled=not plan.quiet) as bar:
        bar.update(bar.task_ids[0], completed=len(wanted) - len(todo))
        runner = _in_turn if plan.jobs == 1 or len(todo) < 2 else _side_by_side
        for cell, error in runner(todo, plan, bar):
            if error:
                failed[cell] = error
            bar.update(bar.task_ids[0], advance=1, description=f"cells, last {cell.path.stem}")
    return failed


def _in_turn(todo: Sequence[Cell], plan: Plan, bar: Bar) -> Iterator[tuple[Cell, str]]:
    for cell in todo:

        def show(report: Report, cell: Cell = cell) -> None:
            step = f"{report.unit} {report.epoch}/{report.epochs}"
            bar.update(bar.task_ids[0], description=f"{cell.dataset}/{cell.path.stem} {step}")

        yield cell, _attempt(cell, plan, show)


def _side_by_side(todo: Sequence[Cell], plan: Plan, bar: Bar) -> Iterator[tuple[Cell, str]]:
    context = multiprocessing.get_context("spawn")
    shares: Queue[set[int]] = context.Queue()
    for i in range(plan.jobs):
        shares.put(_share(i, plan.jobs))
    with ProcessPoolExecutor(
        plan.jobs, mp_context=context, initializer=_take_cores, initargs=(shares,)
    ) as pool:
        running = {pool.submit(_attempt, cell, plan): cell for cell in todo}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def unfinished(wanted: Sequence[Cell], results: Path) -> list[Cell]:
    """List the cells that are missing, or were not made by today's code and settings."""
    return [cell for cell in wanted if not cells.is_finished(cell, cells.read(results, cell))]


def _share(i: int, jobs: int) -> set[int]:
    """Deal out the cores this process may use; with more jobs than cores some are shared."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return set(cores[i::jobs]) or {cores[i % len(cores)]}


def _attempt(cell: Cell, plan: Plan, show: Callable[[Report], None] | None = None) -> str:
    """Run and keep one cell; return what went wrong, or nothing."""
    try:
        previous = None if plan.force else cells.usable(cell, cells.read(plan.results, cell))
        result = cells.run(
            cell, root=plan.root, device=plan.device, progress=show, previous=previous
        )
    except VdshError as error:
        return str(error)
    cells.write(plan.results, cell, result)
    return ""


def _take_cores(shares: "Queue[set[int]]") -> None:
    """Give each process its share of the cores; numba and BLAS make a thread for each."""
    from threadpoolctl import threadpool_limits

    cores = shares.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    threadpool_limits(len(cores))
    os.environ["OMP_NUM_THREADS"] = str(len(cores))
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(len(cores))
