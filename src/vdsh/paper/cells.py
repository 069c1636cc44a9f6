"""One cell of a table: a method with a code length on a corpus, trained, tuned and measured.

A method's settings are chosen on the validation documents; the test documents are looked at once,
with the chosen settings. What comes out is a record, which `cell_files` keeps: an interrupted
table goes on where it stopped, and every number can be traced to settings, seed, commit and
queries.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import FIXED, Scores, binarize, pack, thresholds
from vdsh.hashers import HASHERS, Hasher
from vdsh.hashers.base import Progress
from vdsh.hashers.vdsh.defaults import settle
from vdsh.hashers.vdsh.presets import PAPER
from vdsh.paper.corpora import Counted, Part, count, place, show_some
from vdsh.paper.protocol import Evaluation, evaluate_codes
from vdsh.paper.provenance import provenance
from vdsh.paper.settings import candidates, version

# How many nearest documents count, and within which Hamming distance: those of the paper.
K = 100
RADIUS = 2

# Equal to no setting.
_ABSENT = object()


class Cell(NamedTuple):
    """What to run.

    Attributes
    ----------
    dataset, model : str
    n_bits : int
    seed : int
        Of training and validation documents, and of the method.
    weighting : str
        "" for the method's own.
    preset : str
        "paper", "best" (our defaults) or one of `settings.ABLATIONS`, for our models.
    labelled : int
        Percent of the training and validation documents whose labels may be seen. With 0 nothing
        is chosen by labels: neither settings nor epochs.
    map : bool
        Lay the documents out on a plane too, for figure 4.
    """

    dataset: str
    model: str
    n_bits: int
    seed: int = 0
    weighting: str = ""
    preset: str = "paper"
    labelled: int = 100
    map: bool = False

    @property
    def name(self) -> str:
        """What messages and files call it.

        >>> Cell("tmc", "vdsh", 32).name
        'tmc/vdsh-32-seed0'
        """
        parts = [self.model, str(self.n_bits)]
        if self.weighting:
            parts.append(self.weighting)
        if self.preset != "paper":
            parts.append(self.preset)
        if self.labelled != 100:
            parts.append(f"{self.labelled}percent")
        if self.map:
            parts.append("map")
        parts.append(f"seed{self.seed}")
        return f"{self.dataset}/{'-'.join(parts)}"


class Trial(NamedTuple):
    """A method fitted with some settings, and its scores of each part."""

    hasher: Hasher
    settings: dict[str, Any]
    seconds: float
    scores: dict[str, Scores]


def run(
    cell: Cell, *, root: str | None = None, device: str = "auto", progress: Progress | None = None
) -> dict[str, Any]:
    """Train every candidate, keep the best on validation, and measure it on the test documents."""
    data = count(cell.dataset, cell.seed, root)
    shown = show_some(data.train, cell.labelled, cell.seed)
    # What the rules for open settings look at.
    learned_from = {
        "documents": len(shown.labels),
        "labelled": sum(label is not None for label in shown.labels),
    }
    all_settings = choices(cell, learned_from)
    tried: list[dict[str, Any]] = []
    best: Trial | None = None
    best_index = 0
    for settings in all_settings:
        trial = fit(cell, data, settings, device=device, progress=progress)
        for threshold in _thresholds_to_try(cell, trial.hasher):
            precision = _precision(evaluate(trial, data, "validation", threshold))
            score = _mean(precision)
            if best is None or score > tried[best_index]["validation"]:
                best = trial
                best_index = len(tried)
            tried.append(
                {
                    "settings": settings,
                    "threshold": threshold,
                    "validation": score,
                    "seconds": round(trial.seconds, 1),
                }
            )
    assert best is not None
    record = {
        "cell": cell._asdict(),
        "data": data.note,
        **measured_on_test(cell, data, best, tried[best_index]["threshold"]),
        **with_shared_settings(tried),
        "chosen": best_index,
        "learned_from": learned_from,
        "made_by": version(cell.model, all_settings),
        "circumstances": provenance(),
    }
    if cell.map:
        record |= place(cell.dataset, cell.seed, root, best.scores)
    return record


def fit(
    cell: Cell,
    data: Counted,
    settings: dict[str, Any],
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Trial:
    """Train the cell's method and score all documents with it."""
    hasher_class = HASHERS[cell.model]
    if "device" in hasher_class().get_params():
        settings = settings | {"device": device}
    hasher = hasher_class(cell.n_bits, random_state=cell.seed, **settings)
    train = show_some(data.train, cell.labelled, cell.seed)
    validation = show_some(data.validation, cell.labelled, cell.seed)
    started = time.monotonic()
    hasher.fit(*train, validation=validation, progress=progress)
    seconds = time.monotonic() - started
    # Stopped by hand: a half-trained method is not a result.
    if getattr(hasher, "interrupted_", False):
        raise KeyboardInterrupt
    scores = {
        "train": hasher.scores(data.train.counts),
        "validation": hasher.scores(data.validation.counts),
        "test": hasher.scores(data.test.counts),
    }
    return Trial(hasher, settings, seconds, scores)


def evaluate(trial: Trial, data: Counted, part: str, threshold: str) -> Evaluation:
    """Measure one part's documents searching the training documents."""
    if threshold == trial.hasher.threshold:
        cut = trial.hasher.thresholds_
    else:
        cut = thresholds(trial.scores["train"], threshold)
    codes = pack(binarize(trial.scores["train"], cut))
    query_codes = pack(binarize(trial.scores[part], cut))
    queries: Part = getattr(data, part)
    return evaluate_codes(query_codes, queries.labels, codes, data.train.labels, k=K, radius=RADIUS)


def choices(cell: Cell, learned_from: dict[str, int]) -> list[dict[str, Any]]:
    """Return what a cell chooses among: all settings of each candidate, as they will be used.

    Defaults are written out and open settings have what their rules give, so that a result whose
    settings are equal was made with the defaults and rules of today.
    """
    hasher_class = HASHERS[cell.model]
    n_docs = learned_from["documents"]
    labelled = learned_from["labelled"] / n_docs if hasher_class.supervised else 0.0
    overrides = {"weighting": cell.weighting} if cell.weighting else {}
    chosen = []
    for candidate in candidates(cell.model, cell.dataset, cell.preset):
        settings = hasher_class(cell.n_bits, **candidate | overrides).get_params()
        chosen.append(_used(settle(settings, n_docs, labelled)))
    # Without labels there is nothing to choose by.
    return chosen if cell.labelled else chosen[:1]


def is_finished(cell: Cell, record: dict[str, Any] | None) -> bool:
    """Tell whether a record was made by today's code and has tried the candidates of today."""
    if record is None:
        return False
    today = choices(cell, record["learned_from"])
    if record.get("made_by") != version(cell.model, today):
        return False
    tried = [record["settings"] | trial["settings"] for trial in record["tried"]]
    is_complete = all(settings in tried for settings in today)
    return is_complete and all(settings in today for settings in tried)


def with_shared_settings(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """Write what all trials share once, as `settings`, and of each trial what is its own.

    >>> with_shared_settings([{"settings": {"C": 1, "n": 5}}, {"settings": {"C": 2, "n": 5}}])
    {'settings': {'n': 5}, 'tried': [{'settings': {'C': 1}}, {'settings': {'C': 2}}]}
    """
    first = tried[0]["settings"]
    shared = {
        name: value
        for name, value in first.items()
        if all(trial["settings"].get(name, _ABSENT) == value for trial in tried)
    }
    trials = []
    for trial in tried:
        varied = {name: value for name, value in trial["settings"].items() if name not in shared}
        trials.append(trial | {"settings": varied})
    return {"settings": shared, "tried": trials}


def thresholds_to_keep(cell: Cell, chosen: str) -> tuple[str, ...]:
    """Name the thresholds whose per-query values are kept: those that a test compares.

    Table 2 compares the median with the sign for our models; all else compares the thresholds that
    the methods chose.
    """
    if cell.model in PAPER and cell.preset == "paper":
        return tuple(dict.fromkeys((*FIXED, chosen)))
    return (chosen,)


def measured_on_test(cell: Cell, data: Counted, trial: Trial, chosen: str) -> dict[str, Any]:
    """Measure the chosen trial on the test documents, by every threshold."""
    evaluations = {
        threshold: evaluate(trial, data, "test", threshold)
        for threshold in dict.fromkeys((*FIXED, chosen))
    }
    best = evaluations[chosen]
    within = f"precision<={RADIUS}"
    return {
        "train": best.n_documents,
        "queries": best.n_queries,
        "unlabelled": best.n_unlabelled,
        "terms": data.train.counts.shape[1],
        "k": best.k,
        "threshold": chosen,
        "seconds": round(trial.seconds, 1),
        "precision": {name: _mean(_precision(one)) for name, one in evaluations.items()},
        "radius_precision": {name: _mean(one.values[within]) for name, one in evaluations.items()},
        "measures": {name: round(value, 4) for name, value in best.means.items()},
        "epoch": getattr(trial.hasher, "best_epoch_", None),
        "unused_bits": trial.hasher.unused_bits_,
        "duplicated_bits": trial.hasher.duplicated_bits_,
        "per_query_permille": {
            threshold: permille(_precision(evaluations[threshold]))
            for threshold in thresholds_to_keep(cell, chosen)
        },
    }


def permille(values: NDArray[np.float64]) -> NDArray[np.int16]:
    """Round to thousandths, as whole numbers: no test of significance can tell the difference."""
    return np.rint(values * 1000).astype(np.int16)


def _thresholds_to_try(cell: Cell, hasher: Hasher) -> tuple[str, ...]:
    """Our models choose their epoch on validation and keep the preset's threshold."""
    if cell.model in PAPER or cell.preset == "best":
        return (hasher.threshold,)
    return FIXED


def _used(settings: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the cell or the machine says, and how many neighbours where none are asked."""
    unused = {"n_bits", "random_state", "device"}
    if not settings.get("neighbor_share", 1):
        unused.add("n_neighbors")
    return {name: value for name, value in settings.items() if name not in unused}


def _precision(evaluation: Evaluation) -> NDArray[np.float64]:
    return evaluation.values[f"precision@{evaluation.k}"]


def _mean(values: NDArray[np.float64]) -> float:
    return round(float(values.mean()), 4)
