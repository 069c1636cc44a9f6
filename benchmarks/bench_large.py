"""Training on a corpus of the size of RCV1, made up: seconds an epoch, neighbours, peak memory.

    python benchmarks/bench_large.py [--documents 804414] [--epochs 3]

804,414 documents with 76 of 47,236 terms each, as RCV1 has them; every document mixes one of 103
topics with common words, all by Zipf's law. The paper trained 3,600 s an epoch on it.
"""

import argparse
import resource
import time

import numpy as np
import torch
from common import save
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.hashers import VDSH
from vdsh.hashers.base import Report

DOCUMENTS, TERMS, LENGTH, TOPICS = 804_414, 47_236, 76, 103


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    counts = corpus(options.documents, np.random.RandomState(0))
    print(f"{counts.shape[0]:,} documents, {counts.nnz / counts.shape[0]:.1f} terms each")
    clock = Clock()
    started = time.perf_counter()
    hasher = VDSH(32, random_state=0, epochs=options.epochs).fit(counts, progress=clock)
    seconds = clock.epochs()
    print(f"neighbours {clock.neighbours:.1f} s, epochs {seconds}")
    result = {
        "settings": {
            "documents": counts.shape[0],
            "terms": TERMS,
            "terms_a_document": round(counts.nnz / counts.shape[0], 1),
            "bits": 32,
            "batch_size": hasher.batch_size_,
            "decoder_size": hasher.decoder_size,
        },
        "neighbours_seconds": round(clock.neighbours, 1),
        "epoch_seconds": seconds,
        "wanted_epoch_seconds": 10,
        "fit_seconds": round(time.perf_counter() - started, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "loss": [round(epoch["loss"], 2) for epoch in hasher.history_],
    }
    if torch.cuda.is_available():
        result["device"] = torch.cuda.get_device_name()
        result["peak_gpu_memory_mb"] = round(torch.cuda.max_memory_allocated() / 1e6)
    print(result)
    save("large_gpu" if torch.cuda.is_available() else "large_cpu", result)


def corpus(n_docs: int, rng: np.random.RandomState) -> csr_array:
    """Draw half of a document's words from its topic's own order of the terms."""
    n_words = 78  # about LENGTH different terms are left of them
    zipf = 1 / np.arange(10, TERMS + 10)
    places = np.searchsorted(np.cumsum(zipf) / zipf.sum(), rng.uniform(size=(n_docs, n_words)))
    orders: NDArray[np.int32] = np.stack([rng.permutation(TERMS) for _ in range(TOPICS)])
    topics = rng.randint(0, TOPICS, n_docs)
    half = n_words // 2
    places[:, :half] = orders[topics[:, None], places[:, :half]]
    rows = np.repeat(np.arange(n_docs), n_words)
    ones = np.ones(rows.size, np.float32)
    counts = csr_array((ones, (rows, places.ravel())), shape=(n_docs, TERMS))
    counts.sum_duplicates()
    return counts


class Clock:
    """Notes when neighbours and epochs end."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.neighbours = 0.0
        self.ends: dict[int, float] = {}

    def __call__(self, report: Report) -> None:
        """Take the time of a report."""
        now = time.perf_counter() - self.began
        if report.unit == "neighbours":
            self.neighbours = now
        else:
            self.ends[report.epoch] = now

    def epochs(self) -> list[float]:
        """Return the seconds of each epoch after the first, which compiles and captures."""
        ends = [self.ends[number] for number in sorted(self.ends)]
        return [round(b - a, 2) for a, b in zip(ends, ends[1:], strict=False)]


if __name__ == "__main__":
    main()
