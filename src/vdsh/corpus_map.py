"""A map of a store's documents: their latent vectors laid out on a plane, once, by t-SNE.

`make_map` computes it, `save` and `load` keep it in the store's folder as one safetensors file
without pickle. A new text is placed among its nearest documents, without moving any of them.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from vdsh.codes import Scores
from vdsh.documents import Document
from vdsh.errors import FolderError, InputError, MissingFileError, needing
from vdsh.files import new_file
from vdsh.persistence import write_tensors
from vdsh.store import Store

FILE = "map.safetensors"
FORMAT = 2  # the first had no fields
LIMIT = 50_000  # t-SNE of more takes many minutes, and a screen shows no more
NEIGHBOURS = 15  # documents a new text is placed among
TITLES = ("title", "subject", "name", "headline")  # metadata fields that name a document
MOST_VALUES, LONGEST_VALUE = 20, 60  # of a small field: how many values, and their characters
_TITLE_LENGTH = 80
_WORDS = ("id", "label", "labels", "and", "or", "not")  # of filters: no field can have the name

# Iterations of t-SNE with early exaggeration, and without it after that.
_EXAGGERATED_ITERATIONS = 250
_ITERATIONS = 500
_ITERATIONS_BETWEEN_REPORTS = 10
# With fewer points than this, threads mostly wait for each other.
_FEWEST_POINTS_FOR_THREADS = 1001

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much


@dataclass
class CorpusMap:
    """Documents on a plane."""

    ids: list[str]  # one a document, as titles are
    titles: list[str]
    points: Scores  # (n_docs, 2): between -1 and 1
    scores: Scores  # (n_docs, n_bits): the latent vectors, to place new texts by
    # (n_docs,): the place of the first label in `labels`; -1 where a document has none.
    label: NDArray[np.int32]
    labels: list[str]  # in alphabetical order
    # `fingerprint` of the model, `documents` in the store when the map was made, `seed`.
    facts: dict[str, Any] = field(default_factory=dict)
    # Of each small field its `values`, and of each document the `place` among them, or -1.
    fields: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows = {id: row for row, id in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def point(self, id: str) -> tuple[float, float] | None:
        """Return where a document is, or None where it is not on the map."""
        row = self._rows.get(id)
        return None if row is None else (float(self.points[row, 0]), float(self.points[row, 1]))

    def place(self, scores: Scores) -> tuple[float, float]:
        """Place a latent vector of shape (n_bits,) among the documents nearest to it.

        That is the median of their places, each weighted by how near it is. A median stays inside
        the group most neighbours are in, where a mean would fall into the gap between two groups.
        """
        distances = np.linalg.norm(self.scores - scores, axis=1)
        nearest = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        weights = 1 / (distances[nearest] + 1e-3 * (distances[nearest].mean() + 1e-9))
        x, y = (_weighted_median(self.points[nearest, axis], weights) for axis in (0, 1))
        return x, y


def make_map(
    store: Store, *, limit: int = LIMIT, seed: int = 0, progress: Progress | None = None
) -> CorpusMap:
    """Lay the documents of a store out on a plane; of a large one `limit`, at random by the seed.

    `progress` is called with what is being done, how much of it is done, and of how much.
    """
    if limit < 1:
        raise InputError(f"limit must be at least 1. Got {limit}.")
    report = progress or (lambda *_: None)
    n_documents = store.count()
    if not n_documents:
        raise InputError("The store is empty, so there is nothing to map. Index documents first.")
    chosen: Collection[int] = range(n_documents)
    if n_documents > limit:
        rows = np.random.default_rng(seed).choice(n_documents, limit, replace=False)
        chosen = set(rows.tolist())
    ids, titles, first, scores, rest = _read(store, chosen, report)
    labels = _numbered({label for label in first if label is not None}, first)
    return CorpusMap(
        ids,
        titles,
        _scale(_lay_out(scores, seed, report)),
        scores,
        np.array(labels["place"], np.int32),
        labels["values"],
        {"documents": n_documents, "seed": seed, "fingerprint": store.model.fingerprint},
        {
            name: _numbered(values, [record.get(name) for record in rest])
            for name, values in small_fields(rest).items()
        },
    )


def _lay_out(scores: Scores, seed: int, report: Progress) -> NDArray[np.float64]:
    """Place vectors by t-SNE; fewer than five, or all alike, lie on a circle."""
    n_documents = len(scores)
    if n_documents < 5 or not np.ptp(scores, axis=0).any():
        angles = 2 * np.pi * np.arange(n_documents) / n_documents
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    report("laying out", 0, 1)
    return lay_out(scores, seed=seed, progress=partial(report, "laying out"))


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
    n_done = 0

    def count(*_: Any) -> None:
        nonlocal n_done
        n_done += _ITERATIONS_BETWEEN_REPORTS
        if progress:
            progress(n_done, _EXAGGERATED_ITERATIONS + _ITERATIONS)

    tsne = TSNE(
        perplexity=min(30, (len(vectors) - 1) / 3),
        early_exaggeration_iter=_EXAGGERATED_ITERATIONS,
        n_iter=_ITERATIONS,
        callbacks=count,
        callbacks_every_iters=_ITERATIONS_BETWEEN_REPORTS,
        random_state=seed,
        n_jobs=-1 if len(vectors) >= _FEWEST_POINTS_FOR_THREADS else 1,
    )
    return np.asarray(tsne.fit(vectors), np.float64)


def title(document: Document) -> str:
    """Name a document in one short line: a title in its metadata, or how its text begins."""
    named = [document.metadata.get(name) for name in TITLES]
    text = next((name for name in named if isinstance(name, str) and name.strip()), document.text)
    line = " ".join(text[: 8 * _TITLE_LENGTH].split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "\u2026"


def small_fields(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Find fields of metadata whose few values repeat, the commonest values first."""
    seen: dict[str, Counter[Any]] = {}
    for name, value in (pair for record in records for pair in record.items()):
        if isinstance(value, str | int) and len(str(value)) <= LONGEST_VALUE:
            seen.setdefault(name, Counter())[value] += 1
    return {
        name: [value for value, _ in values.most_common()]
        for name, values in seen.items()
        if 2 < 2 * len(values) <= min(2 * MOST_VALUES, values.total()) and name not in _WORDS
    }


def _numbered(values: Iterable[Any], given: list[Any]) -> dict[str, list[Any]]:
    """Sort values, and find the place of each given one among them; -1 for others."""
    values = sorted(values, key=lambda value: (isinstance(value, str), value))
    numbers = {repr(value): number for number, value in enumerate(values)}
    return {"values": values, "place": [numbers.get(repr(value), -1) for value in given]}


def save(path: Path, corpus_map: CorpusMap) -> None:
    """Write a map that is whole or absent."""
    names = {name: getattr(corpus_map, name) for name in ("ids", "titles", "labels", "fields")}
    arrays = {name: getattr(corpus_map, name) for name in ("points", "scores", "label")}
    arrays["names"] = np.frombuffer(json.dumps(names).encode(), np.uint8)
    facts = {"format": str(FORMAT), "facts": json.dumps(corpus_map.facts)}
    with new_file(path) as draft:
        write_tensors(draft, arrays, facts)


def load(path: Path) -> CorpusMap:
    """Read a map written by `save`."""
    if not path.is_file():
        raise MissingFileError(
            f"The store '{path.parent}' has no map. Make one: vdsh research map {path.parent}"
        )
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            if (format := int(metadata["format"])) > FORMAT:
                raise FolderError(
                    f"'{path}' has format {format}; this version reads up to {FORMAT}. "
                    f"Upgrade vdsh, or make the map again: vdsh research map {path.parent}"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        names = json.loads(arrays.pop("names").tobytes())
        found = CorpusMap(**names, **arrays, facts=json.loads(metadata["facts"]))
        _check_parts(found)
        return found
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError, OSError) as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(
            f"The map '{path}' is damaged. Make it again: vdsh research map {path.parent}"
        ) from error


def model_of(path: Path) -> str | None:
    """Read the fingerprint of the model that a map was made with; None where there is no map."""
    try:
        with safe_open(path, "numpy") as file:
            facts = json.loads(file.metadata()["facts"])
        return str(facts["fingerprint"])
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError, OSError):
        return None


def _check_parts(found: CorpusMap) -> None:
    """Raise a ValueError or TypeError where names and arrays do not fit, or cannot be sent."""
    points, scores, label, n = found.points, found.scores, found.label, len(found.ids)
    texts = [found.ids, found.titles, found.labels]
    good = all(isinstance(some, list) and set(map(type, some)) <= {str} for some in texts)
    good &= [a.dtype.name for a in (points, scores, label)] == ["float32", "float32", "int32"]
    good &= (points.shape, label.shape, len(found.titles)) == ((n, 2), (n,), n)
    good &= scores.ndim == 2 and len(scores) == n
    good &= isinstance(found.facts, dict) and type(found.facts.get("documents")) is int
    good = good and isinstance(found.facts.get("fingerprint"), str)
    good = good and bool(np.isfinite(points).all() and np.isfinite(scores).all())
    good = good and all(
        len(one["place"]) == n and {*one["place"]} <= {*range(-1, len(one["values"]))}
        for one in dict(found.fields).values()
    )
    if not good or (n and not -1 <= label.min() <= label.max() < len(found.labels)):
        raise ValueError("names and arrays do not fit each other")
    orjson.dumps([*texts, found.facts, found.fields])  # or no service could answer with it


def _read(
    store: Store, chosen: Collection[int], report: Progress
) -> tuple[list[str], list[str], list[str | None], Scores, list[dict[str, Any]]]:
    """Read id, title, first label and fields of the documents in these places; encode them."""
    first, rows, parts = 0, list[tuple[Any, ...]](), []
    for batch in store.documents():
        some = [document for row, document in enumerate(batch, first) if row in chosen]
        first += len(batch)
        if some:
            parts.append(store.model.topic.scores([document.text for document in some]))
            rows += [(d.id, title(d), d.labels[0] if d.labels else None, d.metadata) for d in some]
        report("reading documents", len(rows), len(chosen))
    ids, titles, labels, fields = (list(column) for column in zip(*rows, strict=True))
    return ids, titles, labels, np.concatenate(parts), fields


def _scale(points: NDArray[np.float64]) -> Scores:
    """Centre points and shrink them into the square from -1 to 1, the same on both axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = float((high - low).max()) / 2 or 1.0
    scaled: Scores = ((points - (low + high) / 2) / half).astype(np.float32)
    return scaled


def _weighted_median(values: Scores, weights: Scores) -> float:
    """Find it where weights are zero or infinite too, as a hostile map makes them."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
