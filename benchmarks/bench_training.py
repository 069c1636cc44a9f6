"""Time of training: the defaults on a CPU and on a GPU, and the paper's settings there.

Run: VDSH_DATA=path/to/data python benchmarks/bench_training.py [--only cpu]

`cpu`: whole fits of 20 Newsgroups, from texts to thresholds. `gpu`: 30 epochs of the paper's
settings, and the defaults.
"""

import statistics

import torch
from common import posts, run, timed

from vdsh.hashers import VDSH, VDSH_S, LinearHashing
from vdsh.paper.settings import paper_settings
from vdsh.text import BagOfWords


def on_cpu(given):
    """Fit from texts to thresholds with the defaults."""
    data, found = posts(given.quick), {}
    for n_bits in (32, 128):
        hasher = LinearHashing(n_bits, random_state=0)
        found[f"linear, {n_bits} bits"] = {"seconds": round(timed(fit_texts, hasher, data)[1], 1)}
    for kind in (VDSH, VDSH_S):
        hasher = kind(32, random_state=0, device="cpu")
        seconds = timed(fit_texts, hasher, data)[1]
        best = hasher.history_[hasher.best_epoch_]["validation"]
        found[kind.__name__] = {"seconds": round(seconds, 1), "epochs": len(hasher.history_) - 1}
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
        defaults[kind.__name__] = {"seconds": round(fit(ours), 1), "epochs": len(ours.history_) - 1}
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


if __name__ == "__main__":
    run({"cpu": on_cpu, "gpu": on_gpu})
