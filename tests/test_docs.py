"""What the documentation says of the program is what the program does."""

import inspect
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import typer
from fastapi.testclient import TestClient
from typer.core import TyperGroup

import bare_install
from test_bare_install import HIDE
from vdsh import Document, fitting, open_store
from vdsh.cli import maintenance, make_app, serve
from vdsh.model import drift
from vdsh.server import bodies, connections, routes
from vdsh.server.app import create_app
from vdsh.server.bodies import Limits, NewDocument
from vdsh.server.json_routes import FAILURES
from vdsh.store.engines.sqlite import schema
from vdsh.store.where import MAX_DEPTH
from vdsh.words.passages import LONGEST

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def read(page):
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A fresh store, in which one filter was used."""
    path = tmp_path_factory.mktemp("docs") / "store"
    with open_store(path) as opened:
        opened.upsert([Document("a", "moon orbit", ("space",), {"year": 1990})])
        opened.remember("notes/", {"a": "b"})
        assert opened.search("moon", where={"year": 1990})
    return path


def test_the_tables_of_a_store_are_those_that_the_formats_name(store):
    with closing(sqlite3.connect(store / "store.sqlite")) as base:
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {name for (name,) in base.execute(names) if not name.startswith("sqlite_")}
        columns = {
            name: {column for _, column, *_ in base.execute(f"PRAGMA table_info({name})")}
            for name in ("meta", "documents")
        }
    of_filters = {re.search(r"TABLE (\w+)", sql)[1] for sql in schema.FILTERS}
    passage = re.search(r"Tables of the database:.*?\n\n", read("formats.md"), re.DOTALL)[0]
    named = set(re.findall(r"`(\w+)`", passage.partition("A file")[0]))
    assert named == tables | of_filters
    for name, found in columns.items():
        listed = re.search(rf"`{name}` \(([^)]*)\)", passage)[1]
        assert set(listed.split(", ")) == found


def test_the_format_of_a_store_is_the_one_that_the_formats_name(store):
    with closing(sqlite3.connect(store / "store.sqlite")) as base:
        ((format,),) = base.execute("SELECT value FROM meta WHERE key = 'format'")
    said = re.findall(r"store\.sqlite`[^\n]*\(format (\d+)\)", read("formats.md"))
    assert said == [format]


def test_the_python_of_the_readme_runs_with_the_base_install(tmp_path, docs):
    """Without torch, scikit-learn and all else that an extra brings."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "fit(" in one]
    (tmp_path / "example.py").write_text(code.replace("vdsh-demo/documents.jsonl.gz", str(docs)))
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDE)
    assert "torch" in bare_install.EXTRAS
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "hidden")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "docs-model" / "manifest.json").is_file()


def limits_of_fields():
    """The most characters, or items, that the model of a new document allows."""
    fields = NewDocument.model_json_schema()["properties"]
    labels = next(one for one in fields["labels"]["anyOf"] if one["type"] == "array")
    return {
        "id": fields["id"]["maxLength"],
        "label": labels["items"]["maxLength"],
        "labels": labels["maxItems"],
    }


# A page, what it says with {} where a number stands, and the numbers that the program has.
SAID = [
    (
        "security.md",
        "{} bytes, {} headers | 431",
        (connections.MOST_BYTES, connections.MOST_HEADERS),
    ),
    ("security.md", "sent ahead on a connection | {} |", (connections.MOST_QUEUED,)),
    ("security.md", "| body | {} MiB", (Limits().body / 2**20,)),
    (
        "security.md",
        "{} and {} characters; {}; {} bytes of JSON",
        (*limits_of_fields().values(), bodies.MOST_METADATA),
    ),
    (
        "security.md",
        "{} parts, {} values, {} levels",
        (bodies.MOST_PARTS, bodies.MOST_VALUES, MAX_DEPTH),
    ),
    ("security.md", "| {} characters; 500,000, and", (routes.MOST_CHARACTERS,)),
    ("security.md", "500,000, and {} of one", (LONGEST,)),
    ("security.md", "| time for an answer | {} s", (Limits().seconds,)),
    ("security.md", "to send or to read | {} s", (Limits().client_seconds,)),
    ("security.md", "| requests at a time, per worker | {} |", (Limits().waiting,)),
    ("deployment.md", "| `--max-k` | {} hits", (Limits().k,)),
    ("deployment.md", "| `--max-batch` | {} texts", (Limits().batch,)),
    ("deployment.md", "| `--max-text` | {} characters", (Limits().text,)),
    ("deployment.md", "| `--max-body` | {} MiB", (Limits().body / 2**20,)),
    ("deployment.md", "| `--timeout` | {} s", (Limits().seconds,)),
    ("deployment.md", "| `--client-timeout` | {} s", (Limits().client_seconds,)),
    (
        "deployment.md",
        "| {} bytes and {} headers of a head",
        (connections.MOST_BYTES, connections.MOST_HEADERS),
    ),
    ("deployment.md", "| {} pipelined requests", (connections.MOST_QUEUED,)),
    ("deployment.md", "| {} characters of texts in the hits", (routes.MOST_CHARACTERS,)),
    (
        "deployment.md",
        "| {} parts and {} values of a filter",
        (bodies.MOST_PARTS, bodies.MOST_VALUES),
    ),
    (
        "deployment.md",
        "| {} characters of an id, {} of a label; {} labels and {} bytes of metadata",
        (*limits_of_fields().values(), bodies.MOST_METADATA),
    ),
    ("server.md", "Send up to {} documents a call", (Limits().batch,)),
    ("server.md", "after a second no more values", ()),
    ("add.md", "and none below {}, where words say more", (fitting.LEAST_LEARNED,)),
    ("operations.md", "fewer than {} new or {} held-out documents", (drift.LEAST, drift.LEAST)),
    ("operations.md", "The exit status is {} if a measure has moved", (maintenance.DRIFTED,)),
]


@pytest.mark.parametrize(("page", "said", "numbers"), SAID, ids=[said for _, said, _ in SAID])
def test_numbers_that_the_documentation_names_are_those_of_the_program(page, said, numbers):
    pattern = re.escape(said).replace(r"\{\}", r"([\d,]+)")
    found = re.search(pattern, " ".join(read(page).split()))
    assert found, f"{page} does not say: {said}"
    assert [int(number.replace(",", "")) for number in found.groups()] == list(numbers)


def test_options_of_serve_have_the_limits_of_the_service_as_defaults():
    given = {
        name: one.default.default for name, one in inspect.signature(serve.serve).parameters.items()
    }
    limits = Limits()
    assert (given["max_k"], given["max_batch"]) == (limits.k, limits.batch)
    assert (given["max_text"], given["max_body"]) == (limits.text, limits.body)
    assert (given["timeout"], given["client_timeout"]) == (limits.seconds, limits.client_seconds)


def test_every_status_that_is_named_has_the_code_that_is_answered():
    table = read("deployment.md").partition("| status | `code` |")[2].partition("\n\n")[0]
    statuses = {int(number) for number in re.findall(r"\b([45]\d\d)\b", table)}
    assert statuses == set(FAILURES)
    assert {code for code, _ in FAILURES.values()} <= set(re.findall(r"`(\w+)`", table))


def test_every_call_that_is_listed_is_there_and_every_call_is_listed(store):
    listed = re.findall(r"^\| `(GET|POST|DELETE) ([^`]*)`(.*?)\|", read("server.md"), re.MULTILINE)
    named = set()
    for method, path, more in listed:
        paths = [path, *re.findall(r"`(/[^`]*)`", more)]
        paths += [path + "/BIT" for _ in re.findall(r"`…/bits/3`", more)]
        named |= {(method, re.sub(r"\?.*", "", one)) for one in paths}
    with TestClient(create_app(store), base_url="http://127.0.0.1:8000") as api:
        described = api.get("/openapi.json").json()["paths"]
    there = {
        (method.upper(), re.sub(r"\{bit\}", "BIT", re.sub(r"\{id\}", "ID", path)))
        for path, calls in described.items()
        for method in calls
    }
    assert named == there


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("search", "s", "moon"), 0),
        (("search", "s", "nothing-like-it"), 1),
        (("search", "nowhere", "moon"), 1),
        (("check", "s"), 0),
        (("search", "s", "moon", "--no-such-option"), 2),
    ],
)
def test_exit_statuses_are_those_that_the_documentation_names(vdsh, store, words, status):
    words = [str(store) if word == "s" else word for word in words]
    assert vdsh(*words).returncode == status


def commands_in(page):
    """List the commands of a page's code blocks, without what a shell makes of them."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for block in (text for language, text in fences if language in ("", "console")):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ")
            if command.startswith("vdsh ") and not set(command) & set("…[]|<>"):
                yield command.partition("  #")[0].removesuffix("&")


PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_shown_has_verbs_and_options_that_exist(page):
    group = typer.main.get_command(make_app())
    commands = (part.strip() for line in commands_in(page) for part in line.split("&&"))
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        node, name = group, "vdsh"
        with group.make_context("vdsh", [], resilient_parsing=True) as context:
            while isinstance(node, TyperGroup) and words and not words[0].startswith("-"):
                name, node, words = node.resolve_command(context, words)
            assert node is not None, command
            if not {"--help", "--version"} & set(words):
                node.make_context(name, words, parent=context)
