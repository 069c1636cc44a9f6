"""Figure 4: t-SNE of latent vectors on 20 Newsgroups, SHTTM beside VDSH-S, 32 bits.

The points are the test documents, which neither method has seen, and the four posts that the
paper names.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh import plots
from vdsh.datasets import Dataset, load
from vdsh.paper import cells as one
from vdsh.paper import provenance
from vdsh.paper.cells import Cell
from vdsh.paper.counted import count
from vdsh.paper.reference import METHODS
from vdsh.paper.results import Request
from vdsh.paper.runner import Plan
from vdsh.paper.sheets import Sheet
from vdsh.paper.versions import version

DEFAULTS = Request(("20newsgroups",), (32,), ("shttm", "vdsh-s"))
# Table 3 of the paper; of the second there are only answers ("Re: ...") in the bydate version
TITLES = (
    "Trade rumor: Montreal/Ottawa/Phillie",
    "NHL team leaders in +/-",
    "Books For Sale [Ann Arbor, MI]",
    "*** NeXTstation 8/105 For Sale ***",
)
_NEIGHBOURS = 10


def compute(request: Request, plan: Plan) -> None:
    """Train both methods, lay their latent vectors out and keep the maps."""
    for cell in _cells(request) if plan.force else unfinished(request, plan.results):
        one.write_json(_path(plan.results, cell), _map(cell, plan))


def unfinished(request: Request, folder: Path) -> list[Cell]:
    """List the cells whose map is missing, or was not made by today's code and settings."""
    return [cell for cell in _cells(request) if not _is_current(folder, cell)]


def _cells(request: Request) -> list[Cell]:
    first = request._replace(bits=request.bits[:1])
    return [cell._replace(seed=request.seeds[0]) for cell in first.cells()]


def sheets(request: Request, folder: Path) -> list[Sheet]:
    """Put numbers beside the picture: how pure neighbourhoods are, how near the named pairs."""
    rows = [_row(model, found) for model, found in _maps(request, folder).items()]
    header = ["method", f"same class among the {_NEIGHBOURS} nearest", "hockey pair", "sale pair"]
    note = (
        "Of the points on the map. A pair is given by the share of all points that lie nearer to "
        "its first post than its second post does; 0 % is nearest."
    )
    return [Sheet("Maps of 20 Newsgroups", header, rows, note)] if rows else []


def draw(request: Request, folder: Path, path: Path) -> None:
    """Draw one panel a method."""
    maps = _maps(request, folder)
    if not maps:
        return
    first = next(iter(maps.values()))
    notes = {row: title for title, row in first["titles"].items()}
    panels = {METHODS[model]: np.array(found["points"]) for model, found in maps.items()}
    plots.maps(panels, first["labels"], notes, path)


def _is_current(folder: Path, cell: Cell) -> bool:
    """Tell whether there is a map, made by the code and settings that one would take today."""
    found = _read(folder, cell)
    if found is None or found.get("made_by") != version(cell.model):
        return False
    return bool(found["settings"] == _choose_settings(folder, cell, found["learned_from"]))


def _choose_settings(folder: Path, cell: Cell, learned_from: dict[str, int]) -> dict[str, Any]:
    """Take what validation chose for table 1; before that is known, the first candidate."""
    finished = one.read(folder, cell)
    if finished is None:
        return one.choices(cell, learned_from)[0]
    best: dict[str, Any] = max(finished["tried"], key=lambda tried: tried["validation"])
    return dict(best["settings"])


def _map(cell: Cell, plan: Plan) -> dict[str, Any]:
    data = count(cell.dataset, cell.seed, plan.root)
    learned_from = one.what_is_seen(cell, data)
    settings = _choose_settings(plan.results, cell, learned_from)
    trial = one.fit(cell, data, settings, device=plan.device)
    scores = np.concatenate([trial.scores[name] for name in ("train", "validation", "test")])
    corpus = load(cell.dataset, root=plan.root, seed=cell.seed, quiet=True)
    titles, rows = _choose(corpus)
    labels = [labels for part in corpus[1:4] for labels in part.labels]
    return {
        "cell": cell._asdict(),
        "data": data.note,
        "learned_from": learned_from,
        "made_by": version(cell.model),
        "settings": settings,
        "circumstances": provenance(),
        "titles": titles,
        "labels": [(labels[row] or ("none",))[0] for row in rows],
        "points": plots.lay_out(scores[rows], seed=cell.seed).round(2).tolist(),
    }


def _choose(corpus: Dataset) -> tuple[dict[str, int], list[int]]:
    """Take the test documents and the named posts; return the latters' places among them."""
    texts = [text for part in corpus[1:4] for text in part.texts or ()]
    n_seen = len(texts) - len(corpus.test.ids)
    rows = list(range(n_seen, len(texts)))
    titles = {}
    for title in TITLES:
        lines = (f"Subject: {title}\n", f"Subject: Re: {title}\n")
        found = [row for line in lines for row, text in enumerate(texts) if line in text]
        if found:
            rows += [found[0]] if found[0] < n_seen else []
            titles[title] = rows.index(found[0])
    return titles, rows


def _row(model: str, found: dict[str, Any]) -> list[str]:
    points, labels = np.array(found["points"]), np.array(found["labels"])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1 : _NEIGHBOURS + 1]
    purity = np.mean(labels[nearest] == labels[:, None])
    pairs = [_nearer(distances, found["titles"], *TITLES[i : i + 2]) for i in (0, 2)]
    return [METHODS[model], f"{purity:.1%}", *pairs]


def _nearer(distances: NDArray[np.float64], titles: dict[str, int], first: str, second: str) -> str:
    if first not in titles or second not in titles:
        return "–"
    row = distances[titles[first]]
    return f"{np.mean(row < row[titles[second]]):.1%}"


def _maps(request: Request, folder: Path) -> dict[str, dict[str, Any]]:
    cell = Cell(request.datasets[0], "", request.bits[0], request.seeds[0])
    found = {model: _read(folder, cell._replace(model=model)) for model in request.models}
    return {model: result for model, result in found.items() if result is not None}


def _path(folder: Path, cell: Cell) -> Path:
    return folder / "maps" / f"{cell.dataset}-{cell.path.name}"


def _read(folder: Path, cell: Cell) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(_path(folder, cell).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found
