"""The generated references say what the code says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def references():
    sys.path.insert(0, str(DOCS))
    try:
        import make_references
    finally:
        sys.path.pop(0)
    return make_references


@pytest.mark.parametrize("name", ["api.md", "cli.md"])
def test_references_are_not_stale(references, name):
    assert (DOCS / name).read_text(encoding="utf-8") == references.pages()[DOCS / name], (
        "run `make docs`"
    )


def test_the_command_line_reference_is_the_same_on_any_terminal():
    code = f"import sys; sys.path.insert(0, {str(DOCS)!r})\n"
    code += "import make_references; sys.stdout.write(make_references.cli_page())"
    environment = os.environ | {"COLUMNS": "40", "FORCE_COLOR": "1", "LC_ALL": "C"}
    environment["PYTHONIOENCODING"] = "utf-8"
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert result.stdout.decode("utf-8") == (DOCS / "cli.md").read_text(encoding="utf-8")


def test_every_verb_and_every_public_name_is_in_the_references():
    import vdsh
    from vdsh.cli import app

    api, cli = ((DOCS / name).read_text(encoding="utf-8") for name in ("api.md", "cli.md"))
    names = [f"research {c.name}" if c.hidden else c.name for c in app.registered_commands]
    assert all(f"\n## vdsh {name}\n" in cli for name in names)
    assert all(name in api for name in vdsh.__all__)


def test_every_setting_of_the_models_is_explained():
    from vdsh.hashers import VDSH_SP

    page = (DOCS / "models.md").read_text(encoding="utf-8")
    settings = set(VDSH_SP().get_params()) - {"random_state"}
    assert [name for name in sorted(settings) if f"`{name}`" not in page] == []
