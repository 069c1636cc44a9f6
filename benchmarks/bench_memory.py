"""How much memory `vdsh fit` takes: what a document costs, and five million within a bound.

    VDSH_DATA=path/to/data python benchmarks/bench_memory.py [DOCUMENTS [GB [SAMPLE]]]

The documents are pieces of Reuters' news, a word of each exchanged for another one. Each fit is a
process of its own, whose largest resident size the system tells. One epoch is enough: all are
alike. With a SAMPLE no more than that many are learned from.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

from vdsh.datasets import load

SHORT = 18  # words of a document, as web snippets have
SIZES = (20_000, 80_000)  # documents that are learned from, to see what one costs
SMALL = 100_000  # documents of the file they are of


def main() -> None:
    given = [float(word) for word in sys.argv[1:]]
    n, gb, sample = given + [5_000_000, 4, 0][len(given) :]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "docs.jsonl")
        write(file, int(n))
        result = {"file": {"documents": int(n), "megabytes": round(file.stat().st_size / 1e6)}}
        if not sample:
            small = Path(folder, "small.jsonl")
            write(small, SMALL)
            result |= cost(small)
        some = ("--sample", int(sample)) if sample else ()
        result["bounded"] = {"memory_gb": gb, **fit(file, "--memory", gb, *some)}
    save(f"memory_{int(n)}", result)


def cost(file: Path) -> dict:
    """See what a document costs."""
    sizes = [fit(file, "--sample", size) for size in SIZES]
    grown = sizes[-1]["peak_gb"] - sizes[0]["peak_gb"]
    return {"sizes": sizes, "bytes_a_document": round(1e9 * grown / (SIZES[-1] - SIZES[0]))}


def write(file: Path, n: int) -> None:
    """Repeat real documents, each time with another word changed."""
    stories = [text.lower().split() for text in load("reuters", quiet=True).train.texts]
    texts = [story[i : i + SHORT] for story in stories for i in range(0, len(story), SHORT)]
    words, rng = sorted({word for text in texts for word in text}), random.Random(0)
    with file.open("w") as out:
        for i in range(n):
            text = list(texts[i % len(texts)])
            text[rng.randrange(len(text))] = rng.choice(words)
            out.write(f'{{"id": "{i}", "text": {json.dumps(" ".join(text))}}}\n')


def fit(file: Path, *options: object) -> dict:
    """Learn one epoch in a process; say how many documents, how long, how much memory."""
    out = file.parent / "model"
    words = ["fit", str(file), "--epochs", "1", "--out", str(out), "--force", "-q", "--json"]
    code = (
        "import resource; from vdsh.cli import make_app; make_app(['fit'])(standalone_mode=False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    begin = time.perf_counter()
    command = [sys.executable, "-c", code, *words, *map(str, options)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    told, peak = json.loads(lines[0]), int(lines[1]) * 1024 / 1e9
    found = {
        "options": [*map(str, options)],
        "documents": told["documents"] + told["validation_documents"],
        "terms": told["terms"],
        "peak_gb": round(peak, 2),
        "seconds": round(time.perf_counter() - begin),
    }
    print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
