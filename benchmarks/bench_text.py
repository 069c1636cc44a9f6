"""Texts to codes: documents a second, beside scikit-learn's TfidfVectorizer.transform alone.

    VDSH_DATA=path/to/data python benchmarks/bench_text.py [--before path/to/another/src]

20 Newsgroups with its full text, 32 bits, the usual network, all cores. With --before nothing but
this is done: another version encodes the same texts with the same model, in turn with this one,
posts together, then posts and six words one at a time. `cpu` is what that takes of cores, which
says more on a busy machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import alternate, save
from sklearn.feature_extraction.text import TfidfVectorizer

from vdsh.datasets import load
from vdsh.pipeline import TextHasher
from vdsh.text import SMART

ROUNDS = 5
COMPARED = 4096  # texts
ENCODE = """
import hashlib, json, sys, time
from vdsh.jit import load_kernels
from vdsh.model import Model
load_kernels()
model, texts = Model.load(sys.argv[1]), json.load(sys.stdin)
short = [" ".join(text.split()[10:16]) for text in texts[:100]]
def timed(work, n):
    wall, cpu = time.perf_counter(), time.process_time()
    codes = work()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    return [1e6 * spent[0] / n, 1e6 * spent[1] / n, codes]
def one_by_one(some):
    return b"".join(model.encode([text]).tobytes() for text in some)
for _ in range(2):  # the first warms up
    found = {"together": timed(lambda: model.encode(texts).tobytes(), len(texts)),
             "posts": timed(lambda: one_by_one(texts[:100]), 100),
             "six words": timed(lambda: one_by_one(short), 100)}
for spent in found.values():
    spent[2] = hashlib.sha256(spent[2]).hexdigest()
print(json.dumps(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="the folder `src` of another version")
    before = parser.parse_args().before
    data = load("20newsgroups")
    texts = data.train.texts
    if before is not None:
        save(
            "text_compared", {"data": data.note, "microseconds": compare(texts[:COMPARED], before)}
        )
        return
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts)
    sklearn = TfidfVectorizer(
        max_features=10_000, stop_words=list(SMART), token_pattern=r"\b\w[\w']+\b"
    )
    sklearn.fit(texts)
    seconds = alternate(
        {
            "texts to codes": lambda: hasher.encode_and_count(texts),
            "texts to counts": lambda: hasher.vectorizer_.transform(texts),
            "sklearn tf-idf alone": lambda: sklearn.transform(texts),
        },
        ROUNDS,
    )
    rates = {name: round(len(texts) / value) for name, value in seconds.items()}
    start = time.perf_counter()
    for text in texts[:1000]:
        hasher.encode_and_count([text])
    rates["texts to codes, one at a time"] = round(1000 / (time.perf_counter() - start))
    ratio = rates["texts to codes"] / rates["sklearn tf-idf alone"]
    for name, rate in rates.items():
        print(f"{name:30} {rate:8,} documents/s")
    print(f"texts to codes / sklearn tf-idf alone: {ratio:.2f}x (wanted: 2)")
    save("text", {"data": data.note, "documents_per_second": rates, "ratio": round(ratio, 2)})


def compare(texts, before):
    """Encode with another version and this one in turn; both must give the same codes."""
    sources = {"before": before, "now": Path(__file__).parent.parent / "src"}
    found = {name: [] for name in sources}
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=5).fit(texts[:3000])
    with tempfile.TemporaryDirectory() as folder:
        hasher.save(f"{folder}/model")
        for _ in range(3):
            for name, source in sources.items():
                command = [sys.executable, "-c", ENCODE, f"{folder}/model"]
                environment = os.environ | {"PYTHONPATH": str(source)}
                options = {"input": json.dumps(list(texts)), "text": True, "env": environment}
                answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, **options)
                found[name].append(json.loads(answer.stdout))
    table = {}
    for kind in found["now"][0]:
        codes = {run[kind][2] for runs in found.values() for run in runs}
        assert len(codes) == 1, f"codes of {kind} differ"
        row = {name: [statistics.median(run[kind][i] for run in runs) for i in (0, 1)]
               for name, runs in found.items()}  # fmt: skip
        table[kind] = {f"{name}_{what}_us": round(row[name][i], 1)
                       for name in row for i, what in enumerate(("wall", "cpu"))}  # fmt: skip
        table[kind]["cpu_ratio"] = round(row["before"][1] / row["now"][1], 2)
        print(kind, table[kind])
    return table


if __name__ == "__main__":
    main()
