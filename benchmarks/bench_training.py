"""Time of training: the defaults on a CPU and on a GPU, and a large corpus.

    VDSH_DATA=path/to/data python benchmarks/bench_training.py [--only PART]

`cpu`: whole fits of 20 Newsgroups, from texts to thresholds. `gpu`: 30 epochs of the paper's
settings, and the defaults. `large`: 804,414 documents with 76 of 47,236 terms each, as RCV1 has
them, made up: every document mixes one of 103 topics with common words, all by Zipf's law. The
paper trained 3,600 s an epoch on it.
"""

import resource
import statistics
import time

import numpy as np
import torch
from common import posts, run, timed
from scipy.sparse import csr_array

from vdsh.hashers import VDSH, VDSH_S
from vdsh.paper.settings import paper_settings
from vdsh.text import BagOfWords

TERMS, WORDS, TOPICS = 47_236, 78, 103  # of 78 words about 76 different ones are left


def on_cpu(given):
    """Fit from texts to thresholds with the defaults."""
    data, found = posts(given.quick), {}
    for kind in (VDSH, VDSH_S):
        hasher = kind(32, random_state=0, device="cpu")
        seconds = timed(fit_texts, hasher, data)[1]
        best = hasher.history_[hasher.best_epoch_ - 1]["validation"]
        found[kind.__name__] = {"seconds": round(seconds, 1), "epochs": len(hasher.history_)}
        found[kind.__name__]["validation_precision"] = round(best, 4)
    return found


def fit_texts(hasher, data):
    bag = BagOfWords().fit(data.train.texts)
    train, validation = (bag.transform(part.texts) for part in (data.train, data.validation))
    hasher.fit(train, data.train.labels, validation=(validation, data.validation.labels))


def on_gpu(given):
    if not torch.cuda.is_available():
        return None
    data, bag = posts(given.quick), BagOfWords()
    counts = bag.fit_transform(data.train.texts).astype("float32")
    held_out = bag.transform(data.validation.texts), data.validation.labels
    hasher = VDSH(32, random_state=0, **paper_settings("vdsh"))

    def fit(hasher, **settings):
        hasher.set_params(**settings)
        return timed(lambda: hasher.fit(counts, data.train.labels, validation=held_out))[1]

    first = fit(hasher, epochs=30, patience=30)
    runs = [[fit(hasher, epochs=n, patience=n) for n in (60, 30)] for _ in range(5)]
    defaults = {}
    for kind in (VDSH, VDSH_S):
        ours = kind(32, random_state=0)
        defaults[kind.__name__] = {"seconds": round(fit(ours), 1), "epochs": len(ours.history_)}
    return {
        "what": "30 epochs with validation after each (how much longer 60 take), and fit() with "
        "30, thresholds included; medians of 5; paper's settings, 20 Newsgroups, 32 bits",
        "epochs_seconds": round(statistics.median(long - short for long, short in runs), 2),
        "fit_seconds": round(statistics.median(short for _, short in runs), 2),
        "first_fit_seconds": round(first, 1),
        "wanted_seconds": 2.5,
        "runs": [[round(seconds, 2) for seconds in pair] for pair in runs],
        "defaults": defaults,
    }


def large(given):
    counts, clock = corpus(given.documents, np.random.RandomState(0)), Clock()
    hasher = VDSH(32, random_state=0, epochs=given.epochs)
    seconds = timed(lambda: hasher.fit(counts, progress=clock))[1]
    each = round(counts.nnz / counts.shape[0], 1)
    result = {
        "settings": {"documents": given.documents, "terms": TERMS, "terms_a_document": each},
        "neighbours_seconds": round(clock.neighbours, 1),
        "epoch_seconds": clock.epochs(),
        "wanted_epoch_seconds": 10,
        "fit_seconds": round(seconds, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if torch.cuda.is_available():
        result["peak_gpu_memory_mb"] = round(torch.cuda.max_memory_allocated() / 1e6)
    return result


def corpus(n_docs, rng):
    """Draw half of a document's words from its topic's own order of the terms."""
    zipf = 1 / np.arange(10, TERMS + 10)
    places = np.searchsorted(np.cumsum(zipf) / zipf.sum(), rng.uniform(size=(n_docs, WORDS)))
    orders = np.stack([rng.permutation(TERMS) for _ in range(TOPICS)])
    topics = rng.randint(0, TOPICS, n_docs)
    half = WORDS // 2
    places[:, :half] = orders[topics[:, None], places[:, :half]]
    rows = np.repeat(np.arange(n_docs), WORDS)
    ones = np.ones(rows.size, np.float32)
    counts = csr_array((ones, (rows, places.ravel())), shape=(n_docs, TERMS))
    counts.sum_duplicates()
    return counts


class Clock:
    """Notes when neighbours and epochs end."""

    def __init__(self):
        self.began, self.neighbours, self.ends = time.perf_counter(), 0.0, {}

    def __call__(self, report):
        """Take the time of a report."""
        now = time.perf_counter() - self.began
        if report.unit == "neighbours":
            self.neighbours = now
        else:
            self.ends[report.epoch] = now

    def epochs(self):
        """Return the seconds of each epoch after the first, which compiles and captures."""
        ends = [self.ends[number] for number in sorted(self.ends)]
        return [round(b - a, 2) for a, b in zip(ends, ends[1:], strict=False)]


if __name__ == "__main__":
    parts = {"cpu": on_cpu, "gpu": on_gpu, "large": large}
    run(parts, documents=804_414, epochs=3)
