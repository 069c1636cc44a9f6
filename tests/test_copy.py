"""Stores copied from one engine to another."""

import json

import numpy as np
import pytest

from engines import ENGINES, code, codes_of, doc
from vdsh import TextHasher
from vdsh.errors import InputError
from vdsh.store import copy_store, copying, open_store

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

PAIRS = [*zip(ENGINES, (*ENGINES[1:], ENGINES[0]), strict=True), ("milvus-lite", "local")]


def fill(store, n=300):
    rng = np.random.default_rng(1)
    documents = [
        doc(f"{i:03}", f"text\x00 {i} é", (f"l{i % 3}",) if i % 4 else None, year=i, odd=[i, None])
        for i in range(n)
    ]
    store.upsert(documents, rng.integers(0, 256, (n, 2), dtype=np.uint8))


@pytest.fixture
def source(new_place, fitted):
    with open_store(new_place("local"), fitted) as store:
        fill(store)
        yield store


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_copy_answers_as_the_original(first, second, new_place, fitted):
    with (
        open_store(new_place(first), fitted) as source,
        open_store(new_place(second), fitted) as target,
    ):
        fill(source)
        assert copy_store(source, target) == 300
        for where in (None, {"year": {">=": 200}}, {"not": {"label": "l1"}}):
            assert source.search(code(7), k=40, where=where) == target.search(
                code(7), k=40, where=where
            )
        assert list(source.documents(77))[2] == list(target.documents(77))[2]
        for query in ("orbit moon", "text 77", "77", '"text" -77'):
            assert source.search(query) == target.search(query)
            assert target.search(query, k=1)[0].words == source.search(query, k=1)[0].words
        assert target.search("77", k=1)[0].id == "077"


def test_an_interrupted_copy_goes_on_where_it_ended(source, new_place, fitted, monkeypatch):
    monkeypatch.setattr(copying, "BATCH", 50)

    def interrupt(n_over):
        if n_over == 150:
            raise KeyboardInterrupt

    with open_store(new_place("postgres"), fitted) as target:
        with pytest.raises(KeyboardInterrupt):
            copy_store(source, target, progress=interrupt)
        assert target.count() == 150
        seen = []
        assert copy_store(source, target, progress=seen.append) == 150
        assert seen == [50, 100, 150, 200, 250, 300]
        assert copy_store(source, target) == 0


def test_a_copy_made_again_writes_what_differs(source, new_place, fitted):
    with open_store(new_place("local"), fitted) as target:
        target.upsert([doc("000"), doc("more")], codes_of(1, 2))
        assert copy_store(source, target) == 300
        assert len(target) == 301
        assert target.get("000") == source.get("000")
        assert target.get("more") == doc("more")
        target.upsert([target.get("007")], codes_of(1))  # just its code
        ((_, codes),) = target.codes()
        target.upsert([doc("008", target.get("008").text)], codes[8:9])  # all but its code
        target.delete(["009"])
        assert copy_store(source, target) == 3
        assert [target.find(id) for id in ("007", "008", "009")] == [
            source.find(id) for id in ("007", "008", "009")
        ]


def test_another_model_or_the_same_store_is_refused(source, new_place, corpus):
    other = TextHasher("lsh", n_bits=16, random_state=1).fit(corpus[0])
    with open_store(new_place("local"), other) as target:
        with pytest.raises(InputError, match="was made with another model"):
            copy_store(source, target)
        assert target.count() == 0
    with pytest.raises(InputError, match="into itself"):
        copy_store(source, source)


def test_an_empty_store_is_copied(new_place, fitted):
    with (
        open_store(new_place("local"), fitted) as source,
        open_store(new_place("milvus-lite"), fitted) as target,
    ):
        assert copy_store(source, target) == 0


# -- on the command line ---------------------------------------------------------------------------


def test_copy_on_the_command_line(vdsh, source, new_place):
    target = new_place("postgres")
    done = vdsh("copy", source.info()["path"], target)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Copied 300 documents; postgresql://postgres:***@127.0.0.1")
    again = json.loads(vdsh("copy", source.info()["path"], target, "--json").stdout)
    assert again == {"written": 0, "documents": 300}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_verb_takes_a_url(engine, vdsh, new_place, model_folder, docs):
    place = new_place(engine)
    indexed = vdsh("index", model_folder, docs, "--store", place)
    assert indexed.returncode == 0, indexed.stderr
    assert "Wrote 80 documents" in indexed.stdout
    found = vdsh("search", place, "rocket moon orbit", "-k", 3, "--where", "label=space", "--json")
    assert [json.loads(line)["labels"] for line in found.stdout.splitlines()] == [["space"]] * 3
    assert len(vdsh("search", place, "rocket moon", "--radius", 16).stdout.splitlines()) == 80
    assert vdsh("duplicates", place, "--similarity", 0.1, "--keep", "first").stdout
    assert "Deleted 2 of 3; 78 documents" in vdsh("delete", place, "d1", "d2", "no").stdout
    facts = vdsh("info", place).stdout
    assert "documents" in facts
    assert "pass" not in facts + indexed.stdout
