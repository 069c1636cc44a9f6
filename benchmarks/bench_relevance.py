"""Words and codes together: what a store finds by both, by codes, by BM25, and by MiniLM.

    VDSH_DATA=path/to/data python benchmarks/bench_relevance.py [--processes 6]
        [--embed sentence-transformers:all-MiniLM-L6-v2]

Each model learns the documents of a task, as `vdsh fit` does with a tenth of them held out, and a
store of them answers the queries in each of its ways; `vdsh` sees no labels. The tasks are in
`relevance_tasks.py`. Beside it bm25s, and vectors by cosine where there is a model to embed with.
"""

import json
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context

import numpy as np
from common import run
from relevance_tasks import N_QUERIES, QUERIES, TASKS, content_words, load, read

from vdsh import Document, TextHasher, open_store
from vdsh.embed import embed

NEAREST = 100  # kept of each ranking
MODELS = (("vdsh", 32), ("vdsh", 64), ("vdsh", 128), ("vdsh-s", 32))
RANKS = {"distance": "distance", "expected": "expected", "both": "relevance"}


def measure(given):
    names, models, seeds = list(TASKS), MODELS, range(3)
    if given.quick:
        names, models, seeds = ["snippets_judged"], MODELS[:1], range(1)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        parts = [*pool.map(partial(others, given.embed), names),
                 *pool.map(partial(ours, given.quick), product(names, models, seeds))]  # fmt: skip
    return {"rows": [row for part in parts for row in part]}


def ours(quick, job):
    """Train one model; rank the queries of a task in every way."""
    name, (model, bits), seed = job
    warnings.simplefilter("ignore")
    task, settings = load(name), {"epochs": 1} if quick else {}
    order = np.random.RandomState(seed).permutation(len(task.texts))
    held_out, train = np.split(order, [len(order) // 10])
    parts = []
    for rows in (np.sort(train), held_out):
        labels = [sorted(task.labels[i]) for i in rows] if model == "vdsh-s" else None
        parts.append(([task.texts[i] for i in rows], labels))
    hasher = TextHasher(model, bits, random_state=seed, **settings)
    hasher.fit(*parts[0], validation=parts[1], progress=False)
    judge = Judge(name)
    with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/s", hasher) as store:
        store.upsert(Document(f"{row:06}", text) for row, text in enumerate(task.texts))
        found = {way: store.search_many(judge.queries, NEAREST, rank=rank)
                 for way, rank in RANKS.items()}  # fmt: skip
    facts = {"model": f"{model} {bits}", "seed": seed}
    return [
        {"task": name, "ranking": way, **facts}
        | judge([[int(hit.id) for hit in hits] for hits in answers])
        for way, answers in found.items()
    ]


def others(model, name):
    """Rank by bm25s, and by vectors."""
    import bm25s

    task, judge = load(name), Judge(name)
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(content_words(task.texts), show_progress=False)
    asked = [[word for word in words if word in index.vocab_dict]
             for words in content_words(judge.queries)]  # fmt: skip
    nothing = np.zeros(len(task.texts))
    scores = {"BM25 (bm25s)": [index.get_scores(words) if words else nothing for words in asked]}
    if model:
        documents, queries = (unit(embed(texts, model)) for texts in (task.texts, judge.queries))
        scores["MiniLM"] = queries @ documents.T
    return [
        {"task": name, "ranking": ranking, "model": "", "seed": None}
        | judge([np.argsort(-one, kind="stable")[:NEAREST] for one in some])
        for ranking, some in scores.items()
    ]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Judge:
    """Counts what rankings of a task's test queries are worth."""

    def __init__(self, name):
        task = self.task = load(name)
        half = slice(N_QUERIES, None) if len(task.queries) > N_QUERIES else slice(None)
        self.queries, self.answers = task.queries[half], task.answers[half]
        self.wanted = task.query_labels[half]
        self.judged = "judged" in name

    def __call__(self, rankings):
        """Measure rows in order, for each query."""
        found = {}
        if any(self.wanted):
            found["topic_precision_10"] = self._share(
                [[not wanted.isdisjoint(self.task.labels[row]) for row in rows[:10]]
                 for rows, wanted in zip(rankings, self.wanted, strict=True)])  # fmt: skip
        if self.answers[0] >= 0:
            places = [list(rows).index(answer) + 1 if answer in rows else np.inf
                      for rows, answer in zip(rankings, self.answers, strict=True)]  # fmt: skip
            found["mrr_10"] = np.mean([1 / place if place <= 10 else 0 for place in places])
            found["found_100"] = np.isfinite(places).mean()
        if self.judged:
            found |= self._by_hand(rankings)
        return {name: round(float(value), 4) for name, value in found.items()}

    def _by_hand(self, rankings):
        """Judge by the committed judgements: what nobody judged counts as irrelevant."""
        ids = [document.id for document in read("snippets")]
        judgements = json.loads(QUERIES.read_text())["queries"]
        pairs = [([ids[row] for row in rows[:10]], judgement)
                 for rows, judgement in zip(rankings, judgements, strict=True)]  # fmt: skip
        good, bad = ([[page in judgement[kind] for page in ten] for ten, judgement in pairs]
                     for kind in ("relevant", "irrelevant"))  # fmt: skip
        return {
            "precision_10": self._share(good),
            "judged_10": self._share(good) + self._share(bad),
        }

    @staticmethod
    def _share(marks):
        return sum(map(sum, marks)) / (10 * len(marks))


if __name__ == "__main__":
    run(measure, processes=1, embed=str)
