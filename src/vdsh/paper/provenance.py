"""With what a number was measured: date, commit, machine and versions."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("vdsh", "numpy", "scipy", "scikit-learn", "numba", "torch", "faiss-cpu", "usearch")


def provenance() -> dict[str, Any]:
    """Describe date, commit, machine and versions.

    The commit is that of the checkout this file lies in, or the variable VDSH_COMMIT where the
    code was copied without its history.
    """
    versions = {}
    for package in PACKAGES:
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


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return result.stdout.strip()


def _gpu() -> str:
    try:
        import torch
    except ImportError:
        return ""
    if not torch.cuda.is_available():
        return ""
    return f", {torch.cuda.get_device_name()}"
