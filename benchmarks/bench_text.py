"""Texts to codes: documents a second, beside scikit-learn's TfidfVectorizer.transform alone.

Run: VDSH_DATA=path/to/data python benchmarks/bench_text.py [--only compared --before OTHER/src]

20 Newsgroups with its full text, 32 bits, the usual network, all cores. Compared, another version
encodes the same texts with the same model, in turn with this one, posts together, then posts and
six words one at a time. `cpu` is what that takes of cores, which says more on a busy machine.
"""

import json
import statistics
import tempfile
from pathlib import Path

from common import alternate, posts, run, timed, versions
from sklearn.feature_extraction.text import TfidfVectorizer

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
    return {"wall_us": 1e6 * spent[0] / n, "cpu_us": 1e6 * spent[1] / n,
            "codes": hashlib.sha256(codes).hexdigest()}
def one_by_one(some):
    return b"".join(model.encode([text]).tobytes() for text in some)
for _ in range(2):  # the first warms up
    found = {"together": timed(lambda: model.encode(texts).tobytes(), len(texts)),
             "posts": timed(lambda: one_by_one(texts[:100]), 100),
             "six words": timed(lambda: one_by_one(short), 100)}
print(json.dumps(found))
"""


def encode(given):
    data = posts(given.quick)
    texts = data.train.texts
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts)
    stop_words, pattern = list(SMART), r"\b\w[\w']+\b"
    sklearn = TfidfVectorizer(max_features=10_000, stop_words=stop_words, token_pattern=pattern)
    sklearn.fit(texts)
    contenders = {
        "texts to codes": lambda: hasher.encode(texts),
        "texts to counts": lambda: hasher.vectorizer_.transform(texts),
        "sklearn tf-idf alone": lambda: sklearn.transform(texts),
    }
    seconds = alternate(contenders, ROUNDS)
    rates = {name: round(len(texts) / value) for name, value in seconds.items()}
    alone = timed(lambda: [hasher.encode([text]) for text in texts[:1000]])[1]
    rates["texts to codes, one at a time"] = round(1000 / alone)
    ratio = rates["texts to codes"] / rates["sklearn tf-idf alone"]
    return {"data": data.note, "documents_per_second": rates, "ratio": round(ratio, 2)}


def compare(given):
    """Encode with another version and this one in turn; both must give the same codes."""
    if not given.before:
        return None
    data = posts(given.quick)
    texts = data.train.texts[:COMPARED]
    hasher = TextHasher("vdsh", n_bits=32, random_state=0, epochs=5).fit(texts[:3000])
    with tempfile.TemporaryDirectory() as folder:
        hasher.save(f"{folder}/model")
        asked = json.dumps(texts)
        turns = [versions(given.before, ENCODE, f"{folder}/model", asked=asked) for _ in range(3)]
    table = {}
    for kind in turns[0]["now"]:
        assert len({run[kind]["codes"] for turn in turns for run in turn.values()}) == 1, kind
        table[kind] = {
            f"{version}_{clock}": round(
                statistics.median(t[version][kind][clock] for t in turns), 1
            )
            for version in ("before", "now")
            for clock in ("wall_us", "cpu_us")
        }
        table[kind]["cpu_ratio"] = round(
            table[kind]["before_cpu_us"] / table[kind]["now_cpu_us"], 2
        )
    return {"data": data.note, "microseconds": table}


if __name__ == "__main__":
    run({"": encode, "compared": compare}, before=Path)
