"""Every command of the tutorial and the how-to pages runs as it stands there."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from warm import warm_vdsh

pytestmark = pytest.mark.posix("commands run in a shell, some in forks of a warm process")
DOCS = Path(__file__).parent.parent / "docs"
MARK = "=== "


def commands(page):
    """List what stands after `$` in the console blocks, continued lines joined."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    text = "".join(blocks).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with `vdsh` and `python`; what imports torch starts warm, all else as it is."""
    bin = tmp_path_factory.mktemp("bin")
    with warm_vdsh(bin) as warm:
        vdsh = (
            f'case "$1 $2" in fit*|"research evaluate") exec {warm} "$@";; esac\n'
            f'exec {sys.executable} -m vdsh "$@"'
        )
        for name, line in (("vdsh", vdsh), ("python", f'exec {sys.executable} "$@"')):
            (bin / name).write_text(f"#!/bin/sh\n{line}\n")
            (bin / name).chmod(0o755)
        yield bin


def run(page, folder, bin, port):
    """Run a page's commands in one shell; give what each printed."""
    scripts = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page.read_text(), re.DOTALL)
    for name, code in scripts:
        (folder / name).write_text(code.replace("8765", str(port)))
    lines = commands(page)
    marked = (f"printf '\\n{MARK}{i}\\n'\n{line}\n" for i, line in enumerate(lines))
    script = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    script += "".join(marked).replace("8765", str(port))
    # xdist tells its workers a width of 80, where a hit may take two lines.
    environment = os.environ | {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    environment["VDSH_HOME"] = str(folder)  # where Python looks for stores, too
    result = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    printed = re.split(rf"\n{MARK}\d+\n", result.stdout)[1:]
    return list(zip(lines, printed, strict=True))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def printed_by(done, beginning):
    return next(text for line, text in done if line.startswith(beginning))


@pytest.fixture(scope="module")
def tutorial(shell, tmp_path_factory):
    """The tutorial, done: its folder and what each command printed."""
    if not (shutil.which("bash") and shutil.which("curl")):
        pytest.skip("the tutorial uses bash and curl")
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, run(DOCS / "tutorial.md", folder, shell, free_port())


@pytest.mark.slow
def test_the_tutorial_finds_what_it_asks_for(tutorial):
    _, done = tutorial
    hits = printed_by(done, "vdsh search").splitlines()
    assert len(hits) == 3
    assert sum("\tturtle\t" in hit for hit in hits) >= 2
    filtered = printed_by(done, 'vdsh search manual-store "wait')
    hits = filtered.splitlines()
    assert len(hits) == 3
    assert all("\tasyncio" in hit for hit in hits)
    assert json.loads(done[-2][1])["hits"][0]["labels"] == ["turtle"]


@pytest.mark.slow
def test_the_tutorial_measures_and_compares(tutorial):
    _, done = tutorial
    alone = printed_by(done, "vdsh research evaluate manual-model ")
    assert float(re.search(r"precision@50 +([\d.]+)", alone).group(1)) > 0.6
    both = printed_by(done, "vdsh research evaluate manual-model-s")
    ours, other = map(float, re.search(r"precision@50 +([\d.]+) +([\d.]+)", both).groups())
    assert ours > other
    assert "paired t-test p =" in both


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((DOCS / "howto").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_page_works_on_the_files_of_the_tutorial(page, tutorial, shell, tmp_path):
    folder, _ = tutorial
    for name in ("manual.csv", "manual-model", "manual-store"):
        copy = shutil.copytree if (folder / name).is_dir() else shutil.copy
        copy(folder / name, tmp_path / name)
    assert commands(page), "a how-to page shows commands"
    done = run(page, tmp_path, shell, free_port())
    assert all(text.strip() for line, text in done if line.startswith("vdsh") and ">" not in line)


@pytest.mark.parametrize("page", sorted((DOCS / "howto").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_page_fits_one_screen(page):
    assert len(page.read_text().splitlines()) <= 60
