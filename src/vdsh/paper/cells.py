"""One cell of a table: a method with a code length on a corpus, trained, tuned and measured.

A method's settings are chosen on the validation documents; the test documents are looked at once,
with the chosen settings. A finished cell is a JSON file, so an interrupted table goes on where it
stopped, and every number can be traced to settings, seed, commit and queries.
"""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import FIXED, Scores, binarize, pack, thresholds
from vdsh.evaluation.protocol import Evaluation, evaluate_codes
from vdsh.files import new_file
from vdsh.hashers import HASHERS, Hasher
from vdsh.hashers.base import Progress
from vdsh.hashers.vdsh.defaults import settle
from vdsh.paper import provenance
from vdsh.paper.corpora import Counted, Part, count, place, show_some
from vdsh.paper.settings import PAPER, candidates, version

K, RADIUS = 100, 2


class Cell(NamedTuple):
    """What to run."""

    dataset: str
    model: str
    n_bits: int
    seed: int = 0  # of training and validation documents, and of the method
    weighting: str = ""  # "" for the method's own
    # "paper", "best" (our defaults) or one of `settings.ABLATIONS`, for our models.
    preset: str = "paper"
    # Percent of the training and validation documents whose labels may be seen. With 0 nothing is
    # chosen by labels: neither settings nor epochs.
    labelled: int = 100
    map: bool = False  # lay the documents out on a plane too, for figure 4

    @property
    def path(self) -> Path:
        """Where the result is kept, below the folder of results.

        >>> print(Cell("tmc", "vdsh", 32).path)
        tmc/vdsh-32-seed0.json
        """
        extra = [self.weighting] * bool(self.weighting)
        extra += [self.preset] * (self.preset != "paper")
        extra += [f"{self.labelled}percent"] * (self.labelled != 100)
        extra += ["map"] * self.map
        name = "-".join([self.model, str(self.n_bits), *extra, f"seed{self.seed}"])
        return Path(self.dataset) / f"{name}.json"


class Trial(NamedTuple):
    """A method fitted with some settings, and its scores of each part."""

    hasher: Hasher
    settings: dict[str, Any]
    seconds: float
    scores: dict[str, Scores]


def fit(
    cell: Cell,
    data: Counted,
    settings: dict[str, Any],
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Trial:
    """Train the cell's method and score all documents with it."""
    kind = HASHERS[cell.model]
    if "device" in kind().get_params():
        settings = settings | {"device": device}
    hasher = kind(cell.n_bits, random_state=cell.seed, **settings)
    started = time.monotonic()
    learned = data.train, data.validation
    train, validation = (show_some(part, cell.labelled, cell.seed) for part in learned)
    hasher.fit(*train, validation=validation, progress=progress)
    if getattr(hasher, "interrupted_", False):  # stopped by hand: half-trained is not a result
        raise KeyboardInterrupt
    seconds = time.monotonic() - started
    scores = {name: hasher.scores(getattr(data, name).counts) for name in Counted._fields[:3]}
    return Trial(hasher, settings, seconds, scores)


def evaluate(trial: Trial, data: Counted, part: str, threshold: str) -> Evaluation:
    """Measure one part's documents searching the training documents."""
    own = threshold == trial.hasher.threshold
    cut = trial.hasher.thresholds_ if own else thresholds(trial.scores["train"], threshold)
    codes = {name: pack(binarize(trial.scores[name], cut)) for name in ("train", part)}
    queries: Part = getattr(data, part)
    return evaluate_codes(
        codes[part], queries.labels, codes["train"], data.train.labels, k=K, radius=RADIUS
    )


def run(
    cell: Cell, *, root: str | None = None, device: str = "auto", progress: Progress | None = None
) -> dict[str, Any]:
    """Train every candidate, keep the best on validation, and measure it on the test documents."""
    data = count(cell.dataset, cell.seed, root)
    # What the rules for open settings look at: training documents, and those with labels.
    shown = [label is not None for label in show_some(data.train, cell.labelled, cell.seed).labels]
    learned_from = {"documents": len(shown), "labelled": sum(shown)}
    tried: list[dict[str, Any]] = []
    best: tuple[Trial, str] | None = None
    settled = choices(cell, learned_from)
    for settings in settled:
        trial = fit(cell, data, settings, device=device, progress=progress)
        # Our models choose their epoch on validation and keep the preset's threshold.
        own = cell.model in PAPER or cell.preset == "best"
        for threshold in (trial.hasher.threshold,) if own else FIXED:
            score = _mean(_precision(evaluate(trial, data, "validation", threshold)))
            if score > max((one["validation"] for one in tried), default=-1.0):
                best = trial, threshold
            found = {"settings": settings, "threshold": threshold, "validation": score}
            tried.append(found | {"seconds": round(trial.seconds, 1)})
    assert best is not None
    extra = {"learned_from": learned_from, "made_by": version(cell.model, settled), "tried": tried}
    if cell.map:
        extra |= place(cell.dataset, cell.seed, root, best[0].scores)
    return _record(cell, data, *best) | extra


def choices(cell: Cell, learned_from: dict[str, int]) -> list[dict[str, Any]]:
    """Return what a cell chooses among: all settings of each candidate, as they will be used.

    Defaults are written out and open settings have what their rules give, so that a result whose
    settings are equal was made with the defaults and rules of today.
    """
    kind = HASHERS[cell.model]
    n_docs = learned_from["documents"]
    labelled = learned_from["labelled"] / n_docs if kind.supervised else 0.0
    own = {"weighting": cell.weighting} if cell.weighting else {}
    given = (
        kind(cell.n_bits, **one | own).get_params()
        for one in candidates(cell.model, cell.dataset, cell.preset)
    )
    chosen = [_used(settle(one, n_docs, labelled)) for one in given]
    return chosen if cell.labelled else chosen[:1]


def _used(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the cell or the machine says, and how many neighbours where none are asked."""
    unused = {"n_bits", "random_state", "device"}
    unused |= set() if settings.get("neighbor_share", 1) else {"n_neighbors"}
    return {name: value for name, value in settings.items() if name not in unused}


def _record(cell: Cell, data: Counted, trial: Trial, chosen: str) -> dict[str, Any]:
    found = {name: evaluate(trial, data, "test", name) for name in dict.fromkeys((*FIXED, chosen))}
    best = found[chosen]
    per_query = {name: _permille(_precision(found[name])) for name in found}
    return {
        "cell": cell._asdict(),
        "data": data.note,
        "train": best.n_documents,
        "queries": best.n_queries,
        "unlabelled": best.n_unlabelled,
        "terms": data.train.counts.shape[1],
        "k": best.k,
        "threshold": chosen,
        "settings": {k: v for k, v in trial.hasher.get_params().items() if k != "random_state"},
        "seconds": round(trial.seconds, 1),
        "precision": {name: _mean(_precision(found[name])) for name in found},
        "radius_precision": {
            name: _mean(found[name].values[f"precision<={RADIUS}"]) for name in found
        },
        "measures": {name: round(value, 4) for name, value in best.means.items()},
        "epoch": getattr(trial.hasher, "best_epoch_", None),
        "unused_bits": trial.hasher.unused_bits_,
        "duplicated_bits": trial.hasher.duplicated_bits_,
        "circumstances": provenance(),
        "per_query_permille": {
            **{f"precision@{best.k} {name}": values for name, values in per_query.items()},
            f"precision<={RADIUS}": _permille(best.values[f"precision<={RADIUS}"]),
        },
    }


def _precision(found: Evaluation) -> NDArray[np.float64]:
    return found.values[f"precision@{found.k}"]


def _mean(values: NDArray[np.float64]) -> float:
    return round(float(values.mean()), 4)


def _permille(values: NDArray[np.float64]) -> list[int]:
    """Round to thousandths, as whole numbers: a third of the bytes."""
    return [int(value) for value in np.rint(values * 1000)]


def write(folder: Path, cell: Cell, result: dict[str, Any]) -> None:
    """Keep a finished cell, a line for each of its fields; the file is whole or absent."""
    path = folder / cell.path
    path.parent.mkdir(parents=True, exist_ok=True)
    dense = {"per_query_permille": (",", ":")}
    lines = [
        f" {json.dumps(name)}: {json.dumps(value, separators=dense.get(name))}"
        for name, value in result.items()
    ]
    with new_file(path) as draft:
        draft.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """Return a cell's result; None if there is none, or none that can be read."""
    try:
        result = json.loads((folder / cell.path).read_text(encoding="utf-8"))
        return result if Cell(**result["cell"]) == cell else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_finished(cell: Cell, result: dict[str, Any] | None) -> bool:
    """Tell whether a result was made by today's code and has tried the candidates of today."""
    if result is None:
        return False
    today = choices(cell, result["learned_from"])
    if result.get("made_by") != version(cell.model, today):
        return False
    tried = [one["settings"] for one in result["tried"]]
    return all(one in tried for one in today) and all(one in today for one in tried)
