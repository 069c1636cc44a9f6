"""Where people meet vdsh: the image, the workflow, the site, the notebook, other systems."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
POSIX_ONLY = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "posix", "syslog"}


def instructions(name):
    """Return what a Dockerfile's instructions of a name say, in order."""
    text = DOCKERFILE.replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def test_the_image_serves_as_nobody_special_and_says_how_it_is():
    assert all(base.startswith("python:3.11-slim") for base in instructions("FROM"))
    assert instructions("USER") == ["vdsh"] and "--uid 10001" in instructions("RUN")[-1]
    (health,) = instructions("HEALTHCHECK")
    port = instructions("EXPOSE")[0]
    assert f"http://127.0.0.1:{port}/health" in health
    assert instructions("ENTRYPOINT") == ['["vdsh"]'] and "serve" in instructions("CMD")[-1]


def test_the_image_is_made_of_files_that_are_there_and_let_in():
    copied = [
        word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]
    ]
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied and all((ROOT / name).exists() and f"!{name}" in let_in for name in copied)
    (extras,) = re.findall(r"'\.\[(.*)\]'", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.mark.slow
@pytest.mark.network
def test_the_image_is_built_where_docker_runs():
    if (
        not shutil.which("docker")
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("docker does not run here")
    subprocess.run(["docker", "build", "--tag", "vdsh-test", "."], cwd=ROOT, check=True)
    words = ["docker", "run", "--rm", "vdsh-test", "--version"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.startswith(
        "vdsh "
    )


def test_the_workflow_tries_every_python_and_system_that_is_promised():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    promised = [
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line
    ]
    assert matrix["python"] == promised and PROJECT["requires-python"] == f">={promised[0]}"
    (install,) = [
        step["run"]
        for step in workflow["jobs"]["test"]["steps"]
        if "editable" in step.get("run", "")
    ]
    (extras,) = re.findall(r"\.\[(.*)\]", install)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_command_is_that_of_the_package():
    assert PROJECT["scripts"] == {"vdsh": "vdsh.__main__:main"}  # `uvx vdsh`, `pipx run vdsh`


def test_every_page_is_on_the_site():
    def files(part):
        values = part.values() if isinstance(part, dict) else part
        return [part] if isinstance(part, str) else [name for one in values for name in files(one)]

    listed = files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    built = {"docs/api.md", "docs/cli.md"}  # by `make site`
    assert pages | built | {"README.md", "CHANGELOG.md"} == set(listed)
    assert len(listed) == len(set(listed))


def test_hooks_before_a_commit_are_what_lint_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy"}


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cells = json.loads((ROOT / "examples/tour.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        assert cell.get("outputs", []) == []
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["hits"][0].id.startswith("turtle.") and len(names["like"]) == 4
    assert list(tmp_path.iterdir()) == []


def test_no_module_needs_posix_to_be_imported():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not POSIX_ONLY.intersection(names), f"{path}: {names}"


@pytest.mark.skipif(sys.platform != "linux", reason="asks for what others do not have")
def test_several_workers_are_refused_where_a_port_cannot_be_shared(monkeypatch):
    from vdsh.errors import InputError
    from vdsh.server import connections

    monkeypatch.setattr(connections.sys, "platform", "darwin")
    with pytest.raises(InputError, match="need Linux. Got 2"):
        connections.listen("127.0.0.1", 0, 2)
    (alone,) = connections.listen("127.0.0.1", 0, 1)
    alone.close()
