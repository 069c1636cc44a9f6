"""Stores that have only a name: where they are, and what is a path instead."""

import json
import os
import sys
from pathlib import Path

import pytest

from conftest import toy_corpus
from vdsh import Document, open_store
from vdsh.errors import InputError
from vdsh.files import data_folder
from vdsh.store.addresses import find_place, short_name


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with notes, which is the current one; stores go where they go by default."""
    folder = tmp_path / "home"
    (folder / "notes").mkdir(parents=True)
    for i, text in enumerate(toy_corpus(8)[0]):
        (folder / "notes" / f"{i}.md").write_text(text)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    return folder


def test_the_first_command_of_the_readme_works_in_the_home_folder(vdsh, home, monkeypatch):
    def run(folder, *words):
        environment = {name: value for name, value in os.environ.items() if name != "VDSH_HOME"}
        return vdsh(*words, cwd=folder, env=environment)

    added = run(home, "add", "notes", home / "notes", "--learn", "never")
    assert (added.returncode, "8 added" in added.stdout) == (0, True), added.stderr
    assert "notes holds 8 documents" in added.stdout and not added.stderr
    monkeypatch.delenv("VDSH_HOME")
    assert (data_folder() / "notes" / "store.sqlite").is_file()
    text = (home / "notes" / "3.md").read_text()
    found = run(home / "notes", "search", "notes", *text.split(), "--json")
    assert json.loads(found.stdout.splitlines()[0])["id"] == "notes/3.md"


def test_the_data_folder_is_that_of_vdsh_home_then_of_the_system(home, monkeypatch, tmp_path):
    monkeypatch.setenv("VDSH_HOME", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine"
    monkeypatch.setenv("VDSH_HOME", "~/stores")
    assert data_folder() == home / "stores"
    monkeypatch.delenv("VDSH_HOME")
    assert home in data_folder().parents
    if sys.platform == "linux":
        assert data_folder() == home / ".local" / "share" / "vdsh"
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        assert data_folder() == tmp_path / "data" / "vdsh"


PATHS = ["./notes", "a/notes", "/a/notes", "~/notes", ".", "..", ""]
URLS = ["milvus-lite:a.db", "postgresql://host/db", "postgres:x"]


@pytest.mark.parametrize("given", PATHS + URLS)
def test_a_path_or_url_stays_as_it_is(given):
    assert find_place(given) == (given, "")
    assert short_name(given) == given


def test_a_store_in_the_current_folder_is_used_with_a_hint(vdsh, tmp_path):
    environment = os.environ | {"VDSH_HOME": str(tmp_path / "home")}
    with open_store(tmp_path / "notes") as store:
        store.upsert([Document("here", "moon")])
    found = vdsh("search", "notes", "moon", "--json", env=environment)
    assert json.loads(found.stdout)["id"] == "here"
    assert found.stderr.startswith("Hint: 'notes' is taken for the store in this folder. Write ./")
    assert len(found.stderr.splitlines()) == 1
    path = vdsh("search", "./notes", "moon", "--json", env=environment)
    assert (path.stdout, path.stderr) == (found.stdout, "")


def test_every_verb_finds_a_store_by_its_name(vdsh, tmp_path, model_folder, docs):
    home = tmp_path / "home"

    def ask(*words):
        done = vdsh(*words, env=os.environ | {"VDSH_HOME": str(home)})
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done

    ask("index", model_folder, docs, "--store", "news")
    assert (home / "news" / "store.sqlite").is_file() and not Path(tmp_path, "news").exists()
    again = ask("index", model_folder, docs, "--store", "news")
    assert "Next: vdsh search news SOME" in again.stdout
    for words in (
        ("search", "news", "orbit"),
        ("info", "news"),
        ("check", "news"),
        ("compact", "news"),
        ("duplicates", "news"),
        ("drift", "news", docs),
        ("delete", "news", "d0"),
        ("backup", "news", "news.vdsh"),
        ("restore", "news.vdsh", "again"),
        ("copy", "again", "third"),
        ("reindex", "third", "--model", model_folder),
        ("research", "export", "third", "--to", "hex", "--out", "codes.tsv"),
    ):
        ask(*words)
    assert sorted(path.name for path in home.iterdir()) == ["again", "news", "third"]


def test_names_of_stores_are_served_by_their_names(tmp_path, monkeypatch):
    from vdsh.cli.options import find_store
    from vdsh.cli.serve import find_named
    from vdsh.server.service import name_stores

    monkeypatch.setenv("VDSH_HOME", str(tmp_path))
    stores = find_store(["notes", "./letters"])
    named = name_stores(stores, find_named(["post=./letters", "mine=notes"]))
    assert named == {"mine": str(tmp_path / "notes"), "post": "./letters"}


def test_without_a_home_folder_a_name_is_refused_with_advice(monkeypatch):
    monkeypatch.delenv("VDSH_HOME")
    monkeypatch.setattr(Path, "home", _no_home)
    with pytest.raises(InputError, match="Set VDSH_HOME"):
        find_place("notes")


def _no_home():
    raise RuntimeError("Could not determine home directory.")
