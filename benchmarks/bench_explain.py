"""How far the explanations of `vdsh.explain` hold: the words of bits, and confidence.

Run: VDSH_DATA=path/to/data python benchmarks/bench_explain.py

The truth about a word and a bit is what leaving the word out of real test documents does to the
bit's score. Models with the linear decoder and with a hidden layer in it, all trained here.
Timed on as many threads as numpy takes: OMP_NUM_THREADS=1 is best where the cores are shared.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import torch
from common import alternate, posts, run
from scipy.stats import spearmanr

from vdsh import TextHasher
from vdsh.explain import effects, explain_bits, explain_text
from vdsh.explain.bits import share_kept
from vdsh.explain.texts import pushes
from vdsh.labels import read_labels
from vdsh.metrics.ranking import precision_at, tally
from vdsh.model import as_model

MODELS = (("vdsh", 0), ("vdsh", 200), ("vdsh-s", 0), ("vdsh-s", 200))
BITS, EPOCHS, SEED = 32, 8, 0
DOCUMENTS, LEAST_DOCUMENTS, TOP, LISTED = 1200, 5, 20, 10
SENTENCE = "NASA will launch the shuttle into orbit to repair the telescope"


def measure(given):
    data = posts(given.quick)
    models = MODELS[::2] if given.quick else MODELS
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=spawn) as pool:  # a model on each core, on one thread
        hashers = list(pool.map(partial(train, given.quick), *zip(*models, strict=True)))
    rows = []
    for (model, decoder_size), hasher in zip(models, hashers, strict=True):
        row = {"model": model, "decoder_size": decoder_size}
        row["words_of_bits"] = words_of_bits(hasher, data.test.texts)
        row["confidence"] = by_confidence(hasher, data)
        row["mean_square"] = mean_square(hasher, data.test.texts)
        row["milliseconds"] = milliseconds(hasher, data.test.texts, given.rounds)
        rows.append(row)
    settings = {"dataset": "20newsgroups", "bits": BITS, "epochs": EPOCHS, "device": "cpu"}
    return {"settings": settings | {"threads": torch.get_num_threads()}, "rows": rows}


def train(quick, model, decoder_size):
    torch.set_num_threads(1)
    settings = {"epochs": EPOCHS, "decoder_size": decoder_size, "device": "cpu"}
    settings |= {} if decoder_size else {"threshold": "median"}  # as suits the linear decoder
    part = posts(quick).train
    hasher = TextHasher(model, BITS, random_state=SEED, **settings)
    return hasher.fit(part.texts, part.labels, progress=False)


def words_of_bits(hasher, texts):
    """Hold ways to ask the encoder for a bit's words against the truth."""
    truth, known = truth_of_bits(hasher, texts)
    model = hasher.model_
    ways = {
        "alone": lambda: (effects._alone(model) * effects.input_spread(model)[:, None]).T,
        "gradient": lambda: effects.encoder_effects(model),
    }
    seconds = alternate(ways, 3)
    found = {name: agreement(way(), truth, known) for name, way in ways.items()}
    rows = {name: {**found[name], "seconds": round(seconds[name], 2)} for name in ways}
    return {"words": len(known), **rows}


def truth_of_bits(hasher, texts):
    """Leave words out of documents: mean effect times standard deviation of presence.

    Returns an array of shape (n_bits, n_terms), and the terms of enough documents.
    """
    counts = hasher.vectorizer_.transform(texts)
    n_terms = counts.shape[1]
    total, times_seen = np.zeros((n_terms, BITS)), np.zeros(n_terms)
    for i in np.flatnonzero(np.diff(counts.indptr))[:DOCUMENTS]:
        found = pushes(hasher.model_, texts[i])
        total[found.terms] += np.where(found.values, found.towards, -found.towards)
        times_seen[found.terms] += 1
    mean = total / np.maximum(times_seen, 1)[:, None]
    frequency = effects.document_frequencies(hasher.model_)
    truth = (mean * np.sqrt(frequency * (1 - frequency))[:, None]).T  # as often as a word varies
    return truth, np.flatnonzero(times_seen >= LEAST_DOCUMENTS)


def agreement(asked, truth, known):
    """Compare effects of shape (n_bits, n_terms) with the truth on the known words."""
    pairs = [(a[known], t[known]) for a, t in zip(asked, truth, strict=True)]
    sides = [(side * a, side * t) for a, t in pairs for side in (1, -1)]
    top = [np.intersect1d(largest(a, TOP), largest(t, TOP)) for a, t in sides]
    right = [(a * t > 0)[largest(np.abs(t), len(known) // 10)] for a, t in pairs]
    listed = [t[largest(a, LISTED)] > 0 for a, t in sides]
    return {
        "found": rounded(np.mean([len(words) / TOP for words in top])),
        "rank_correlation": rounded(np.mean([spearmanr(a, t).statistic for a, t in pairs])),
        "right_sign_strongest_tenth": rounded(np.mean(right)),
        "right_sign_listed": rounded(np.mean(listed)),
    }


def largest(values, n):
    return np.argsort(-values, kind="stable")[:n]


def rounded(value):
    return round(float(value), 4)


def by_confidence(hasher, data):
    """Measure precision at 100 of test documents in four groups, the least sure first."""
    labels = read_labels(data.train.labels)
    test_labels = read_labels(data.test.labels, labels.names).matrix
    codes, queries = hasher.encode(data.train.texts), hasher.encode(data.test.texts)
    precision = precision_at(tally(queries, test_labels, codes, labels.matrix), 100)
    sure = share_kept(as_model(hasher).bit_probabilities(data.test.texts))
    groups = np.array_split(np.argsort(sure, kind="stable"), 4)
    return {
        "precision": rounded(precision.mean()),
        "by_quarter": [rounded(precision[group].mean()) for group in groups],
        "rank_correlation": rounded(spearmanr(sure, precision).statistic),
    }


def mean_square(hasher, texts):
    """Return the mean of s_j ** 2 over documents, which is 1 for draws from the prior."""
    mu, sigma = hasher.hasher_.posterior(hasher.vectorizer_.transform(texts))
    return rounded((mu**2 + sigma**2).mean())


def milliseconds(hasher, texts, rounds):
    """Time a call of each kind, on a sentence and on posts of about 300 and of most words."""
    sizes = np.diff(hasher.vectorizer_.transform(texts).indptr)
    chosen = {f"sentence of {len(SENTENCE.split())} words": SENTENCE}
    for row in (np.argmin(np.abs(sizes - 300)), np.argmax(sizes)):
        chosen[f"post of {sizes[row]} distinct words"] = texts[row]
    calls = {name: partial(explain_text, hasher, text) for name, text in chosen.items()}
    calls["all bits"] = partial(explain_bits, hasher)
    return {name: round(1000 * value, 1) for name, value in alternate(calls, rounds).items()}


if __name__ == "__main__":
    run(measure, rounds=5)
