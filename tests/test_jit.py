"""When kernels are used, and where they live."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vdsh

SOURCE = Path(vdsh.__file__).parent


def imports_of(path):
    """List what a file imports when it is loaded, as module.name."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_kernels_are_in_files_of_their_own():  # #32
    """Only these load numba when they are imported, so that others can be imported lightly."""
    users = {
        path.name
        for path in SOURCE.rglob("*.py")
        if any(name.startswith("numba") or name == "vdsh.jit.kernel" for name in imports_of(path))
    }
    assert users and all(name.endswith("_kernels.py") for name in users)


ONE_SEARCH = """
import sys
import numpy as np
from vdsh import HammingIndex
index = HammingIndex(np.random.default_rng(0).integers(0, 256, ({n}, 8), dtype=np.uint8))
for _ in range({searches}):
    index.search(np.zeros(8, np.uint8), k=3)
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(
    ("n", "searches", "loaded"),
    [(1000, 3, False), (100_000, 1, False), (100_000, 2, True), (4_000_000, 1, True)],
    ids=["few codes", "one search", "one more", "many codes"],
)
def test_the_size_of_a_search_decides_whether_kernels_are_loaded(n, searches, loaded):  # #32
    code = ONE_SEARCH.format(n=n, searches=searches)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(loaded)
