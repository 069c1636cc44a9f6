"""How far the explanations of `vdsh.explain` hold: words of bits and texts, confidence, draws.

Run: VDSH_DATA=path/to/data python benchmarks/bench_explain.py

The truth about a word and a bit is what leaving the word out of real test documents does to the
bit's score. Models with the linear decoder and with a hidden layer in it, all trained here.
Timed on as many threads as numpy takes: OMP_NUM_THREADS=1 is best where the cores are shared.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from common import alternate, save
from scipy.sparse import csr_array, eye_array
from scipy.stats import spearmanr

from vdsh import TextHasher
from vdsh.datasets import load
from vdsh.explain import confidence, effects, explain_bits, explain_text, sample
from vdsh.explain.texts import pushes
from vdsh.labels import read_labels
from vdsh.metrics.ranking import expected_precision

MODELS = (("vdsh", 0), ("vdsh", 200), ("vdsh-s", 0), ("vdsh-s", 200))
BITS, EPOCHS, SEED = 32, 8, 0
DOCUMENTS, LEAST_DOCUMENTS, TOP, LISTED = 1200, 5, 20, 10
POSTS, LEAST_WORDS, LEFT_OUT = 100, 10, 3
DRAWS, ROUNDS = 10, 5
SENTENCE = "NASA will launch the shuttle into orbit to repair the telescope"


def main() -> None:
    data = load("20newsgroups")
    rows = []
    for (model, decoder_size), hasher in zip(MODELS, train_all(), strict=True):
        row = {"model": model, "decoder_size": decoder_size}
        row["settings"] = hasher.hasher_.get_params()
        row["words_of_bits"] = words_of_bits(hasher, data.test.texts)
        row["words_of_texts"] = words_of_texts(hasher, data.test.texts)
        row["confidence"] = by_confidence(hasher, data)
        row["mean_square"] = mean_square(hasher, data.test.texts)
        row["milliseconds"] = times(hasher, data.test.texts)
        rows.append(row)
        print(row, flush=True)
    settings = {"dataset": "20newsgroups", "bits": BITS, "epochs": EPOCHS, "device": "cpu"}
    settings |= {"documents": DOCUMENTS, "least_documents": LEAST_DOCUMENTS, "top": TOP}
    settings |= {"listed": LISTED, "posts": POSTS, "least_words": LEAST_WORDS}
    settings |= {"left_out": LEFT_OUT, "draws_per_label": DRAWS, "rounds": ROUNDS}
    settings |= {"threads": torch.get_num_threads()}
    load_average = round(os.getloadavg()[1], 1)
    save("explain", {"settings": settings, "seed": SEED, "load": load_average, "rows": rows})


def train_all():
    """Train a model on each core, on one thread, to the last epoch."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=spawn) as pool:
        return list(pool.map(train, *zip(*MODELS, strict=True)))


def train(model, decoder_size):
    torch.set_num_threads(1)
    settings = {"epochs": EPOCHS, "decoder_size": decoder_size, "device": "cpu"}
    settings |= {} if decoder_size else {"threshold": "median"}  # as suits the linear decoder
    hasher = TextHasher(model, BITS, random_state=SEED, **settings)
    data = load("20newsgroups").train
    return hasher.fit(data.texts, data.labels, progress=False)


def words_of_bits(hasher, texts):
    """Hold ways to ask the encoder for a bit's words against the truth."""
    truth, known = truth_of_bits(hasher, texts)
    model = hasher.model_
    ways = {
        "alone": lambda: (effects._alone(model) * effects.input_spread(model)[:, None]).T,
        "added": lambda: added(model),
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
    chosen = np.flatnonzero(np.diff(counts.indptr))[:DOCUMENTS]
    n_terms = counts.shape[1]
    total, times_seen = np.zeros((n_terms, BITS)), np.zeros(n_terms)
    for i in chosen:
        found = pushes(hasher.model_, texts[i])
        total[found.terms] += np.where(found.values, found.towards, -found.towards)
        times_seen[found.terms] += 1
    known = np.flatnonzero(times_seen >= LEAST_DOCUMENTS)
    mean = total / np.maximum(times_seen, 1)[:, None]
    return (mean * presence_spread(hasher.model_)[:, None]).T, known


def presence_spread(model):
    """Return the standard deviation of each word's presence in the training documents."""
    frequency = effects.document_frequencies(model)
    return np.sqrt(frequency * (1 - frequency))


def added(model):
    """Put each word into two made-up documents, or take it out: mean effect times deviation."""
    n_terms = len(model.words)
    change = np.zeros((n_terms, BITS))
    for document in effects.made_up_documents(model).to_csr()[:2]:
        terms = document.nonzero()[-1]
        present = np.isin(np.arange(n_terms), terms)
        same = csr_array((np.ones(len(terms)), terms, [0, len(terms)]), (1, n_terms))
        copies = same[np.zeros(n_terms, int)]
        other = abs(copies - eye_array(n_terms, format="csr"))
        other.eliminate_zeros()
        moved = model.scores_of(csr_array(other)) - model.scores_of(same)
        change += np.where(present, -1, 1)[:, None] * moved / 2
    return (change * presence_spread(model)[:, None]).T


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


def words_of_texts(hasher, texts):
    """Leave three words out together: how far each bit's score moves towards the other value."""
    rng = np.random.RandomState(SEED)
    inner, moved = hasher.hasher_, {"left_out": [], "alone": [], "random": []}
    counts = hasher.vectorizer_.transform(texts)
    for i in np.flatnonzero(np.diff(counts.indptr) >= LEAST_WORDS)[:POSTS]:
        found = pushes(hasher.model_, texts[i])
        n_terms = counts.shape[1]
        words = csr_array(eye_array(n_terms, format="csr", dtype=np.float32))[found.terms]
        alone = inner.scores(words) - inner.scores(csr_array((1, n_terms), dtype=np.float32))
        sides = np.where(found.values, 1, -1)
        orders = (-found.towards, -alone * sides, rng.uniform(size=found.towards.shape))
        for name, order in zip(moved, orders, strict=True):
            named = found.terms[np.argsort(order, axis=0)[:LEFT_OUT]]  # (3, n_bits)
            without = np.repeat(counts[[i]].toarray(), BITS, axis=0)
            without[np.arange(BITS), named] = 0
            margins = np.diag(inner.scores(csr_array(without))) - inner.thresholds_
            moved[name].append(((found.margins - margins) * sides).mean())
    return {name: rounded(np.mean(values)) for name, values in moved.items()}


def by_confidence(hasher, data):
    """Measure precision at 100 of test documents in four groups, the least sure first."""
    labels = read_labels(data.train.labels)
    test_labels = read_labels(data.test.labels, labels.names).matrix
    codes, queries = hasher.encode(data.train.texts), hasher.encode(data.test.texts)
    precision = expected_precision(queries, test_labels, codes, labels.matrix, k=100)
    sure = confidence(hasher, data.test.texts)
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


def times(hasher, texts):
    """Time a call of each kind, on a sentence and on posts of about 300 and of most words."""
    sizes = np.diff(hasher.vectorizer_.transform(texts).indptr)
    middle, longest = np.argmin(np.abs(sizes - 300)), np.argmax(sizes)
    calls = {
        f"sentence of {len(SENTENCE.split())} words": lambda: explain_text(hasher, SENTENCE),
        f"post of {sizes[middle]} distinct words": lambda: explain_text(hasher, texts[middle]),
        f"post of {sizes[longest]} distinct words": lambda: explain_text(hasher, texts[longest]),
        "all bits": lambda: explain_bits(hasher),
    }
    if hasattr(hasher.hasher_, "classes_"):
        calls["three draws for a text"] = lambda: sample(hasher, 3, text=SENTENCE)
    return {name: round(1000 * value, 1) for name, value in alternate(calls, ROUNDS).items()}


if __name__ == "__main__":
    main()
