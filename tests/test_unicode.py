"""Characters of every category, wherever a person or a program may send them."""

import json
import os
import subprocess
import sys
import unicodedata
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from conftest import toy_corpus
from vdsh import Document, open_store
from vdsh.server.app import create_app

CATEGORIES = """Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf
    Cs Co Cn""".split()
# The combining acute accent; NUL and escape; marks of direction; half a surrogate pair, and so on.
KNOWN = {"Mn": "\u0301", "Me": "\u20dd", "Cc": "\0\x1b", "Cf": "\u202e\u2066\ufeff", "Cs": "\ud800"}
KNOWN |= {"Cn": "\u0378\uffff\U0010ffff", "Lu": "\u0130", "Lo": "\ufdfa", "So": "\U0001f600"}
LONG = {
    "accents": "\u0301" * 20_000,
    "stops": "." * 20_000,
    "quotes": '"' * 20_000,
    "dashes": " -" * 10_000,
    "one word": "a" * 20_000,
    "NULs": "\0" * 20_000,
    "marks of direction": "\u202e" * 20_000,
}


def characters(category):
    """Give those that are known to be odd, or else the middle one of its category."""
    if category in KNOWN:
        return [*KNOWN[category]]
    every = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) == category]
    return [every[len(every) // 2]]


def texts_with(character):
    return [
        character,
        f"hello {character}",
        f"moon{character}orbit",
        f'"moon {character}" -{character}',
    ]


def is_valid(text):
    return not any(unicodedata.category(character) == "Cs" for character in text)


@pytest.fixture(scope="module")
def place(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("unicode") / "store"
    with open_store(path, fitted) as store:
        store.upsert(Document(f"d{i}", text) for i, text in enumerate(toy_corpus()[0]))
    return path


@pytest.fixture(scope="module")
def api(place):
    app = create_app(place, writable=True)
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as opened:
        yield opened


def bodies_with(text):
    """Every call that takes a body, with a text in each of its places."""
    filters = [{text: text}, {"label": text}, {"id": {"in": [text]}}, [text], [f"{text}={text}"]]
    yield "/v1/search", {"text": text, "highlight": True, "unfinished": True, "k": 3}
    yield "/v1/search", {"text": text, "rank": "distance"}
    yield "/v1/search", {"text": text, "rank": "expected"}
    yield "/v1/search", {"text": "moon", "rank": text}
    yield "/v1/search", {"text": "moon", text: text}
    yield from (("/v1/search", {"text": "moon", "where": one, "k": 2}) for one in filters)
    yield from (("/v1/search", {field: text}) for field in ("id", "code"))
    yield "/v1/search_many", {"texts": [text, "moon", text], "k": 2}
    yield "/v1/within", {"text": text, "radius": 5, "highlight": True}
    yield "/v1/within", {"id": text}
    yield "/v1/count", {"where": filters[0]}
    yield "/v1/facets", {"where": filters[1]}
    yield "/v1/encode", {"texts": [text]}
    yield "/v1/explain", {"text": text, "other": text}
    yield "/v1/explain", {"id": text, "other_id": text}
    yield "/v1/documents", {"documents": [{"id": text, "text": "moon"}]}
    new = {"id": "new", "text": text, "labels": [text], "metadata": {"name": text}}
    yield "/v1/documents", {"documents": [new]}


def check_answer(answer, asked):
    assert answer.status_code < 500, (asked, answer.text[:300])
    if answer.status_code >= 400:
        assert answer.json()["error"].endswith((".", ")", "`")), (asked, answer.text[:300])
        assert len(answer.text) < 70_000


def check_service(api, text):
    kind = {"Content-Type": "application/json"}
    for path, body in bodies_with(text):
        answer = api.post(path, content=json.dumps(body), headers=kind)
        check_answer(answer, (path, ascii(body)[:200]))
        # A text without a known word has nothing to explain, which is an error of its own.
        if body.get("text") == text and "rank" not in body and path != "/v1/explain":
            assert answer.status_code == (200 if is_valid(text) else 422), (path, ascii(body)[:200])
    named = quote(text.encode("utf-8", "surrogatepass"), safe="")[:6000]
    for path in ("documents/", "documents?after=", "documents?limit=", "explain/bits/", "stores/"):
        check_answer(api.get(f"/v1/{path}{named}"), (path, ascii(text)[:50]))
    check_answer(api.delete(f"/v1/documents/{named}"), ascii(text)[:50])
    assert api.get(f"/page/{named}").status_code in (400, 404, 405)
    arguments = {"query": text, "store": text, "where": {text: text}}
    for given in ({"query": text}, arguments, {"id": text}):
        params = {"name": "search", "arguments": given}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = kind | {"Accept": "application/json, text/event-stream"}
        answer = api.post("/mcp", content=json.dumps(message), headers=accept)
        assert answer.status_code < 500 and "The tool failed" not in answer.text, ascii(text)[:50]


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_call_of_the_service_answers_every_category_of_characters(api, category):
    for character in characters(category):
        check_service(api, f"hello {character}")


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_search_answers_every_category_wherever_it_stands_in_the_text(api, category):
    kind = {"Content-Type": "application/json"}
    for character in characters(category):
        for text in texts_with(character):
            answer = api.post("/v1/search", content=json.dumps({"text": text}), headers=kind)
            assert answer.status_code == (200 if is_valid(text) else 422), ascii(text)


@pytest.mark.parametrize("name", LONG)
def test_every_call_of_the_service_answers_long_runs_of_one_character(api, name):
    check_service(api, LONG[name])


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_document_comes_back_as_it_was_written_or_is_refused(api, category):
    for text in map("moon {} orbit".format, characters(category)):
        body = {"documents": [{"id": "kept", "text": text, "metadata": {"name": text}}]}
        headers = {"Content-Type": "application/json"}
        answer = api.post("/v1/documents", content=json.dumps(body), headers=headers)
        assert answer.status_code == (200 if is_valid(text) else 422)
        if is_valid(text):
            found = api.get("/v1/documents/kept").json()
            assert (found["text"], found["metadata"]) == (text, {"name": text})


@pytest.mark.parametrize("category", [name for name in CATEGORIES if name != "Cs"])
def test_every_verb_that_takes_a_text_answers_every_category_of_characters(
    vdsh, place, model_folder, category
):
    """An exception of another kind than ours would come out of the fixture."""
    for character in characters(category):
        if character == "\0":  # no system passes it in an argument
            continue
        for text in texts_with(character):
            check_command(vdsh("search", place, "-k", 2, "--", text))
        lines = "\n".join(texts_with(character))
        check_command(vdsh("search", place, "-", "-k", 2, input=lines))
        check_command(vdsh("search", place, "--radius", 3, "--", f"hello {character}"))
        check_command(vdsh("search", place, "moon", "--where", f"label={character}"))
        check_command(vdsh("search", place, "moon", "--where", f"{character}=1"))
        check_command(vdsh("search", place, "--code", character))
        check_command(vdsh("search", place, "moon", "--rank", character))
        check_command(vdsh("delete", place, "--", f"x{character}"))
        check_command(vdsh("research", "explain", model_folder, "--", f"moon {character}"))


def check_command(done):
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode and "Usage:" not in done.stderr:
        assert len(done.stderr.strip().split("\n")) <= 2, done.stderr


@pytest.mark.posix("arguments are bytes")
def test_arguments_that_are_no_text_are_refused_with_a_line(place, tmp_path):
    odd = b"moon \xff\xc3"
    for words in (
        [b"search", os.fsencode(place), odd],
        [b"search", os.fsencode(place), b"moon", b"--where", b"label=" + odd],
        [b"search", odd, b"moon"],
        [b"delete", os.fsencode(place), odd],
        [b"info", odd],
        [b"add", os.fsencode(tmp_path / "new"), odd],
        [odd],
    ):
        command = [os.fsencode(sys.executable), b"-m", b"vdsh", *words]
        done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
        assert done.returncode in (0, 1, 2), words
        assert b"Traceback" not in done.stderr, words
