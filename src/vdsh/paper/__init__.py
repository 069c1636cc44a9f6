"""The paper: its settings, its tables and figures, and with what each number was measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("vdsh", "numpy", "scipy", "scikit-learn", "numba", "torch", "faiss-cpu", "usearch")


def provenance() -> dict[str, Any]:
    """Describe date, commit, machine and versions.

    The commit is that of the checkout this file lies in, or the variable VDSH_COMMIT where the
    code was copied without its history.
    """
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


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _gpu() -> str:
    try:
        import torch
    except ImportError:
        return ""
    return f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
