"""The service of a team: several stores, and tokens for reading and for writing (#20 item 6)."""

import json
import logging
import os
import pickle
import signal
import time

import pytest
from fastapi.testclient import TestClient

from vdsh import Document, open_store
from vdsh.errors import VdshError
from vdsh.server import tokens
from vdsh.server.app import create_app
from vdsh.server.run import JsonLines, supervise
from vdsh.server.service import name_stores
from vdsh.server.tokens import one_token, read_tokens

READER, WRITER, OTHER = "reader-of-the-news-1", "writer-of-the-news-2", "somebody-else-again-3"


def client(stores, **options):
    app = create_app(stores, **options)
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.fixture
def stores(fitted, tmp_path):
    for name, text in (("news", "moon orbit"), ("mail", "goal match")):
        with open_store(tmp_path / name, fitted) as opened:
            opened.upsert([Document(f"{name}-{i}", text, (name,), {}) for i in range(3)])
    return {"news": tmp_path / "news", "post": tmp_path / "mail"}


# Several stores


def test_each_store_is_asked_by_its_name_and_the_first_without(stores):
    with client(stores, writable=True) as api:
        found = {}
        for prefix in ("/v1", "/v1/stores/news", "/v1/stores/post"):
            answer = api.post(f"{prefix}/search", json={"text": "moon goal", "k": 9})
            found[prefix] = {hit["id"].split("-")[0] for hit in answer.json()["hits"]}
        assert list(found.values()) == [{"news"}, {"news"}, {"mail"}]
        body = {"documents": [{"id": "a/b", "text": "goal"}]}
        assert api.post("/v1/stores/post/documents", json=body).json() == {"written": 1}
        assert api.get("/v1/stores/post/documents/a%2Fb").status_code == 200
        assert api.get("/v1/documents/a%2Fb").status_code == 404
        facts = api.get("/v1/stores/post/info").json()
        assert (facts["store"], facts["stores"], facts["documents"]) == (
            "post",
            ["news", "post"],
            4,
        )
        assert facts["labels"] == ["mail"]
        listed = {"bits": 16, "model": "vdsh-s"}
        assert api.get("/v1/stores").json() == {
            "stores": [{"name": "news", "documents": 3} | listed,
                       {"name": "post", "documents": 4} | listed]
        }  # fmt: skip
        answer = api.get("/v1/stores/none/info")
        assert (answer.status_code, answer.json()["error"]) == (
            404, "There is no store 'none'. GET /v1/stores lists those there are."
        )  # fmt: skip
        answer = api.get("/v1/stores/post/nothing")
        assert answer.json()["error"] == "There is nothing at /v1/stores/post/nothing. See /docs."
        numbers = api.get("/metrics").text.splitlines()
        assert 'vdsh_documents{store="post"} 4.0' in numbers
        path = 'path="/v1/stores/post/documents/{id:any}"'
        assert f'vdsh_requests_total{{method="GET",{path},status="200"}} 1.0' in numbers


def test_a_store_that_was_taken_away_leaves_the_others_alone(stores):
    with client(stores) as api:
        stores["post"].rename(stores["post"].with_name("away"))
        assert "removed or replaced" in api.get("/ready").json()["error"]
        first, second = api.get("/v1/stores").json()["stores"]
        assert first["documents"] == 3 and "removed or replaced" in second["trouble"]
        assert api.get("/v1/info").status_code == 200


def test_stores_are_called_as_their_folders_unless_told_otherwise():
    url = "postgresql://ann:secret@db/news?table=posts"
    assert list(name_stores(["a/news", url, "milvus-lite:x/y.db"])) == ["news", "posts", "y"]
    assert list(name_stores(["Café store", "/"], ["all=/"])) == ["Caf-store", "all"]
    for stores, names, words in (
        (["a/news", "b/news"], [], "Two stores are called 'news'"),
        (["a", "b"], ["b=a"], "Two stores are called 'b'"),
        (["a"], ["news"], "--as takes NAME=STORE"),
        (["a"], ["ne/ws=a"], "--as takes NAME=STORE"),
        (["a"], ["news=b"], "--as takes NAME=STORE"),
        (["a"], ["x=a", "y=a"], "two names"),
    ):
        with pytest.raises(VdshError, match=words):
            name_stores(stores, names)
    with pytest.raises(VdshError, match="name must be"):
        create_app({"a/b": "store"})
    with pytest.raises(VdshError, match="no store"):
        create_app({})


# Tokens


def write(file, *lines, rights=0o600):
    file.write_text("\n".join(lines))
    file.chmod(rights)
    return str(file)


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_a_token_reads_or_writes_and_its_name_is_in_the_log(stores, tmp_path, caplog):
    caplog.set_level(logging.INFO, "vdsh.access")
    file = write(tmp_path / "tokens", "# who   may   what", "", f"ann read {READER}",
                 f"bob write {WRITER}")  # fmt: skip
    with client(stores, token=read_tokens(file), writable=True, logged=True) as api:
        body = {"documents": [{"id": "n", "text": "moon"}]}
        answer = api.post("/v1/documents", json=body, headers=bearer(READER))
        assert answer.status_code == 403
        assert answer.json()["error"].startswith("The token 'ann' is for reading.")
        assert api.delete("/v1/documents/news-1", headers=bearer(READER)).status_code == 403
        assert api.get("/v1/info", headers=bearer(READER)).json()["writable"] is False
        assert api.get("/v1/info", headers=bearer(WRITER)).json()["writable"] is True
        assert api.post("/v1/documents", json=body, headers=bearer(WRITER)).status_code == 200
        line = JsonLines().format(caplog.records[-1])
        assert json.loads(line)["token"] == "bob" and WRITER not in line
        answer = api.get("/v1/info", headers=bearer(OTHER))
        assert answer.status_code == 401
        assert api.get("/v1/stores/post/info").status_code == 401
        assert api.get("/v1/stores/none/info").status_code == 401  # nor which stores there are


def test_the_file_of_tokens_may_change_and_a_bad_one_changes_nothing(
    stores, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(tokens, "LOOK_AGAIN", 0.0)
    caplog.set_level(logging.INFO, "vdsh.server")
    file = tmp_path / "tokens"
    write(file, f"ann read {READER}")
    with client(stores, token=read_tokens(str(file))) as api:
        asked = lambda token: api.get("/v1/info", headers=bearer(token)).status_code  # noqa: E731
        assert (asked(READER), asked(OTHER)) == (200, 401)
        write(file, f"ann read {OTHER}", f"bob write {WRITER}")
        assert (asked(READER), asked(OTHER)) == (401, 200)
        assert "Tokens were read again: 2, of which 1 may write." in caplog.text
        caplog.clear()
        write(file, f"ann raed {READER}")
        assert (asked(READER), asked(OTHER), asked(OTHER)) == (401, 200, 200)
        assert caplog.text.count("The tokens of before stay") == 1  # said once
        assert READER not in caplog.text
        file.unlink()
        assert asked(OTHER) == 200
        assert "No file" in caplog.text
        os.symlink(write(tmp_path / "new", f"ann read {READER}"), file)
        assert (asked(READER), asked(OTHER)) == (200, 401)


def test_the_process_that_watches_workers_looks_at_the_file_too():
    """A worker that replaces another one gets the tokens of now, also where the file is garbage."""
    looked = []

    def tick():
        looked.append(True)
        os.kill(os.getpid(), signal.SIGTERM)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert supervise(time.sleep, 1, [], tick)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert looked
    known = one_token(READER)
    assert pickle.loads(pickle.dumps(known)).known == known.known  # as a worker gets them


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([f"ann read {READER} 2027-01-31"], "line 1, must hold a token: NAME read|write"),
        (["# x", f"ann admin {READER}"], "line 2, must hold a token: NAME read|write"),
        (["ann read short"], "line 1, must hold a token: at least 16"),
        ([f"ann read {READER}", f"bob write {READER}"], "line 2, has a token that is there"),
        ([READER, WRITER], "line 1, must hold a token: NAME read|write"),
    ],
)
def test_a_line_that_is_no_token_is_named_and_not_shown(tmp_path, lines, words):
    with pytest.raises(VdshError) as error:
        read_tokens(write(tmp_path / "tokens", *lines))
    assert words in str(error.value)
    assert READER not in str(error.value) and WRITER not in str(error.value)


def test_a_file_of_tokens_must_be_closed_to_others(tmp_path):
    for line in (f"ann read {READER}", READER):  # #31 B6: one token for all was not looked at
        for rights in (0o644, 0o602, 0o620):
            said = f"open to others .* rights are {rights:o}. Run: chmod"
            with pytest.raises(VdshError, match=said):
                read_tokens(write(tmp_path / "tokens", line, rights=rights))
    write(tmp_path / "tokens", READER)
    (tmp_path / "tokens").write_bytes(b"\xff\xfe")
    with pytest.raises(VdshError, match="Cannot read a token"):
        read_tokens(str(tmp_path / "tokens"))
    with pytest.raises(VdshError, match="Cannot read a token"):
        read_tokens(str(tmp_path))
