"""What ranking by the expected distance gains over plain Hamming distance, in precision at 100.

Run: VDSH_DATA=path/to/data python benchmarks/bench_ranking.py

The query's posterior tells how sure each bit is. Ranked as `Store.search` does it: the nearest
1,000 documents by distance, re-ordered by expected distance.
"""

import numpy as np
from common import save

from vdsh.codes import expected_distances
from vdsh.datasets import load
from vdsh.hashers import HASHERS
from vdsh.labels import read_labels
from vdsh.metrics.ranking import expected_precision
from vdsh.search import HammingIndex
from vdsh.text import BagOfWords

K, CANDIDATES = 100, 1000


def main() -> None:
    rows = []
    for name in ("20newsgroups", "reuters20"):
        data = load(name)
        bag = BagOfWords().fit(data.train.texts)
        train, validation, test = (
            bag.transform(part.texts) for part in (data.train, data.validation, data.test)
        )
        labels = read_labels(data.train.labels)
        test_labels = read_labels(data.test.labels, labels.names).matrix
        for model in ("vdsh", "vdsh-s"):
            for bits in (8, 16, 32, 64, 128):
                hasher = HASHERS[model](bits, random_state=0)
                held_out = validation, data.validation.labels
                hasher.fit(train, data.train.labels, validation=held_out)
                row = measure(hasher, train, labels.matrix, test, test_labels)
                rows.append({"dataset": name, "model": model, "bits": bits, **row})
                print(rows[-1], flush=True)
    save("ranking", {"k": K, "candidates": CANDIDATES, "seed": 0, "rows": rows})


def measure(hasher, train, labels, test, test_labels):
    """Return the mean precision at 100 of both orders."""
    codes, queries = hasher.encode(train), hasher.encode(test)
    plain = expected_precision(queries, test_labels, codes, labels, k=K)
    near, distances = HammingIndex(codes).search(queries, k=CANDIDATES)
    probabilities = hasher.bit_probabilities(test)
    ranked = np.empty(len(plain))
    for q in range(len(plain)):
        expected = expected_distances(codes[near[q]], probabilities[q])
        best = near[q][np.lexsort((near[q], distances[q], expected))[:K]]
        ranked[q] = (labels[best] & test_labels[q]).any(axis=1).mean()
    return {"distance": round(plain.mean(), 4), "expected": round(ranked.mean(), 4)}


if __name__ == "__main__":
    main()
