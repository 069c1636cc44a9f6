"""Rows to figures: lines, bars and maps, drawn with matplotlib; maps laid out with openTSNE."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import needing

Panels = Mapping[str, Mapping[str, Sequence[float | None]]]
_MARKERS = "osv^D<>Px*"
_ITERATIONS = (250, 500)  # of t-SNE: with and without early exaggeration
_EVERY = 10  # iterations between reports
_FEW = 1000


def lines(panels: Panels, xs: Sequence[int], path: Path, *, x: str, y: str) -> None:
    """Draw one panel a key, one line a series over `xs`, spaced evenly; None is a missing value."""
    for axis, series in _drawn(panels, path):
        for number, (name, values) in enumerate(series.items()):
            marker = _MARKERS[number % len(_MARKERS)]
            heights = np.array(values, float)  # a gap where a value is missing
            axis.plot(range(len(xs)), heights, marker=marker, ms=4, lw=1.3, label=name)
        axis.set_xticks(range(len(xs)), [str(value) for value in xs])
        axis.set(xlabel=x, ylabel=y, ylim=(0, 1))
        axis.grid(alpha=0.3)


def bars(panels: Panels, names: Sequence[str], path: Path, *, y: str) -> None:
    """Draw one panel a key, a group of bars a series, a bar a name."""
    for axis, series in _drawn(panels, path):
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
    for axis, points in _drawn(panels, path, size=5):
        for number, name in enumerate(names):
            of_label = points[colours == number]
            colour = colormaps["tab20"](number % 20)
            axis.scatter(*of_label.T, s=5, color=colour, label=name, linewidths=0)
        for number, row in enumerate(notes, 1):
            axis.scatter(*points[row], s=50, facecolors="none", edgecolors="black")
            how = {"textcoords": "offset points", "weight": "bold", "fontsize": 11}
            axis.annotate(str(number), points[row], (6, 6), **how)
        below = [f"{number}: {text}" for number, text in enumerate(notes.values(), 1)]
        axis.set_xlabel("\n".join(below), loc="left", fontsize=8)
        axis.set(xticks=[], yticks=[])


def lay_out(
    vectors: NDArray[np.float32],
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Place vectors on a plane by t-SNE.

    L. van der Maaten and G. Hinton, "Visualizing Data using t-SNE", JMLR 2008; the implementation
    is openTSNE's. `progress` is called with the iterations done and how many there are.
    """
    with needing("A t-SNE map", "openTSNE", "plots"):
        from openTSNE import TSNE
    done, total = 0, sum(_ITERATIONS)

    def count(*_: Any) -> None:
        nonlocal done
        done += _EVERY
        if progress:
            progress(done, total)

    tsne = TSNE(
        perplexity=min(30, (len(vectors) - 1) / 3),
        early_exaggeration_iter=_ITERATIONS[0],
        n_iter=_ITERATIONS[1],
        callbacks=count,
        callbacks_every_iters=_EVERY,
        random_state=seed,
        n_jobs=-1 if len(vectors) > _FEW else 1,  # threads of few points wait for each other
    )
    return np.asarray(tsne.fit(vectors), np.float64)


def _drawn(panels: Mapping[str, Any], path: Path, size: float = 3.4) -> Iterator[tuple[Any, Any]]:
    """Give an empty panel for each key, with what belongs there; write the figure in the end."""
    with needing("A figure", "matplotlib", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(1.5 * size * columns, size * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis, (title, drawn) in zip(axes, panels.items(), strict=False):
        axis.set(title=title)
        yield axis, drawn
    for unused in axes[len(panels) :]:
        unused.remove()
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize=8, markerscale=1.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
