"""Time of training: the defaults on a CPU and on a GPU, and the paper's settings there.

Run: VDSH_DATA=path/to/data python benchmarks/bench_training.py [--only cpu]

`cpu`: whole fits of 20 Newsgroups, from texts to thresholds. `linear`: `TextHasher("linear").fit`
in a process of its own, of 20 Newsgroups, of 1,500 web snippets, and of as many as `--documents`
says, made of real ones by changing words. `gpu`: 30 epochs of the paper's settings, and the
defaults.
"""

import random
import statistics
import time

import torch
from common import POSTS, fresh, posts, resident_mb, run, timed
from relevance_tasks import read as read_corpus

from vdsh import TextHasher
from vdsh.hashers import VDSH, VDSH_S
from vdsh.hashers.vdsh.presets import paper_settings
from vdsh.text import BagOfWords


def on_cpu(given):
    """Fit from texts to thresholds with the defaults."""
    data, found = posts(given.quick), {}
    for kind in (VDSH, VDSH_S):
        hasher = kind(32, random_state=0, device="cpu")
        cpu, seconds = time.process_time(), timed(fit_texts, hasher, data)[1]
        cpu, n_epochs = time.process_time() - cpu, len(hasher.history_) - 1
        best = hasher.history_[hasher.best_epoch_]["validation"]
        found[kind.__name__] = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
        found[kind.__name__]["epochs"] = n_epochs
        found[kind.__name__]["validation_precision"] = round(best, 4)
    return found


def linear(given):
    """Fit the linear method from texts; each in a fresh process, whose memory is measured."""
    jobs = [("20 Newsgroups", 32), ("20 Newsgroups", 128), ("1,500 snippets", 128)]
    rows = [fresh(fit_linear, *job, given) for job in [*jobs, ("like snippets", 128)]]
    return {"rows": rows}


def fit_linear(corpus, n_bits, given):
    if corpus == "20 Newsgroups":
        texts = posts(given.quick).train.texts
    else:
        texts = [document.text for document in read_corpus("snippets")]
        texts = texts[:POSTS] if corpus.startswith("1,500") else like(texts, given.documents)
    before, cpu, start = resident_mb(), time.process_time(), time.perf_counter()
    hasher = TextHasher("linear", n_bits, random_state=0).fit(texts, progress=False)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    row = {"corpus": corpus, "documents": len(texts), "bits": n_bits}
    row |= {"learned_from": hasher.model_.training["documents"], "seconds": round(seconds, 1)}
    row |= {"cpu_seconds": round(cpu, 1), "texts_mb": round(before)}
    return row | {"peak_mb": round(resident_mb(peak=True))}


def like(texts, n):
    """Make n texts of real ones: a third of the words are those of other texts, or are new."""
    rng, words = random.Random(0), [text.split() for text in texts]
    every = [word for some in words for word in some]

    def changed(word):
        chance = rng.random()
        return (
            word
            if chance > 1 / 3
            else rng.choice(every)
            if chance > 0.03
            else f"{rng.getrandbits(24):x}"
        )

    return [" ".join(map(changed, rng.choice(words))) for _ in range(n)]


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
    run({"cpu": on_cpu, "linear": linear, "gpu": on_gpu}, documents=100_000)
