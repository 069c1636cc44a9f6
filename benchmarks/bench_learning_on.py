"""Learning on from a model of the first half, beside learning everything from nothing.

Run: VDSH_DATA=path/to/data python benchmarks/bench_learning_on.py [--seeds 0 1 2]

20 Newsgroups, all settings left open. A model of a random half of the training part; then the
whole part, from nothing and on from that model. The validation part chooses epochs, the test part
asks. Time is that of the processor, for others use the machine too; both are in one process.
"""

import time

import numpy as np
from common import posts, run

from vdsh import TextHasher
from vdsh.evaluation import measure_quality
from vdsh.model.health import count_changes


def measure(given):
    data = posts(given.quick)
    seeds = given.seeds[:1] if given.quick else given.seeds
    return {
        "documents": len(data.train.texts),
        "seeds": {seed: learn_all(data, seed) for seed in seeds},
    }


def learn_all(data, seed):
    """Learn half, then all in both ways."""
    rows = np.arange(len(data.train.texts))
    some = np.sort(np.random.RandomState(seed).permutation(rows)[: len(rows) // 2])
    half, first = learn(data, seed, some)
    found = {"first half": judge(half, half, data, first)}
    for way, start in (("from nothing", None), ("learned on", half)):
        model, seconds = learn(data, seed, rows, start)
        found[way] = judge(model, half, data, seconds)
    return found


def learn(data, seed, rows, start=None):
    """Learn from some documents of the training part; return the model and seconds."""
    part = data.train.take(rows)
    held_out = data.validation.texts, data.validation.labels
    begin = time.process_time()
    hasher = TextHasher("vdsh", 32, random_state=seed)
    hasher.fit(part.texts, part.labels, validation=held_out, start=start, progress=False)
    return hasher.model_, time.process_time() - begin


def judge(model, half, data, seconds):
    """Measure precision of the test part, and how far codes are from those of the first half."""
    train, test = ((part.texts, part.labels) for part in (data.train, data.test))
    return {
        "seconds": round(seconds, 1),
        "epochs": len(model.learned["history_"]) - 1,
        "precision_at_100": round(measure_quality(model, train, test).values["codes"], 4),
        "bits_changed": round(
            count_changes(half.encode(data.test.texts), model.encode(data.test.texts)).bits, 4
        ),
    }


if __name__ == "__main__":
    run(measure, seeds=(0, 1, 2))
