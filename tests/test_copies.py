"""Documents with the very same text: people are shown the best of them, programs get them all."""

import asyncio
import json

import pytest
from fastapi.testclient import TestClient

from vdsh import Document, open_store
from vdsh.server.app import create_app
from vdsh.server.mcp import TOOLS
from vdsh.store.searching import MOST_SEEN, distinct

N_COPIES = 30
LICENCE = "permission is granted to use this software free of charge"


@pytest.fixture
def store(tmp_path):
    """A store of 30 copies of a licence, and 15 notes that have some of its words."""
    with open_store(tmp_path / "s") as opened:
        opened.upsert([Document(f"pkg{i:02}/copying", LICENCE) for i in range(N_COPIES)])
        opened.upsert([Document(f"note{i:02}", f"software number {i} " * i) for i in range(1, 16)])
        yield opened


def test_copies_are_counted_and_leave_the_order_of_the_rest(store):
    shown = distinct(lambda n: store.search("free software", n), 10)
    assert shown[0].text == LICENCE and shown[0].copies == N_COPIES - 1
    rest = [hit for hit in store.search("free software", 50) if hit.text != LICENCE]
    assert shown[1:] == rest[:9]
    assert {hit.text for hit in store.search("free software", 10)} == {LICENCE}  # as programs want


def test_what_is_said_of_the_query_stays(store):
    assert "softwaer" in distinct(lambda n: store.search("softwaer", n), 10).warning


def test_without_copies_a_search_is_asked_for_once(store):
    asked = []

    def ask(n):
        asked.append(n)
        return store.search("number", n)

    assert distinct(ask, 10) == store.search("number", 10)
    assert asked == [10]
    assert len(distinct(ask, 20)) == 15  # there are no more
    assert asked == [10, 20]


def test_thousands_of_copies_are_not_all_fetched(tmp_path):
    with open_store(tmp_path / "s") as store:
        store.upsert(Document(f"pkg{i:03}/copying", LICENCE) for i in range(MOST_SEEN + 50))
        (hit,) = distinct(lambda n: store.search("free software", n), 10)
    assert hit.copies == MOST_SEEN - 1


def test_the_command_line_shows_one_and_json_has_all(vdsh, store):
    lines = vdsh("search", store.path, "free", "software", "-k", 3).stdout.splitlines()
    assert len(lines) == 3
    assert f"({N_COPIES - 1} more like it)" in lines[0] and "copying" not in lines[1]
    found = vdsh("search", store.path, "free", "software", "-k", 3, "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in found] == [LICENCE] * 3
    assert not any("copies" in json.loads(line) for line in found)


def test_the_page_and_assistants_show_one_and_the_service_has_all(store):
    with TestClient(create_app(store.path), base_url="http://127.0.0.1:8000") as api:
        asked = {"text": "free software", "k": 3}
        shown = api.post("/v1/search", json=asked | {"highlight": True}).json()["hits"]
        assert [hit.get("copies") for hit in shown] == [N_COPIES - 1, None, None]
        plain = api.post("/v1/search", json=asked).json()["hits"]
        assert [hit["text"] for hit in plain] == [LICENCE] * 3
        text, facts = ask_tool(api.app, "search", query="free software", k=3)
        assert [hit.get("copies") for hit in facts["hits"]] == [N_COPIES - 1, None, None]
        assert f"copying  ({N_COPIES - 1} more like it)\n" in text
        _, facts = ask_tool(api.app, "more_like_this", id="pkg07/copying", k=3)
        assert [hit.get("copies") for hit in facts["hits"]] == [N_COPIES - 2, None, None]


def ask_tool(app, name, **arguments):
    run = TOOLS[name]
    body = run.__annotations__["body"](**arguments)
    return asyncio.run(run(body, app.state.services))
