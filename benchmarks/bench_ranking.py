"""What ranking by the expected distance gains over plain Hamming distance, in precision at 100.

Run: VDSH_DATA=path/to/data python benchmarks/bench_ranking.py

The query's posterior tells how sure each bit is. Ranked as `Store.search` does it: the nearest
1,000 documents by distance, re-ordered by expected distance.
"""

import numpy as np
from common import POSTS, run

from vdsh.codes import expected_distances
from vdsh.datasets import load
from vdsh.hashers import HASHERS
from vdsh.labels import read_labels
from vdsh.metrics.ranking import expected_precision
from vdsh.search import HammingIndex
from vdsh.text import BagOfWords

K, CANDIDATES = 100, 1000


def measure(given):
    rows = []
    for name in ("20newsgroups", "reuters20"):
        data = load(name, quiet=True)
        parts = [data.train, data.validation, data.test]
        if given.quick:
            parts = [part.take(np.arange(min(POSTS, len(part.ids)))) for part in parts]
        bag = BagOfWords().fit(parts[0].texts)
        counts = [bag.transform(part.texts) for part in parts]
        labels = read_labels(parts[0].labels)
        test_labels = read_labels(parts[2].labels, labels.names).matrix
        for model in ("vdsh", "vdsh-s"):
            for bits in given.bits[:1] if given.quick else given.bits:
                hasher = HASHERS[model](bits, random_state=0)
                hasher.fit(counts[0], parts[0].labels, validation=(counts[1], parts[1].labels))
                found = orders(hasher, counts[0], labels.matrix, counts[2], test_labels)
                rows.append({"dataset": name, "model": model, "bits": bits, **found})
                print(rows[-1], flush=True)
    return {"k": K, "candidates": CANDIDATES, "rows": rows}


def orders(hasher, train, labels, test, test_labels):
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
    run(measure, bits=(8, 16, 32, 64, 128))
