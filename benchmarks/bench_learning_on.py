"""Learning on from a model of the first half, beside learning everything from nothing.

    VDSH_DATA=path/to/data python benchmarks/bench_learning_on.py [SEED ...]

20 Newsgroups, all settings left open. A model of a random half of the training part; then the
whole part, from nothing and on from that model. The validation part chooses epochs, the test part
asks. Time is that of the processor, for others use the machine too; both are in one process.
"""

import statistics
import sys
import time

import numpy as np
import torch
from common import save

from vdsh import Model, TextHasher
from vdsh.datasets import load
from vdsh.evaluation import measure_quality
from vdsh.model.changes import count_changes

NAME = "20newsgroups"


def main() -> None:
    seeds = [int(word) for word in sys.argv[1:]] or [0]
    data = load(NAME, quiet=True)
    runs = {seed: run(data, seed) for seed in seeds}
    ways = list(runs[seeds[0]])
    means = {
        way: {
            name: round(statistics.mean(found[way][name] for found in runs.values()), 4)
            for name in ("seconds", "precision_at_100", "bits_changed")
        }
        for way in ways
    }
    device = "cuda" if torch.cuda.is_available() else "cpu"
    save(
        "learning_on",
        {"device": device, "documents": len(data.train.texts), "mean": means, "seeds": runs},
    )


def run(data, seed: int) -> dict:
    """Learn half, then all in both ways."""
    texts = np.array(data.train.texts, object)
    rows = np.sort(np.random.RandomState(seed).permutation(len(texts))[: len(texts) // 2])
    half, first = learn(data, seed, rows)
    found = {"first half": judge(half, half, data, first)}
    for way, start in (("from nothing", None), ("learned on", half)):
        model, seconds = learn(data, seed, np.arange(len(texts)), start)
        found[way] = judge(model, half, data, seconds)
    return found


def learn(data, seed: int, rows: np.ndarray, start: Model | None = None) -> tuple[Model, float]:
    """Learn from some documents of the training part."""
    texts, labels = ([part[i] for i in rows] for part in (data.train.texts, data.train.labels))
    held_out = data.validation.texts, data.validation.labels
    begin = time.process_time()
    hasher = TextHasher("vdsh", 32, random_state=seed)
    hasher.fit(texts, labels, validation=held_out, start=start, progress=False)
    return hasher.model_, time.process_time() - begin


def judge(model: Model, half: Model, data, seconds: float) -> dict:
    """Measure precision of the test part, and how far codes are from those of the first half."""
    train, test = ((part.texts, part.labels) for part in (data.train, data.test))
    changes = count_changes(half.encode(data.test.texts), model.encode(data.test.texts))
    found = {
        "seconds": round(seconds, 1),
        "epochs": len(model.learned["history_"]),
        "best_epoch": model.learned["best_epoch_"],
        "terms": len(model.words),
        "precision_at_100": round(measure_quality(model, train, test).values["codes"], 4),
        "codes_changed": round(changes.codes, 4),
        "bits_changed": round(changes.bits, 4),
    }
    print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
