"""What every benchmark records: machine, versions, commit; and how contenders are timed."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("vdsh", "numpy", "scipy", "scikit-learn", "numba", "torch", "faiss-cpu", "usearch")


def save(name: str, result: dict[str, Any]) -> None:
    """Write a result with its circumstances to `results/`, or to the folder $VDSH_RESULTS."""
    folder = Path(os.environ.get("VDSH_RESULTS", RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"circumstances": circumstances(), **result}, indent=1)
    (folder / f"{name}.json").write_text(text + "\n")
    print(f"-> {folder.name}/{name}.json")


def circumstances() -> dict[str, Any]:
    """Describe where and with what something was measured."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": os.environ.get("VDSH_COMMIT") or _commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores{_gpu()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def alternate(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time contenders in turn, several rounds, after one untimed round; return median seconds."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def _gpu() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
