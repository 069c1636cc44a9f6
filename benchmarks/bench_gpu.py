"""Exact search in a GPU's memory: one query, a thousand at once, up to a billion codes.

    python benchmarks/bench_gpu.py [--largest 1000000000]

Codes are those of a million topics with one bit in sixteen flipped, as a model's doubt would, and
random ones. Times are from numpy to numpy, medians. Up to ten million codes the answers are
compared with those of the CPU, tie for tie. The tests marked gpu run too, on this GPU, and their
outcome is kept beside the times.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch
from common import save

from vdsh.search import HammingIndex

SIZES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
CHECKED = 10_000_000
BATCH = 1000


def topics(n: int, n_words: int, seed: int) -> torch.Tensor:
    """Draw codes around a million centres; a thousandth of all are new queries' doubles."""
    made = torch.Generator("cuda").manual_seed(seed)
    draw = lambda *shape: torch.randint(  # noqa: E731
        -(2**63), 2**63 - 1, shape, generator=made, device="cuda", dtype=torch.int64
    )
    centres = torch.randint(
        -(2**63), 2**63 - 1, (1 << 20, n_words), device="cuda", dtype=torch.int64,
        generator=torch.Generator("cuda").manual_seed(0),
    )  # fmt: skip
    parts = []
    for i in range(0, n, 1 << 24):
        size = min(1 << 24, n - i)
        chosen = torch.randint(0, len(centres), (size,), generator=made, device="cuda")
        flips = draw(size, n_words) & draw(size, n_words) & draw(size, n_words)
        parts.append((centres[chosen] ^ (flips & draw(size, n_words))).cpu())
    return torch.cat(parts)


def scattered(n: int, n_words: int, seed: int) -> torch.Tensor:
    """Draw random codes."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 2**63, (n, n_words), dtype=np.int64) * 2 + 1)


def timed(work: Callable[[], Any], times: int) -> float:
    """Return the median milliseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return 1e3 * statistics.median(found)


def measure(kind: Callable, n: int, n_bits: int) -> list[dict[str, Any]]:
    codes = kind(n, n_bits // 64, 1).numpy().view(np.uint8)
    queries = kind(BATCH, n_bits // 64, 2).numpy().view(np.uint8)
    start = time.perf_counter()
    index = HammingIndex(codes, device="cuda")
    built = time.perf_counter() - start
    rows = []
    for k in (10, 100):
        timed(lambda k=k: index.search(queries[0], k=k), 3)  # compiles
        one = iter(queries)
        alone = timed(lambda k=k, one=one: index.search(next(one), k=k), 50)
        index.search(queries, k=k)
        together = timed(lambda k=k: index.search(queries, k=k), 3)
        row = {"codes": kind.__name__, "n": n, "bits": n_bits, "k": k, "one_ms": round(alone, 3)}
        row |= {"batch_ms": round(together, 2), "ratio": round(BATCH * alone / together, 1)}
        row |= {"gb_per_s": round(codes.nbytes / alone / 1e6), "built_s": round(built, 2)}
        if n <= CHECKED:
            here = HammingIndex(codes)
            found, expected = index.search(queries[:100], k=k), here.search(queries[:100], k=k)
            single = index.search(queries[0], k=k)
            row["equal_to_cpu"] = bool(
                np.array_equal(found.ids, expected.ids)
                and np.array_equal(found.distances, expected.distances)
                and np.array_equal(single.ids, expected.ids[0])
            )
        print(row, flush=True)
        rows.append(row)
    return rows


def tests() -> dict[str, int]:
    """Run the tests that need a GPU and count how they ended."""
    files = sorted((Path(__file__).parent.parent / "tests").glob("test_gpu_*.py"))
    with tempfile.TemporaryDirectory() as folder:
        report = f"--junitxml={folder}/report.xml"
        # Without what other tests share, which needs packages that these do not.
        subprocess.run([sys.executable, "-m", "pytest", "-q", "--noconftest", *files, report])
        suite = next(ElementTree.parse(f"{folder}/report.xml").iter("testsuite"))
    found = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    return found | {"passed": found["tests"] - sum(list(found.values())[1:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smallest", type=int, default=SIZES[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    given = parser.parse_args()
    rows = []
    for n in SIZES:
        for n_bits in (64, 128):
            for kind in (topics, scattered) if n < SIZES[-1] else (topics,):
                if given.smallest <= n <= given.largest:
                    rows += measure(kind, n, n_bits)
                    torch.cuda.empty_cache()
    save("gpu", {"rows": rows, "tests": tests()})


if __name__ == "__main__":
    main()
