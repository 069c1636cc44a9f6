"""A store that has not learned codes: it answers by words, on every engine (#35)."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from engines import doc, ids
from vdsh import open_store
from vdsh.errors import MissingFileError, VdshError
from vdsh.server.app import create_app
from vdsh.store import copy_store, restore_store

NOTES = [
    doc("keys", "how to rotate the signing keys of the service", ("ops",), year=2024),
    doc("moon", "the red moon rose over the hills", ("sky",), year=2020),
    doc("mars", "mars is the red planet, and a rover rolls there", ("sky",), year=2021),
    doc("copy", "mars is the red planet, and a rover rolls there today", year=2022),
]
UNLEARNED = "has not learned codes yet"


@pytest.fixture
def notes(place):
    with open_store(place) as store:
        store.upsert(NOTES)
        yield store


def test_a_store_without_a_model_answers_by_words(notes):
    assert ids(notes.search("rotate keys")) == ["keys"]
    assert ids(notes.search("red", where={"year": {"<": 2021}})) == ["moon"]
    assert ids(notes.search("red", where={"label": "sky"}, k=1))[0] in ("moon", "mars")
    assert set(ids(notes.search('"red planet"'))) == {"mars", "copy"}
    assert ids(notes.search("red -planet")) == ["moon"]
    (hit,) = notes.search("signing")
    assert hit.code == "" and hit.distance == 0 and 0 < hit.score <= 1 and hit.words == ("signing",)


def test_what_has_none_of_the_words_is_not_found(notes):
    found = notes.search("zeppelin")
    assert not found and "zeppelin" in found.warning
    assert not notes.search("zeppelin", where={"label": "sky"})
    assert not notes.search("the of and")


def test_it_is_written_read_and_opened_again(notes, place):
    notes.upsert([doc("moon", "a green cheese")])
    assert notes.delete(["copy"]) == 1
    assert ids(notes.search("cheese")) == ["moon"] and ids(notes.search("red")) == ["mars"]
    assert notes.get("keys") == NOTES[0] and len(notes) == 3
    assert notes.check() == []
    facts = notes.info()
    assert facts["bits"] == 0 and facts["model"]["fingerprint"] == ""
    with open_store(place, create=False) as again:
        assert ids(again.search("signing")) == ["keys"]


def test_what_needs_codes_says_how_to_learn_them(notes):
    code = np.zeros(2, np.uint8)
    for ask in (
        lambda: notes.within("red", 2),
        lambda: notes.search("red", rank="distance"),
        lambda: notes.search("red", rank="expected"),
        lambda: notes.search(code),
        lambda: notes.search(vector=[1.0, 2.0]),
        lambda: notes.upsert(NOTES[:1], code[None]),
        lambda: notes.upsert(NOTES[:1], vectors=[[1.0]]),
        lambda: notes.drift(),
        lambda: notes.model.encode(["red"]),
    ):
        with pytest.raises(VdshError, match=UNLEARNED):
            ask()
    assert len(notes) == 4


def test_near_duplicates_need_no_codes(notes):
    (group,) = notes.duplicates(similarity=0.5)
    assert group.keep == "copy" and [other[0] for other in group.others] == ["mars"]


def test_a_model_can_be_put_under_it(notes, fitted):
    notes.reindex(fitted)
    assert notes.info()["bits"] == fitted.n_bits
    code = np.frombuffer(bytes.fromhex(notes.find("mars").code), np.uint8)
    assert "mars" in ids(notes.within(code, 0))
    assert notes.check() == []
    with pytest.raises(VdshError, match="no earlier model"):
        notes.reindex()


def test_it_can_be_copied(notes, tmp_path):
    with open_store(tmp_path / "other") as other:
        copy_store(notes, other)
        assert ids(other.search("signing")) == ["keys"]


def test_it_comes_back_from_a_backup(tmp_path):
    with open_store(tmp_path / "notes") as store:
        store.upsert(NOTES)
        store.compact()
        store.back_up(tmp_path / "file")
    with restore_store(tmp_path / "file", tmp_path / "again") as again:
        assert ids(again.search("signing")) == ["keys"]


def test_opening_to_read_makes_nothing(new_place, tmp_path):
    with pytest.raises(MissingFileError, match="vdsh add"):
        open_store(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_a_model_that_is_given_is_not_put_under_it_unasked(notes, place, fitted):
    with pytest.raises(VdshError, match="store.learn"):
        open_store(place, fitted)


def test_it_is_served(tmp_path):
    with open_store(tmp_path / "notes") as store:
        store.upsert(NOTES)
    with TestClient(create_app(tmp_path / "notes"), base_url="http://127.0.0.1") as client:
        facts = client.get("/v1/info").json()
        assert facts["bits"] == 0 and facts["documents"] == 4
        body = {"text": "signing", "highlight": True}
        (hit,) = client.post("/v1/search", json=body).json()["hits"]
        assert hit["id"] == "keys" and hit["marks"]
        more = client.post("/v1/search", json={"id": "mars"}).json()["hits"]
        assert [one["id"] for one in more][:2] in (["mars", "copy"], ["copy", "mars"])
        for path in ("within", "encode", "explain"):
            body = {"texts": ["red"]} if path == "encode" else {"text": "red"}
            answer = client.post(f"/v1/{path}", json=body)
            assert answer.status_code == 422 and UNLEARNED in answer.json()["error"]
