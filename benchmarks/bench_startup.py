"""Start-up times, and memory of encoding a file against one ten times larger.

python benchmarks/bench_startup.py
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

from vdsh.pipeline import TextHasher

WORDS = (
    "orbit rocket shuttle launch moon crew engine goal match player season team coach ball".split()
)


def main() -> None:
    seconds = {
        "import vdsh": median_seconds([sys.executable, "-c", "import vdsh"]),
        "vdsh --help": median_seconds([command(), "--help"]),
    }
    memory = encoding_memory()
    for name, value in seconds.items():
        print(f"{name:12} {value:.3f} s")
    print(f"peak memory of vdsh encode: {memory} MB")
    wanted = {"import vdsh": 0.3, "vdsh --help": 0.5}
    save("startup", {"seconds": seconds, "wanted": wanted, "peak_memory_mb": memory})


def command() -> str:
    return str(Path(sys.executable).with_name("vdsh"))


def median_seconds(arguments: list[str], runs: int = 9) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times), 3)


def encoding_memory() -> dict[str, int]:
    """Measure the peak resident size of `vdsh encode` on 20,000 and 200,000 documents."""
    with tempfile.TemporaryDirectory() as folder:
        texts = [" ".join(WORDS[(i * j) % 14] for j in range(100)) for i in range(200)]
        model = Path(folder, "model")
        TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts).save(model)
        found = {}
        for size in (20_000, 200_000):
            file = Path(folder, f"{size}.jsonl")
            with file.open("w") as handle:
                for i in range(size):
                    handle.write(json.dumps({"id": i, "text": texts[i % 200]}) + "\n")
            found[f"{size:,} documents"] = peak([command(), "encode", str(model), str(file)])
        return found


def peak(arguments: list[str]) -> int:
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments} failed")
    return round(usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
