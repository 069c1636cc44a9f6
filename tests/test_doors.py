"""What no door lets in: a store, a body and a file refuse the same documents (#31)."""

import itertools
import json

import pytest
from fastapi.testclient import TestClient

from servers import serving
from vdsh import Document, open_store, read_documents
from vdsh.errors import InputError
from vdsh.server.app import create_app


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def place(tmp_path, fitted):
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document("a", "moon orbit")])
    return tmp_path / "store"


@pytest.fixture(params=["store", "body", "file"])
def write(request, place, tmp_path):
    """Write one document through a door; return the sentence that refuses it, or ''."""

    def to_store(**fields):
        with open_store(place) as store:
            store.upsert([Document(fields["id"], "moon", None, fields.get("metadata", {}))])

    def to_file(id, metadata=None):
        (tmp_path / "d.jsonl").write_text(json.dumps({"id": id, "text": "moon"} | (metadata or {})))
        list(read_documents(tmp_path / "d.jsonl"))

    def to_service(**fields):
        body = {"documents": [{"text": "moon"} | fields]}
        with TestClient(create_app(place, writable=True), base_url="http://127.0.0.1:8000") as api:
            answer = api.post("/v1/documents", json=body)
            assert answer.status_code in (200, 422)
            found = api.post("/v1/search", json={"text": "moon"})
            assert found.status_code == 200
        if answer.status_code == 422:
            raise InputError(answer.json()["error"])

    door = {"store": to_store, "file": to_file}.get(request.param, to_service)

    def write(**fields):
        try:
            door(**fields)
        except InputError as error:
            return str(error)
        return ""

    return write


def test_metadata_is_nested_100_levels_at_most(write):  # #31 A5
    for levels in (101, 900):
        assert "is nested deeper than 100 levels" in write(id="b", metadata={"x": nested(levels)})
    assert write(id="b", metadata={"x": nested(100)}) == ""


@pytest.mark.parametrize("id", ["a\nb", "a\rb", "\x1b[2J", "\x9b"])
def test_ids_have_no_control_characters(write, id):  # #31 A4
    assert "An id must have no line breaks and no other control characters" in write(id=id)


@pytest.mark.parametrize("id", [True, ["a"], 1.5, {"a": 1}])
def test_ids_are_strings_or_whole_numbers(write, id):  # #31 B6
    assert "string" in write(id=id)


DEEP = ['{"x":' + levels * "[" + "1" + levels * "]" + "}" for levels in (150, 950, 3000)]
REFUSED = [f'{{"id": "b", "text": "moon", "metadata": {metadata}}}' for metadata in DEEP]
REFUSED += [
    json.dumps({"id": id, "text": "moon"})
    for id in ("a\nb", "\x1b[2J", "\x9b", ["a"], True, 1.5, {"a": 1}, None, "")
]


def test_every_door_of_a_running_service_refuses_them_and_writes_nothing(fitted, tmp_path):
    """#31 A4, A5, B6: with a sentence and a code; what comes along is not written either."""
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document("a", "moon orbit")])
    good, kind = '{"id": "good", "text": "moon"}', {"Content-Type": "application/json"}
    with serving(tmp_path / "store", "--writable", "--quiet") as service:
        for at in ("/v1/documents", "/v1/stores/store/documents"):
            for document in REFUSED:
                body = f'{{"documents": [{good}, {document}]}}'
                status, answer = service.send("POST", at, body, kind)
                assert (status, answer["code"]) == (422, "invalid"), document[:60]
                assert answer["error"].endswith(".") and len(answer["error"]) < 500
        ids = (["a"], True, 1.5, {"a": 1}, "")
        asked = [("search", "id"), ("within", "id"), ("explain", "id")]
        for (verb, field), id in itertools.product([*asked, ("explain", "other_id")], ids):
            status, answer = service.ask("POST", f"/v1/{verb}", {field: id})
            assert (status, answer["code"]) == (422, "invalid"), (verb, id)
        assert service.ask("POST", "/v1/count", {}) == (200, {"count": 1})
        assert service.ask("POST", "/v1/search", {"text": "moon"})[0] == 200
