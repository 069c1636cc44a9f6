"""Progress on standard error: bars on a terminal, elsewhere a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from vdsh.documents import Document, DocumentReader
    from vdsh.hashers.base import Progress as Listener
    from vdsh.hashers.base import Report

FIRST = 2.0  # seconds before the first line
SECONDS = 10.0  # between two lines

_bars = WeakSet[Progress]()  # of terminals


@contextmanager
def paused() -> Iterator[None]:
    """Take the bars off the screen for as long as somebody is asked there."""
    bars = [bar for bar in _bars if bar.live.is_started]
    for bar in bars:
        bar.live.transient = True
        bar.stop()
    try:
        yield
    finally:
        for bar in bars:
            bar.live.transient = False
            bar.start()


class _Lines(Progress):
    """Progress where nobody looks: a line now and then, for a log.

    The lines come from a thread of their own too, since one step may take long.
    """

    _last = 0.0
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin to count the seconds."""
        self._last = time.monotonic()
        self._ended = Event()
        self._thread = Thread(target=self._say_now_and_then, daemon=True)
        self._thread.start()
        super().start()

    def stop(self) -> None:
        """Say no more."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
        super().stop()

    def update(self, task_id: TaskID, **fields: Any) -> None:
        """Note how far a task is, and say it if nothing was said for long."""
        super().update(task_id, **fields)
        if time.monotonic() - self._last >= SECONDS:
            self._say(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Note a step of a task."""
        self.update(task_id, advance=advance)

    def _say_now_and_then(self) -> None:
        pause = FIRST
        while not self._ended.wait(pause):
            if self.task_ids and time.monotonic() - self._last >= pause:
                self._say(self.task_ids[-1])
            pause = max(SECONDS, FIRST)

    def _say(self, task_id: TaskID) -> None:
        self._last = time.monotonic()
        (task,) = (task for task in self.tasks if task.id == task_id)
        columns = (column for column in self.columns if isinstance(column, ProgressColumn))
        words = " ".join(filter(None, (str(column.render(task)) for column in columns)))
        print(words, file=sys.stderr, flush=True)  # noqa: T201


class _Left(TimeRemainingColumn):
    """The time that is left, where it is known."""

    def render(self, task: Task) -> Text:
        """Say how long it will take."""
        return super().render(task).append(" left") if task.time_remaining else Text("")


def progress_bar(*columns: ProgressColumn | str, enabled: bool = True) -> Progress:
    """Make a bar that draws itself on a terminal and writes a line now and then elsewhere."""
    console = Console(stderr=True)
    times = (TimeElapsedColumn(), _Left())
    text = TextColumn("{task.description}")
    if enabled and not console.is_terminal:
        return _Lines(text, *columns, *times, console=console, disable=True)
    drawn = (SpinnerColumn(), text, BarColumn(bar_width=24))
    bar = Progress(*drawn, *columns, *times, console=console, disable=not enabled)
    _bars.add(bar)
    return bar


@contextmanager
def busy(description: str) -> Iterator[None]:
    """Show that something goes on of which it is not known how far it is."""
    with progress_bar() as bar:
        bar.live.transient = True  # nothing stays on the screen
        bar.add_task(description, total=None)
        yield


@contextmanager
def training_bar(*, enabled: bool = True) -> Iterator["Listener"]:
    """Show epochs, loss, divergence and validation score; yields what `fit` wants as `progress`."""
    with progress_bar(TextColumn("{task.fields[numbers]}"), enabled=enabled) as bar:
        task = bar.add_task("counting words", total=None, numbers="")

        def listen(report: "Report") -> None:
            bar.update(
                task,
                total=report.epochs,
                completed=report.epoch - 1 + report.done,
                description=f"{report.unit} {report.epoch}/{report.epochs}",
                numbers=describe(report),
            )

        yield listen


def describe(report: "Report") -> str:
    """Write loss, divergence and validation score of a report.

    >>> from vdsh.hashers.base import Report
    >>> describe(Report(1, 30, 0.5, 612.34, 20.1, 0.5678, "precision"))
    'loss 612.3  KL 20.1  P@100 0.568'
    """
    parts = []
    if report.loss is not None:
        parts.append(f"loss {report.loss:.1f}")
    if report.kl is not None:
        parts.append(f"KL {report.kl:.1f}")
    if report.validation is not None:
        name = "P@100" if report.selects_on == "precision" else report.selects_on
        parts.append(f"{name} {report.validation:.3f}")
    return "  ".join(parts)


@contextmanager
def reading_bar(
    reader: "DocumentReader", description: str, *, enabled: bool = True
) -> Iterator[Iterator["Document"]]:
    """Yield the reader's documents; show how many were read, and the time left if it is known."""
    with progress_bar(TextColumn("{task.fields[count]:,} documents"), enabled=enabled) as bar:
        total = None if reader.fraction is None else 1.0
        task = bar.add_task(description, total=total, count=0)

        def documents() -> Iterator["Document"]:
            for count, document in enumerate(reader, 1):
                if count % 256 == 0:
                    bar.update(task, completed=reader.fraction, count=count)
                yield document
            bar.update(task, total=1.0, completed=1.0, count=count)

        yield documents()


def counting_bar(description: str, total: int, *, enabled: bool = True) -> Progress:
    """Make a bar over a known number of things, with its task added."""
    bar = progress_bar(MofNCompleteColumn(), enabled=enabled)
    bar.add_task(description, total=total)
    return bar


@contextmanager
def show_progress(
    description: str, total: int = 0, *, enabled: bool = True
) -> Iterator[Callable[..., None]]:
    """Draw a bar; gives what is called with how much is done, and total and name if they change."""
    with counting_bar(description, total, enabled=enabled) as bar:

        def show(done: int, total: int | None = None, name: str | None = None) -> None:
            bar.update(bar.task_ids[0], completed=done, total=total, description=name)

        yield show
