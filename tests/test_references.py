"""The references of Python and the command line are built from the code, and are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """Build both pages, as `make docs` does; give the folder."""
    folder = tmp_path_factory.mktemp("references")
    script = DOCS / "make_references.py"
    subprocess.run([sys.executable, script, folder], check=True, capture_output=True)
    return folder


def page(references, name):
    return (references / name).read_text(encoding="utf-8")


def test_both_pages_are_built_and_nothing_else(references):
    assert sorted(path.name for path in references.iterdir()) == ["api.md", "cli.md"]


def test_the_command_line_reference_is_the_same_on_any_terminal(references):
    code = f"import sys; sys.path.insert(0, {str(DOCS)!r})\n"
    code += "import make_references; sys.stdout.write(make_references.cli_page())"
    environment = os.environ | {"COLUMNS": "40", "FORCE_COLOR": "1", "LC_ALL": "C"}
    environment["PYTHONIOENCODING"] = "utf-8"
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert result.stdout.decode("utf-8") == page(references, "cli.md")


def test_every_verb_and_every_public_name_is_in_the_references(references):
    import vdsh
    from vdsh.cli import app

    names = [f"research {c.name}" if c.hidden else c.name for c in app.registered_commands]
    assert all(f"\n## vdsh {name}\n" in page(references, "cli.md") for name in names)
    assert all(name in page(references, "api.md") for name in vdsh.__all__)


def test_every_option_of_a_verb_and_every_argument_of_a_name_is_in_the_references(references):
    assert "--language" in page(references, "cli.md").partition("\n## vdsh add\n")[2]
    api = page(references, "api.md")
    assert "### evaluate_codes\n\n```python\nevaluate_codes(\n    query_codes: Codes," in api
    assert "*Parameters*" in api


def test_links_of_the_references_lead_to_pages_of_the_site(references):
    for name in ("api.md", "cli.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page(references, name)):
            assert target.startswith("http") or (DOCS / target).exists(), f"{name}: {target}"


def test_every_setting_of_the_models_is_explained():
    from vdsh.hashers import VDSH_SP

    page = (DOCS / "models.md").read_text(encoding="utf-8")
    settings = set(VDSH_SP().get_params()) - {"random_state"}
    assert [name for name in sorted(settings) if f"`{name}`" not in page] == []
