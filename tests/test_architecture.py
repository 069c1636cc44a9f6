"""`docs/architecture.md` names what is there."""

import ast
import re
from pathlib import Path

import pytest

import vdsh

SOURCE = Path(vdsh.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
NAMES = sorted(set(re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", PAGE.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_every_name_of_the_architecture_exists(file, name):
    path = SOURCE / file
    assert path.is_file(), file
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for part in filter(None, name.split(".")):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        assert found, f"{file} has no {name}"
        body = found[0].body


def test_the_architecture_tells_the_three_journeys():
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:3] == ["A search", "A write", "A fit"]
    assert len(NAMES) > 30
