"""A base install: in the tests its extras are hidden, `make smoke` makes a real one."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bare_install
import vdsh

ROOT = Path(__file__).parent.parent
HIDE = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {bare_install.EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.slow
def test_a_base_install_encodes_and_searches_with_a_saved_model(tmp_path):
    bare_install.train(tmp_path)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDE)  # every Python started below reads it first
    path = os.pathsep.join(filter(None, [str(hidden), os.environ.get("PYTHONPATH")]))
    result = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "bare_install.py"), "use", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("The base install encodes")


def test_the_extras_of_the_check_are_those_of_the_project():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    packages = {name for key, names in extras.items() if key != "all" for name in names}
    names = {"".join(c if c.isalnum() or c == "_" else " " for c in p.replace("-", "_")).split()[0]
             for p in packages}  # fmt: skip
    imported = {"faiss_cpu": "faiss", "scikit_learn": "sklearn"}
    ours = {"vdsh"}  # an extra that has another inside
    names = {imported.get(name, name) for name in names} - ours
    assert names <= set(bare_install.EXTRAS)


def test_make_alone_lists_its_targets():
    result = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in result.stdout.splitlines()}
    assert {"install", "demo", "test", "lint", "docs", "smoke", "bench"} <= listed


def test_types_and_page_and_nothing_else_are_shipped(tmp_path):
    pytest.importorskip("setuptools")
    code = (
        "import setuptools, sys; sys.argv = ['setup.py', '-q', 'bdist_wheel', "
        f"'--dist-dir', {str(tmp_path)!r}, '--bdist-dir', {str(tmp_path / 'build')!r}]; "
        "setuptools.setup()"
    )
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/vdsh").rglob("*.*")
            if path.is_file() and path.parent.name != "__pycache__"}  # fmt: skip
    assert {"vdsh/py.typed", "vdsh/server/page/index.html", "vdsh/cli/fit.py"} <= ours
    assert {name for name in names if ".dist-info/" not in name} == ours
    assert wheel.name == f"vdsh-{vdsh.__version__}-py3-none-any.whl"


def test_the_citation_names_the_version():
    assert f"\nversion: {vdsh.__version__}\n" in (ROOT / "CITATION.cff").read_text()
