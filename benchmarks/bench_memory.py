"""How much memory `vdsh fit` takes: what a document costs, and five million within a bound.

Run: VDSH_DATA=path/to/data python benchmarks/bench_memory.py [--documents N] [--gb 4]

The documents are pieces of Reuters' news, a word of each exchanged for another one. Each fit is a
process of its own, whose largest resident size the system tells. One epoch is enough: all are
alike.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from common import run, timed

from vdsh.datasets import load

SHORT = 18  # words of a document, as web snippets have
FIT = (
    "import resource; from vdsh.cli import make_app; make_app(['fit'])(standalone_mode=False);"
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


def measure(given):
    with tempfile.TemporaryDirectory() as folder:
        file, small = Path(folder, "docs.jsonl"), Path(folder, "small.jsonl")
        write(file, given.documents)
        write(small, 2 * max(given.samples))
        sizes = [fit(small, "--sample", size) for size in given.samples]
        return {
            "file": {"documents": given.documents, "megabytes": file.stat().st_size // 10**6},
            "sizes": sizes,
            "bounded": {"memory_gb": given.gb, **fit(file, "--memory", given.gb)},
        }


def write(file, n):
    """Repeat real documents, each time with another word changed."""
    stories = [text.lower().split() for text in load("reuters", quiet=True).train.texts]
    texts = [story[i : i + SHORT] for story in stories for i in range(0, len(story), SHORT)]
    words, rng = sorted({word for text in texts for word in text}), random.Random(0)
    with file.open("w") as out:
        for i in range(n):
            text = list(texts[i % len(texts)])
            text[rng.randrange(len(text))] = rng.choice(words)
            out.write(f'{{"id": "{i}", "text": {json.dumps(" ".join(text))}}}\n')


def fit(file, *options):
    """Learn one epoch in a process; say how many documents, how long, how much memory."""
    words = ["fit", file, "--epochs", "1", "--out", file.parent / "model", "--force", "-q"]
    command = [sys.executable, "-c", FIT, *map(str, [*words, "--json", *options])]
    done, seconds = timed(
        lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    )
    told, peak = (json.loads(line) for line in done.stdout.splitlines()[:2])
    return {
        "options": [*map(str, options)],
        "documents": told["documents"] + told["validation_documents"],
        "peak_gb": round(peak * 1024 / 1e9, 2),
        "seconds": round(seconds),
    }


if __name__ == "__main__":
    run(measure, documents=5_000_000, gb=4.0, samples=(20_000, 80_000))
