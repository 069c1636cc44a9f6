"""What people see who work with stores, hits, models and measures in a notebook."""

import numpy as np
import pytest

from vdsh import Document, TextHasher, open_store
from vdsh.errors import InputError
from vdsh.paper.protocol import evaluate_codes
from vdsh.store import Hits


@pytest.fixture
def store(tmp_path, fitted):
    with open_store(tmp_path / "s", fitted) as store:
        store.upsert(
            [
                Document("b", "rocket <b>moon</b> & crew", ("space",)),
                Document("a", "goal match", ("sport", "<i>")),
            ]
        )
        yield store


def test_a_store_is_a_collection_of_documents(store):
    assert len(store) == 2
    assert [document.id for document in store] == ["a", "b"]
    assert next(iter(store)) == store.get("a")
    assert "a" in store and "c" not in store
    assert "" not in store and 7 not in store and None not in store


def test_an_empty_store_is_true(store):
    store.delete(["a", "b"])
    assert len(store) == 0 and list(store) == []
    assert store


def test_a_store_says_what_it_is(store):
    assert repr(store).endswith("/s', 2 documents, 16 bits>")
    store.close()
    assert "is closed" in repr(store) and "\n" not in repr(store)
    with pytest.raises(InputError, match="is closed"):
        len(store)


def test_a_hit_is_short_and_shows_its_passage(store):
    (hit, *_) = store.search("moon crew", k=1)
    assert hit.passage() == "rocket <b>moon</b> & crew"
    shown = repr(hit)
    assert shown.startswith("Hit(id='b', score=") and "distance=" in shown
    long = hit._replace(text="start " * 1000 + "moon " + "end " * 1000)
    assert len(repr(long)) < 200 and "moon" in repr(long)
    assert len(long.passage(50)) <= 50 and "moon" in long.passage(50)
    assert long.passage(50, words=()).startswith("start start")
    assert "score" not in repr(store.find("b"))


def test_hits_are_a_table(store, monkeypatch):
    hits = store.search("moon xylophone", k=2)
    first, line, second, warning = repr(hits).splitlines()
    assert line == "Related, without these words:"
    assert first.split()[1:3] == ["b", "space"] and second.split()[1] == "a"
    assert warning == hits.warning
    assert repr(Hits()) == "<no hits>"
    monkeypatch.setenv("COLUMNS", "20")  # #31 B7
    assert repr(Hits()) == "<no hits>"
    assert isinstance(hits, list) and hits == list(hits)


def test_a_model_says_what_it_learned(fitted):
    new = TextHasher("vdsh", n_bits=8, epochs=3)
    assert repr(new) == "TextHasher(model='vdsh', n_bits=8, random_state=None, epochs=3)"
    assert repr(fitted).startswith("<TextHasher(model='vdsh-s', n_bits=16")
    assert "learned from 80 documents and 16 terms" in repr(fitted)


def test_measures_are_a_table():
    codes = np.array([[0], [1], [255]], np.uint8)
    found = evaluate_codes(codes, ["a", "b", None], codes, ["a", "b", "a"], k=2)
    first, *lines = repr(found).splitlines()
    assert first == "<Evaluation: 2 queries, 3 documents each, 1 without labels left out"
    assert lines[0].split() == ["precision@2", f"{found.means['precision@2']:.4f}"]
