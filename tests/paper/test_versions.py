"""Whoever changes what decides a cell's numbers says so.

`method_sources.json` has, for each method and for the protocol, the version that
`vdsh.paper.settings` gave it and a checksum of the source behind it: the module, and what it
imports of the rooms that decide numbers, without comments and docstrings. Where the source changes,
either the version is raised, or `python tests/paper/test_versions.py` records that numbers stay.
"""

import ast
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from vdsh.hashers import HASHERS
from vdsh.paper.reproduction import stale
from vdsh.paper.settings import GRAPH, METHOD, PROTOCOL, version

RECORDED = Path(__file__).parent / "method_sources.json"
ROOMS = {
    "method": (
        "vdsh.hashers",
        "vdsh.estimator",
        "vdsh.codes",
        "vdsh.labels",
        "vdsh.metrics",
        "vdsh.text.counts",
    ),
    "protocol": (
        "vdsh.paper.datasets",
        "vdsh.paper.protocol",
        "vdsh.text",
        "vdsh.metrics",
        "vdsh.evaluation",
        "vdsh.codes",
    ),
}
VERSIONS = METHOD | {"protocol": PROTOCOL}


def sources(start: str, rooms: tuple[str, ...]) -> dict[str, str]:
    """Return the source of a module and of what it imports, without comments and docstrings."""
    found, left = {}, [start]
    while left:
        name = left.pop()
        spec = importlib.util.find_spec(name)
        if name in found or spec is None or spec.origin is None:
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names if alias.name.startswith(rooms)]
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(rooms):
                left += [str(node.module)]
            if ast.get_docstring(node) if hasattr(node, "body") and _documented(node) else None:
                node.body = node.body[1:] or [ast.Pass()]
        found[name] = ast.unparse(tree)
    return found


def _documented(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)


def checksum(name: str) -> str:
    if name == "protocol":
        found = sources("vdsh.paper.corpora", ROOMS["protocol"])
        found |= sources("vdsh.paper.protocol", ROOMS["protocol"])
    else:
        found = sources(HASHERS[name].__module__, ROOMS["method"])
    text = json.dumps(sorted(found.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="another Python unparses otherwise")
@pytest.mark.parametrize("name", VERSIONS)
def test_a_changed_source_has_a_new_version_or_the_same_numbers(name):
    version, known = json.loads(RECORDED.read_text())[name]
    assert VERSIONS[name] >= version
    assert (VERSIONS[name], checksum(name)) == (version, known), (
        f"The source behind '{name}' has changed. If its numbers change, raise its version in "
        "vdsh/paper/settings.py. Then, or if they stay: python tests/paper/test_versions.py"
    )


def test_every_committed_cell_is_of_todays_code():
    old = stale(None, Path(__file__).parents[2] / "results" / "cells")
    assert not old, f"Run `vdsh reproduce` for {len(old)} cells, such as {old[0].name}."


def test_only_cells_that_learn_from_the_graph_name_its_version():
    shares = {"paper": 0.0, "defaults": 0.3}
    named = {name: version("vdsh", [{"neighbor_share": share}]) for name, share in shares.items()}
    assert "graph" not in named["paper"] and named["defaults"]["graph"] == GRAPH
    assert version("linear", [{}])["graph"] == GRAPH
    assert "graph" not in version("itq", [{}])


def test_comments_and_docstrings_do_not_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "counted_alone.py"
    module.write_text('"""Doc."""\nRATE = 1  # why\n\ndef f():\n    """Doc."""\n    return RATE\n')
    (before,) = sources("counted_alone", ()).values()
    module.write_text("RATE = 1\n\ndef f():\n    return RATE\n")
    assert list(sources("counted_alone", ()).values()) == [before]
    module.write_text("RATE = 2\n\ndef f():\n    return RATE\n")
    assert list(sources("counted_alone", ()).values()) != [before]


if __name__ == "__main__":
    rows = {name: [VERSIONS[name], checksum(name)] for name in VERSIONS}
    RECORDED.write_text(json.dumps(rows, indent=1) + "\n")
