"""A watch over the quality of codes: run it before a change of defaults lands.

    VDSH_DATA=path/to/data python benchmarks/bench_quality.py [--jobs 8] [--seeds 2]

Precision at 100 of test documents that search the training documents, with the defaults: short
texts (`titles`, `snippets`) and long ones, with labels and without, 16 to 128 bits. Without
labels nothing is chosen by labels either, as for a user who has none. Each mean is shown beside
that of the committed result; below it by more than 0.005 it is marked.
"""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product

import numpy as np
from common import RESULTS, run
from relevance_tasks import data, read

from vdsh.evaluation import evaluate_codes
from vdsh.hashers import HASHERS
from vdsh.jit import use_threads
from vdsh.paper import corpora
from vdsh.paper.datasets import DATASETS
from vdsh.text import BagOfWords

SHORT, LONG = ("titles", "snippets"), ("20newsgroups", "reuters20", "tmc", "rcv1")
BITS, MODELS = (16, 32, 64, 128), ("linear", "vdsh", "vdsh-s")
SPLIT = 3  # of short texts: the seed of the order in which they are cut 80 / 10 / 10
NOISE = 0.005  # a lower mean than that is worth a look


def measure(given):
    seeds = range(given.seeds)
    corpora_ = SHORT[:1] if given.quick else SHORT + LONG
    kinds = list(product(corpora_, MODELS, BITS[1:2] if given.quick else BITS))
    asked = [(*kind, seed) for kind in kinds for seed in seeds]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, spawn, initializer=use_threads, initargs=(1,)) as pool:
        found = np.reshape(list(pool.map(fit, asked)), (len(kinds), len(seeds)))
    before, rows = committed(), []
    for (corpus, model, n_bits), values in zip(kinds, found, strict=True):
        mean = round(float(values.mean()), 4)
        row = {"corpus": corpus, "model": model, "bits": n_bits, "precision": mean}
        row["committed"] = before.get((corpus, model, n_bits), "")
        is_lower = row["committed"] != "" and mean < row["committed"] - NOISE
        rows.append(row | {"note": "lower" if is_lower else ""})
    return {"seeds": list(seeds), "rows": rows}


def committed():
    """Read the means of the committed result, by corpus, model and bits."""
    path = RESULTS / "quality.json"
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {(row["corpus"], row["model"], row["bits"]): row["precision"] for row in rows}


def fit(asked):
    """Fit one model, and measure its codes."""
    corpus, model, n_bits, seed = asked
    (train, labels), (validation, checked), (test, wanted) = split(corpus, seed)
    hasher = HASHERS[model](n_bits, random_state=seed)
    if hasher.supervised:
        hasher.fit(train, labels, validation=(validation, checked))
    else:
        hasher.fit(train, validation=(validation, None))
    codes = hasher.encode(train)
    return evaluate_codes(hasher.encode(test), wanted, codes, labels, k=100).means["precision@100"]


@cache
def split(corpus, seed):
    """Count the terms of training, validation and test documents; give them with their labels."""
    if corpus in LONG:
        return [(part.counts, list(part.labels)) for part in corpora.count(corpus, seed)[:3]]
    texts, labels = texts_of(corpus)
    order = np.random.RandomState(SPLIT).permutation(len(texts))
    cuts = [int(0.8 * len(order)), int(0.9 * len(order))]
    parts = np.split(order, cuts)
    bag = BagOfWords().fit([texts[i] for i in parts[0]])
    return [(bag.transform([texts[i] for i in rows]), [labels[i] for i in rows]) for rows in parts]


def texts_of(corpus):
    """Read the texts and labels of a corpus of short texts, in the order of its file."""
    if corpus in DATASETS:
        documents = DATASETS[corpus].read(data(corpus)).documents
        return documents.texts, documents.labels
    documents = read(corpus)
    return [one.text for one in documents], [one.labels for one in documents]


if __name__ == "__main__":
    run(measure, jobs=2, seeds=2)
