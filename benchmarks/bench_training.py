"""Time of training: an epoch with sparse and with dense input, and a whole fit of the defaults.

    VDSH_DATA=path/to/data python benchmarks/bench_training.py [--before path/to/another/src]

On a CPU the two contenders are the same network, loss and optimiser on the same batches; they
differ in the first layer alone. The dense one gets its rows ready-made, so only products count.
On a GPU: 30 epochs of the paper's settings, and the defaults. With --before nothing but whole fits
of the defaults, each in a process of its own, in turn with another version's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from common import alternate, save

from vdsh.datasets import load
from vdsh.hashers import VDSH, VDSH_S
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh import training
from vdsh.hashers.vdsh.adam import Adam
from vdsh.hashers.vdsh.batches import SparseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, shuffled
from vdsh.hashers.vdsh.processes import Processes
from vdsh.paper.settings import paper_settings
from vdsh.text import BagOfWords, inverse_document_frequency, weigh

STEPS = 25  # of the 151 in an epoch, per round
ROUNDS = 5


class DenseInput(NamedTuple):
    """A batch whose encoder input is dense; everything else is shared with the sparse batch."""

    batch: SparseBatch
    inputs: torch.Tensor

    labels = property(lambda self: self.batch.labels)
    known = property(lambda self: self.batch.known)
    places = property(lambda self: self.batch.places)
    present = property(lambda self: self.batch.present)

    def project(self, W):
        """Multiply the dense rows."""
        return self.inputs @ W

    def log_likelihood(self, logits):
        """Score the words as the sparse batch does."""
        return self.batch.log_likelihood(logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="the folder `src` of another version")
    if before := parser.parse_args().before:
        save("training_compared", compare(before))
        return
    data = load("20newsgroups")
    counts = BagOfWords().fit_transform(data.train.texts).astype("float32")
    hasher = VDSH(32, random_state=0, **paper_settings("vdsh"))
    validation = BagOfWords().fit(data.train.texts).transform(data.validation.texts)
    held_out = validation, data.validation.labels
    if torch.cuda.is_available():
        on_gpu(hasher, counts, data.train.labels, held_out)
    else:
        on_cpu(hasher, counts, data.train.labels, held_out)


def on_cpu(hasher, counts, labels, held_out) -> None:
    inputs = weigh(counts, "tfidf", inverse_document_frequency(counts))
    device = torch.device("cpu")
    hasher.set_params(epochs=1).fit(counts[:500])  # settles what the settings leave open
    examples = Examples(inputs, counts, None)
    documents = Documents.of(examples, "binary", device)
    generator = torch.Generator().manual_seed(0)
    sparse = list(sparse_batches(shuffled(documents, 0.0, 0.0, generator), hasher.batch_size))
    batches = {"sparse": sparse[:STEPS], "dense": [densify(b, counts) for b in sparse[:STEPS]]}

    def contender(kind):
        network = training._network(hasher, examples, None, 0)
        optimizer = Adam(network.parameters(), 1e-3)
        step = training._Step(hasher, network, optimizer, generator, Processes(), STEPS * ROUNDS)
        return lambda: [step(batch) for batch in batches[kind]]

    seconds = alternate({kind: contender(kind) for kind in batches}, ROUNDS)
    epoch = {kind: value / STEPS * len(sparse) for kind, value in seconds.items()}
    ratio = epoch["dense"] / epoch["sparse"]
    print(f"epoch: sparse {epoch['sparse']:.2f} s, dense {epoch['dense']:.2f} s, {ratio:.2f}x")
    settings = {"documents": counts.shape[0], "terms": counts.shape[1], "bits": 32, "batch": 100}
    result = {"settings": settings, "epoch_seconds": epoch, "ratio": round(ratio, 2)}
    save("training_cpu", result | {"defaults": fit_defaults(counts, labels, held_out)})


def fit_defaults(counts, labels, held_out) -> dict:
    """Fit both models with their defaults, neighbours and thresholds included."""
    found = {}
    for kind in (VDSH, VDSH_S):
        start = time.perf_counter()
        hasher = kind(32, random_state=0).fit(counts, labels, validation=held_out)
        seconds = time.perf_counter() - start
        found[kind.__name__] = {
            "seconds": round(seconds, 1),
            "epochs": len(hasher.history_),
            "validation_precision": hasher.history_[hasher.best_epoch_ - 1]["validation"],
        }
        print(f"{kind.__name__}, defaults: {seconds:.0f} s, {len(hasher.history_)} epochs")
    return found


FIT = """
import json, sys, time
from vdsh import hashers
from vdsh.datasets import load
from vdsh.text import BagOfWords
data = load("20newsgroups")
start, cpu = time.perf_counter(), time.process_time()
bag = BagOfWords().fit(data.train.texts)
train, validation = (bag.transform(part.texts) for part in (data.train, data.validation))
hasher = getattr(hashers, sys.argv[1])(32, random_state=0)
hasher.fit(train, data.train.labels, validation=(validation, data.validation.labels))
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
best = hasher.history_[hasher.best_epoch_ - 1]["validation"]
print(json.dumps({"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1),
                  "epochs": len(hasher.history_), "validation_precision": round(best, 4)}))
"""


def compare(before: Path) -> dict:
    """Fit from texts to thresholds with the defaults of both versions."""
    sources = {"before": before, "now": Path(__file__).parent.parent / "src"}
    table: dict = {}
    for model in ("VDSH", "VDSH_S"):
        for version, source in sources.items():
            command = [sys.executable, "-c", FIT, model]
            environment = os.environ | {"PYTHONPATH": str(source.resolve())}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            table.setdefault(model, {})[version] = json.loads(done.stdout.splitlines()[-1])
            print(model, version, table[model][version], flush=True)
        seconds = {version: row["seconds"] for version, row in table[model].items()}
        table[model]["ratio"] = round(seconds["before"] / seconds["now"], 2)
    return table


def densify(batch: SparseBatch, counts) -> DenseInput:
    dense = torch.zeros(len(batch.known), counts.shape[1])
    ends = torch.cat([batch.offsets[1:], torch.tensor([len(batch.seen)])])
    rows = torch.repeat_interleave(torch.arange(len(ends)), ends - batch.offsets)
    dense[rows, batch.seen] = batch.inputs
    return DenseInput(batch, dense)


def on_gpu(hasher, counts, labels, held_out) -> None:
    def fit(epochs):
        start = time.perf_counter()
        hasher.set_params(epochs=epochs, patience=epochs).fit(counts, labels, validation=held_out)
        return time.perf_counter() - start

    first = fit(30)
    runs = [(fit(60), fit(30)) for _ in range(5)]
    whole = statistics.median(short for _, short in runs)
    alone = statistics.median(long - short for long, short in runs)
    best = hasher.history_[hasher.best_epoch_ - 1]["validation"]
    print(
        f"30 epochs on {torch.cuda.get_device_name()}: {alone:.2f} s, with all of fit() "
        f"{whole:.2f} s, the first fit {first:.1f} s"
    )
    result = {
        "what": "30 epochs with validation after each (how much longer 60 take), and fit() with "
        "30, thresholds included; medians of 5; paper's settings, 20 Newsgroups, 32 bits",
        "epochs_seconds": round(alone, 2),
        "wanted_seconds": 2,
        "fit_seconds": round(whole, 2),
        "first_fit_seconds": round(first, 1),
        "wanted_first_seconds": 8,
        "runs": [[round(seconds, 2) for seconds in pair] for pair in runs],
        "validation_precision": round(best, 4),
        "peak_gpu_memory_mb": round(torch.cuda.max_memory_allocated() / 1e6),
    }
    save("training_gpu", result | {"defaults": fit_defaults(counts, labels, held_out)})


if __name__ == "__main__":
    main()
