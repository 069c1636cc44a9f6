"""Exact search in a GPU's memory: one query, a thousand at once, up to a billion codes.

Run: python benchmarks/bench_gpu.py [--sizes 1000000 10000000 100000000 1000000000]

Codes are those of a million topics with one bit in sixteen flipped, as a model's doubt would.
Times are from numpy to numpy, medians. Up to ten million codes the answers are compared with those
of the CPU, tie for tie. The tests marked gpu run too, on this GPU, and their outcome is kept beside
the times.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from common import ROOT, run, timed, times

from vdsh.search import HammingIndex

CHECKED = 10_000_000
BATCH = 1000
PART = 1 << 24  # codes drawn at a time


def measure(given):
    rows = []
    for n in given.sizes:
        for n_bits in (64, 128):
            rows += race(n, n_bits)
            torch.cuda.empty_cache()
    return {"rows": rows, "tests": tests()}


def topics(n, n_words, seed):
    """Draw codes around a million centres."""

    def draw(made, *shape):
        limits = -(2**63), 2**63 - 1
        return torch.randint(*limits, shape, generator=made, device="cuda", dtype=torch.int64)

    centres = draw(torch.Generator("cuda").manual_seed(0), 1 << 20, n_words)
    made = torch.Generator("cuda").manual_seed(seed)
    parts = []
    for first in range(0, n, PART):
        size = min(PART, n - first)
        chosen = torch.randint(0, len(centres), (size,), generator=made, device="cuda")
        flips = draw(made, size, n_words)
        for _ in range(3):
            flips &= draw(made, size, n_words)
        parts.append((centres[chosen] ^ flips).cpu())
    return torch.cat(parts).numpy().view(np.uint8)


def race(n, n_bits):
    codes, queries = topics(n, n_bits // 64, 1), topics(BATCH, n_bits // 64, 2)
    index, built = timed(lambda: HammingIndex(codes, device="cuda"))
    rows = []
    for k in (10, 100):
        times(lambda query, k=k: index.search(query, k=k), queries[:50])  # compiles, wakes the GPU
        alone = times(lambda query, k=k: index.search(query, k=k), queries[50:150])
        together = times(lambda _, k=k: index.search(queries, k=k), range(4))[1:]
        one, batch = (1e3 * statistics.median(seconds) for seconds in (alone, together))
        row = {"codes": "topics", "n": n, "bits": n_bits, "k": k, "one_ms": round(one, 3)}
        row |= {"batch_ms": round(batch, 2), "ratio": round(BATCH * one / batch, 1)}
        row["built_s"] = round(built, 2)
        if n <= CHECKED:
            row["equal_to_cpu"] = are_equal(index, HammingIndex(codes), queries[:100], k)
        print(row, flush=True)
        rows.append(row)
    return rows


def are_equal(index, here, queries, k):
    """Compare ids and distances of a batch, and of one query."""
    found, expected = index.search(queries, k=k), here.search(queries, k=k)
    pairs = [*zip(found, expected, strict=True), (index.search(queries[0], k=k)[0], expected[0][0])]
    return all(np.array_equal(one, other) for one, other in pairs)


def tests():
    """Run the tests that need a GPU and count how they ended."""
    files = sorted((ROOT / "tests").glob("test_gpu_*.py"))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        # Without what other tests share, which needs packages that these do not.
        words = ["-m", "pytest", "-q", "--noconftest", *files, f"--junitxml={report}"]
        subprocess.run([sys.executable, *words], check=False)
        suite = next(ElementTree.parse(report).iter("testsuite"))
    found = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    return found | {"passed": found["tests"] - sum(list(found.values())[1:])}


if __name__ == "__main__":
    run(measure, sizes=(1_000_000, 10_000_000, 100_000_000, 1_000_000_000))
