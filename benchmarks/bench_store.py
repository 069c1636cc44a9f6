"""The local store: documents written a second, time to open a million, time of a text query.

Run: VDSH_DATA=path/to/data python benchmarks/bench_store.py [--documents 1000000]

The model is a 32-bit VDSH-S of 20 Newsgroups; documents are its posts cut to a sentence and
numbered, with codes of the model flipped in a few bits, so that codes repeat as real ones do.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import save

from vdsh import Document, TextHasher
from vdsh.codes import pack, unpack
from vdsh.datasets import load
from vdsh.store import open_store

QUERIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    n = parser.parse_args().documents
    data = load("20newsgroups")
    hasher = TextHasher("vdsh-s", n_bits=32, random_state=0, epochs=3, hidden_size=1000)
    hasher.fit(data.train.texts, data.train.labels)
    codes = noisy(hasher.encode_and_count(data.train.texts)[0], n)
    shorts = [" ".join(text.split()[:12]) for text in data.train.texts]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        with open_store(path, hasher) as store:
            start = time.perf_counter()
            store.upsert(documents(n, shorts, data.train.labels), codes=codes)
            seconds = time.perf_counter() - start
        result = {
            "documents": n,
            "upsert_per_second": round(n / seconds),
            "open_seconds": opening(path),
            **queries(path, data.test.texts),
            "bytes_on_disk": sum(f.stat().st_size for f in path.rglob("*") if f.is_file()),
        }
    for name, value in result.items():
        print(f"{name:28} {value:,}" if isinstance(value, int) else f"{name:28} {value}")
    wanted = {"upsert_per_second": 30_000, "open_seconds": 2, "text_query_ms": 10}
    name = "store" if n == 1_000_000 else f"store_{n}"
    save(name, result | {"wanted": wanted})


def noisy(codes, n):
    """Repeat codes and flip every hundredth bit."""
    rng = np.random.default_rng(0)
    bits = unpack(codes[rng.integers(0, len(codes), n)])
    return pack(bits ^ (rng.random(bits.shape, np.float32) < 0.01))


def documents(n, texts, labels):
    for i in range(n):
        j = i % len(texts)
        yield Document(f"post-{i:08d}", texts[j], labels[j], {"year": 1980 + i % 40})


def opening(path):
    """Open the store and search it once by code, in a fresh process; median of five."""
    code = (
        "import time, numpy as np\n"
        "from vdsh.store import open_store\n"
        "import vdsh.search.index, vdsh.pipeline\n"
        "start = time.perf_counter()\n"
        f"store = open_store({str(path)!r})\n"
        "assert len(store.search(np.zeros(4, np.uint8), k=10)) == 10\n"
        "print(time.perf_counter() - start)\n"
        "store.close()\n"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return round(statistics.median(runs), 3)


def queries(path, texts):
    """Time single queries by text: tokenize, encode, search, fetch."""
    kinds = {
        "text_query_ms": {},
        "text_query_label_filter_ms": {"where": {"label": "sci.space"}},
        "text_query_expected_rank_ms": {"rank": "expected"},
    }
    found = {}
    with open_store(path) as store:
        for name, options in kinds.items():
            times = []
            for text in [*texts[:5], *texts[: QUERIES if not options else 30]]:
                start = time.perf_counter()
                store.search(text, k=10, **options)
                times.append(time.perf_counter() - start)
            found[name] = round(1000 * statistics.median(times[5:]), 2)
    return found


if __name__ == "__main__":
    main()
