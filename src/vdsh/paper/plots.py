"""Rows to figures: lines, bars and maps, drawn with matplotlib."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import needing

# Numbers by panel and series; None where one is missing.
Panels = Mapping[str, Mapping[str, Sequence[float | None]]]
_MARKERS = "osv^D<>Px*"


def lines(panels: Panels, xs: Sequence[int], path: Path, *, x: str, y: str) -> None:
    """Draw one panel a key, one line a series over `xs`, spaced evenly; None is a missing value."""
    for axis, series in _empty_panels(panels, path):
        for number, (name, values) in enumerate(series.items()):
            marker = _MARKERS[number % len(_MARKERS)]
            # A missing value becomes NaN, which leaves a gap.
            heights = np.array(values, float)
            axis.plot(range(len(xs)), heights, marker=marker, ms=4, lw=1.3, label=name)
        axis.set_xticks(range(len(xs)), [str(value) for value in xs])
        axis.set(xlabel=x, ylabel=y, ylim=(0, 1))
        axis.grid(alpha=0.3)


def bars(panels: Panels, names: Sequence[str], path: Path, *, y: str) -> None:
    """Draw one panel a key, a group of bars a series, a bar a name."""
    for axis, series in _empty_panels(panels, path):
        for number, name in enumerate(names):
            values = np.array([values[number] for values in series.values()], float)
            places = np.arange(len(series)) + 0.25 * (number - (len(names) - 1) / 2)
            drawn = axis.bar(places, np.nan_to_num(values), 0.24, label=name)
            axis.bar_label(drawn, [f"{value:.2f}" for value in values], fontsize=6)
        axis.set_xticks(range(len(series)), list(series))
        axis.set(ylabel=y, ylim=(0, 1.05))


def maps(
    panels: Mapping[str, NDArray[np.float64]],
    labels: Sequence[str],
    notes: Mapping[int, str],
    path: Path,
) -> None:
    """Draw points of shape (n, 2) coloured by label, a panel a key; `notes` names rows."""
    names = sorted(set(labels))
    colours = np.array([names.index(label) for label in labels])
    with needing("A figure", "matplotlib", "plots"):
        from matplotlib import colormaps
    for axis, points in _empty_panels(panels, path, size=5):
        for number, name in enumerate(names):
            of_label = points[colours == number]
            colour = colormaps["tab20"](number % 20)
            axis.scatter(*of_label.T, s=5, color=colour, label=name, linewidths=0)
        for number, row in enumerate(notes, 1):
            axis.scatter(*points[row], s=50, facecolors="none", edgecolors="black")
            axis.annotate(
                str(number),
                points[row],
                (6, 6),
                textcoords="offset points",
                weight="bold",
                fontsize=11,
            )
        caption = [f"{number}: {text}" for number, text in enumerate(notes.values(), 1)]
        axis.set_xlabel("\n".join(caption), loc="left", fontsize=8)
        axis.set(xticks=[], yticks=[])


def _empty_panels(
    panels: Mapping[str, Any], path: Path, size: float = 3.4
) -> Iterator[tuple[Any, Any]]:
    """Yield an empty panel for each key, with what belongs there; write the figure at the end."""
    with needing("A figure", "matplotlib", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    n_columns = min(2, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    figure = Figure(figsize=(1.5 * size * n_columns, size * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for axis, (title, content) in zip(axes, panels.items(), strict=False):
        axis.set(title=title)
        yield axis, content
    for unused in axes[len(panels) :]:
        unused.remove()
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize=8, markerscale=1.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
