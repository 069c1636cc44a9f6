"""Expected precision at 100 of the three models with the paper's preset on real corpora.

    VDSH_DATA=path/to/data python benchmarks/bench_quality.py

Random 80/10/10 split and model seed 0; the epoch is chosen on validation, the number is of test.
"""

import argparse
import time

from common import save

from vdsh.datasets import load
from vdsh.hashers.training import choose_device
from vdsh.labels import read_labels
from vdsh.metrics import cosine_precision, expected_precision, random_precision
from vdsh.paper.settings import paper_settings
from vdsh.pipeline import TextHasher
from vdsh.text import BagOfWords, inverse_document_frequency, weigh

RUNS = [
    ("20newsgroups", "vdsh", 32, 0.45),
    ("20newsgroups", "vdsh-s", 32, 0.85),
    ("20newsgroups", "vdsh-sp", 32, 0.85),
    ("20newsgroups", "vdsh", 64, 0.50),
    ("20newsgroups", "vdsh", 128, 0.50),
    ("reuters20", "vdsh", 32, 0.74),
    ("reuters20", "vdsh-s", 32, 0.93),
    ("reuters20", "vdsh-sp", 32, None),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="fewer, for a quick look")
    parser.add_argument("--only", nargs="*", help="such as reuters20/vdsh-s/32; by default all")
    arguments = parser.parse_args()
    corpora = {name: load(name, seed=arguments.seed) for name in ("20newsgroups", "reuters20")}
    rows = []
    for name, model, bits, wanted in RUNS:
        if arguments.only and f"{name}/{model}/{bits}" not in arguments.only:
            continue
        settings = paper_settings(model)
        if arguments.epochs:
            settings["epochs"] = arguments.epochs
        row = measure(corpora[name], model, bits, settings, arguments.seed)
        rows.append(row | {"wanted": wanted})
        print(
            f"{name:14} {model:8} {bits:4}  P@100 {row['test_precision']:.4f}"
            f"  (validation {row['validation_precision']:.4f}, wanted {wanted})"
            f"  {row['seconds']:.0f} s"
        )
    kind = "gpu" if choose_device("auto").type == "cuda" else "cpu"
    save(f"quality_{kind}", {"preset": "paper", "rows": rows, "yardsticks": yardsticks(corpora)})


def measure(data, model, bits, settings, seed):
    hasher = TextHasher(model, bits, random_state=seed, **settings)
    start = time.perf_counter()
    validation = data.validation.texts, data.validation.labels
    hasher.fit(data.train.texts, data.train.labels, validation=validation)
    seconds = time.perf_counter() - start
    train = read_labels(data.train.labels)
    test = read_labels(data.test.labels, train.names)
    precision = expected_precision(
        hasher.encode_and_count(data.test.texts)[0],
        test.matrix,
        hasher.encode_and_count(data.train.texts)[0],
        train.matrix,
    )
    learned = hasher.hasher_
    return {
        "dataset": data.name,
        "data": data.note,
        "model": model,
        "bits": bits,
        "seed": seed,
        "settings": settings,
        "test_precision": round(float(precision.mean()), 4),
        "validation_precision": round(learned.history_[learned.best_epoch_ - 1]["validation"], 4),
        "best_epoch": learned.best_epoch_,
        "epochs": len(learned.history_),
        "seconds": round(seconds, 1),
    }


def yardsticks(corpora):
    """Measure a random order and exact tf-idf cosine on the same test documents."""
    found = {}
    for name, data in corpora.items():
        bag = BagOfWords().fit(data.train.texts)
        counts = bag.transform(data.train.texts)
        idf = inverse_document_frequency(counts)
        train = read_labels(data.train.labels)
        test = read_labels(data.test.labels, train.names)
        queries = weigh(bag.transform(data.test.texts), "tfidf", idf)
        cosine = cosine_precision(queries, test.matrix, weigh(counts, "tfidf", idf), train.matrix)
        chance = random_precision(test.matrix, train.matrix)
        found[name] = {"tfidf_cosine": cosine.mean().round(4), "random": chance.mean().round(4)}
    return found


if __name__ == "__main__":
    main()
