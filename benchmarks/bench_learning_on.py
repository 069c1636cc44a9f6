"""Learning on from a model of the first half, beside learning everything from nothing.

    VDSH_DATA=path/to/data python benchmarks/bench_learning_on.py

20 Newsgroups is cut at random: a model learns the first half of the training documents; then all
of them are learned from nothing, and on from that model. Documents are fewer and the network is
smaller than by default (MOST, SETTINGS), for time; epochs are those of the defaults. Time is that
of the processor, for others use the machine too.
"""

import time

from common import save

from vdsh import TextHasher
from vdsh.datasets import load
from vdsh.evaluation import measure_quality
from vdsh.model.changes import count_changes

SEEDS = (0, 1, 2)
MOST = 3_000  # documents to learn from
SETTINGS = {"hidden_size": 200, "device": "cpu"}


def main() -> None:
    rows = []
    for seed in SEEDS:
        rows.append(measure(seed))
        save("learning_on", {"documents": MOST, "settings": SETTINGS, "seeds": rows})


def measure(seed: int) -> dict:
    """Fit the three models of one split."""
    data = load("20newsgroups", seed=seed, quiet=True)
    texts, labels = data.train.texts[:MOST], data.train.labels[:MOST]
    held_out = data.validation.texts[: MOST // 10]  # without labels: the bound chooses the epoch
    models, found = {}, {"seed": seed}
    for name in ("first half", "from nothing", "learned on"):
        n = MOST // 2 if name == "first half" else MOST
        start = models["first half"] if name == "learned on" else None
        begin = time.process_time()
        model = TextHasher("vdsh", 32, random_state=seed, **SETTINGS).fit(
            texts[:n], validation=held_out, start=start, progress=False
        )
        seconds = time.process_time() - begin
        models[name] = model.model_
        quality = measure_quality(model, (texts, labels), (data.test.texts, data.test.labels))
        changes = count_changes(models["first half"], model.model_, data.test.texts)
        found[name] = {
            "cpu_seconds": round(seconds, 1),
            "epochs": len(model.model_.learned["history_"]),
            "best_epoch": model.model_.learned["best_epoch_"],
            "terms": len(model.model_.words),
            "precision_at_100": round(quality.values["codes"], 4),
            "codes_changed": round(changes.codes, 4),
            "bits_changed": round(changes.bits, 4),
        }
        print(seed, name, found[name], flush=True)
    return found


if __name__ == "__main__":
    main()
