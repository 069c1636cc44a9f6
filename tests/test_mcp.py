"""Stores as tools of an assistant: the SDK's own client over pipes and HTTP, and raw messages."""

import asyncio
import json
import os
import random
import subprocess
import sys
from contextlib import asynccontextmanager
from threading import Thread

import httpx2
import mcp
import pytest
from fastapi.testclient import TestClient
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from conftest import toy_corpus
from vdsh import Document, open_store
from vdsh.server.app import create_app
from vdsh.server.tokens import read_tokens

TOKEN = "correct-horse-battery-staple"
READING = ["search", "get", "more_like_this", "list_stores"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def store(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("mcp") / "notes"
    texts, labels = toy_corpus()
    with open_store(path, fitted) as opened:
        opened.upsert(
            Document(f"d{i}", text, (label,), {"year": 1990 + i % 5})
            for i, (text, label) in enumerate(zip(texts, labels, strict=True))
        )
        opened.upsert([Document("long", "moon " * 10_000, None, {"note": "n" * 5000, "page": 3})])
    return path


@pytest.fixture(scope="module")
def service(store):
    with TestClient(create_app(store), base_url="http://127.0.0.1:8000") as service:
        yield service


def started(*words):
    arguments = ["-m", "vdsh", "mcp", *map(str, words)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))


def talk(server, conversation, *, mode="auto"):
    async def speak():
        async with mcp.Client(server, read_timeout_seconds=60, mode=mode) as client:
            return await conversation(client)

    return asyncio.run(speak())


@asynccontextmanager
async def over_http(service, **headers):
    transport = httpx2.ASGITransport(service.app)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, transport=transport) as client,
        streamable_http_client("http://127.0.0.1:8000/mcp", http_client=client) as streams,
    ):
        yield streams


async def ask(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return answer


async def sentence(client, tool, **arguments):
    """Return what an error says."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error and len(answer.content) == 1 and answer.structured_content is None
    assert "Traceback" not in answer.content[0].text
    return answer.content[0].text


async def read_everything(client):
    """Use each of the tools that read."""
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == READING
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    where = {"label": "space", "year": {">=": 1992}}
    found = await ask(client, "search", query="moon crew", k=3, where=where)
    hits = found.structured_content["hits"]
    assert len(hits) == 3 and all(hit["labels"] == ["space"] for hit in hits)
    assert all(hit["metadata"]["year"] >= 1992 for hit in hits)
    assert hits[0]["id"] in found.content[0].text and "moon" in found.content[0].text
    like = (await ask(client, "more_like_this", id="d0", k=4)).structured_content["hits"]
    assert len(like) == 4 and "d0" not in [hit["id"] for hit in like]
    (known,) = (await ask(client, "list_stores")).structured_content["stores"]
    assert known["documents"] == 81 and known["labels"] == ["space", "sport"]
    assert known["fields"] == ["note", "page", "year"]
    return known["name"]


async def read_in_pieces(client):
    """Read a long text to its end; the long field of its metadata is left out."""
    pieces, offset = [], 0
    while offset is not None:
        answer = await ask(client, "get", id="long", offset=offset, length=20_000)
        fields = answer.structured_content
        assert fields["metadata"] == {"page": 3} and len(answer.content[0].text) < 20_100
        pieces.append(fields["text"])
        offset = fields.get("next_offset")
    return "".join(pieces)


async def make_mistakes(client):
    """Ask wrongly in many ways."""
    assert await sentence(client, "get", id="nix") == "There is no document 'nix'."
    assert await sentence(client, "search") == "The field 'query' is missing."
    assert "less than or equal to 50" in await sentence(client, "search", query="a", k=51)
    assert "at most 200,000 characters" in await sentence(client, "search", query="a" * 200_001)
    assert await sentence(client, "search", query="a", store="mail") == (
        "There is no store 'mail'. There are: notes."
    )
    assert "No document has" in await sentence(client, "search", query="a", where={"nix": 1})
    assert "only reads" in await sentence(client, "delete", ids=["d0"])
    with pytest.raises(mcp.MCPError, match="no tool 'drop'"):
        await client.call_tool("drop", {})


def test_an_assistant_reads_over_pipes_and_changes_nothing(store):
    async def all_of_it(client):
        await make_mistakes(client)
        return await read_everything(client), await read_in_pieces(client)

    assert talk(started(store), all_of_it) == ("notes", "moon " * 10_000)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_assistant_reads_over_http_beside_the_service(service, mode):
    async def all_of_it(client):
        await make_mistakes(client)
        return await read_everything(client)

    assert talk(over_http(service), all_of_it, mode=mode) == "notes"


def test_a_writable_server_adds_and_deletes(fitted, tmp_path):
    for name in ("one", "two"):
        open_store(tmp_path / name, fitted).close()

    async def write(client):
        assert len((await client.list_tools()).tools) == len(READING) + 2
        documents = [{"id": "a", "text": "moon crew", "labels": ["space"]}]
        written = await ask(client, "add", documents=documents, store="two")
        assert written.structured_content == {"written": 1}
        assert "metadata" in await sentence(
            client, "add", documents=[documents[0] | {"metadata": 1}]
        )
        found = await ask(client, "search", query="moon", store="two")
        assert [hit["id"] for hit in found.structured_content["hits"]] == ["a"]
        empty = await ask(client, "search", query="moon", store="one")
        assert empty.structured_content["hits"] == [] and "found" in empty.content[0].text
        gone = await ask(client, "delete", ids=["a", "b"], store="two")
        assert gone.structured_content == {"deleted": 1}

    talk(started(tmp_path / "one", tmp_path / "two", "--writable"), write)


def test_http_asks_for_a_token_and_heeds_its_rights(store, tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"anna read {TOKEN}\n")
    file.chmod(0o600)

    async def look(client):
        assert [tool.name for tool in (await client.list_tools()).tools] == READING
        assert "for reading" in await sentence(client, "delete", ids=["d0"])

    app = create_app(store, writable=True, token=read_tokens(str(file)))
    with TestClient(app, base_url="http://127.0.0.1:8000") as service:
        assert service.post("/mcp", json={}).status_code == 401
        talk(over_http(service, Authorization=f"Bearer {TOKEN}"), look)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 400),
        ({"Content-Type": "text/plain"}, 415),
        ({"X-Size": "5000000"}, 413),
        ({}, 200),
    ],
)
def test_http_refuses_other_sites_hosts_and_kinds(service, headers, status):
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    usual = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    content = json.dumps(message) + " " * int(headers.get("X-Size", 0))
    answer = service.post("/mcp", content=content, headers=usual | headers)
    assert answer.status_code == status


def test_http_takes_messages_by_post_only(service):
    assert service.get("/mcp").status_code == 405


def test_a_store_that_is_not_there_is_a_sentence(tmp_path):
    words = [sys.executable, "-m", "vdsh", "mcp", str(tmp_path / "nix")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, input="")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1


def answers_to(store, lines):
    """Send lines to `vdsh mcp` and then a ping; give the answers before the ping's."""
    words = [sys.executable, "-m", "vdsh", "mcp", str(store)]
    hello = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": HELLO}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    last = {"jsonrpc": "2.0", "id": "last", "method": "ping"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        begun = [json.dumps(hello).encode(), json.dumps(ready).encode()]
        text = b"\n".join([*begun, *lines, json.dumps(last).encode(), b""])
        Thread(target=lambda: (process.stdin.write(text), process.stdin.flush())).start()
        answers = []
        while not answers or answers[-1].get("id") != "last":
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == b""
    return [one for one in answers if one["id"] not in ("first", "last")]


def call(id, query):
    """A search as a line; the query is written as JSON already."""
    params = b'{"name": "search", "arguments": {"query": "%s"}}' % query
    return b'{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": %s}' % (id, params)


NOT_JSON = [b"nonsense", b"{", b"[" * 20_000, b'{"jsonrpc": "2.0", "id": 1,', b"\xff", b"\x00"]
NOT_REQUESTS = [b"[]", b"3", b"null", b'"text"', b'{"jsonrpc": "2.0", "id": {}}']


@pytest.mark.parametrize(("lines", "code"), [(NOT_JSON, -32700), (NOT_REQUESTS, -32600)])
def test_a_line_that_is_no_message_is_answered_with_an_error(store, lines, code):
    answers = answers_to(store, lines)
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(None, code)] * len(lines)
    assert all(one["error"]["message"].endswith(".") for one in answers)


@pytest.mark.parametrize("query", [rb"\ud800 moon", rb"moon \udfff", rb"\udc00\ud800"])
def test_half_a_surrogate_pair_is_an_error_for_the_request_that_has_it(store, query):
    answers = answers_to(store, [call(b"7", query), call(b'"seven"', query)])
    assert [(one["id"], one["error"]["code"]) for one in answers] == [
        (7, -32700),
        ("seven", -32700),
    ]


def test_a_wrong_envelope_is_an_error_for_its_id_and_an_empty_line_is_none(store):
    lines = [b'{"id": 4}', b'{"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": 3}']
    lines += [b'{"jsonrpc": "1.0", "id": 6, "method": "ping"}', b"", b"   "]
    answers = answers_to(store, lines)
    assert [(one["id"], one["error"]["code"]) for one in answers] == [
        (4, -32600),
        (5, -32600),
        (6, -32600),
    ]


@pytest.mark.parametrize("content", [*NOT_JSON, *NOT_REQUESTS, call(b"7", rb"\ud800 moon")])
def test_http_answers_what_is_no_message_with_an_error_too(service, content):
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = service.post("/mcp", content=content, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32700, -32600, -32602)


def fuzzed(n, seed):
    """Make messages: broken JSON, wrong envelopes, and tools with arguments of any kind."""
    rng = random.Random(seed)
    names = [*READING, "add", "delete", "nix", "", "x" * 5000]
    keys = "query k where store id offset length documents ids text nix _meta".split()
    methods = "tools/call tools/list ping nix resources/read initialize logging/setLevel".split()

    def value(depth=0):
        some = [None, True, -1, 0, 3, 2**70, 1e308, "", "moon", "\x00", "é\ud7ff", "d0", '"', "-"]
        if depth > 3 or rng.random() < 0.6:
            return rng.choice(some)
        if rng.random() < 0.5:
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        names = [*keys, "label", ">=", "or", "not"]
        return {rng.choice(names): value(depth + 1) for _ in range(rng.randrange(4))}

    for i in range(n):
        arguments = {rng.choice(keys): value() for _ in range(rng.randrange(5))}
        params = {"name": rng.choice(names), "arguments": arguments}
        whole = {"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params}
        kind = rng.randrange(8)
        if kind == 0:
            line = json.dumps(whole)[: rng.randrange(60)]
        elif kind == 1:
            line = json.dumps(value())
        elif kind == 2:
            line = json.dumps(whole | {rng.choice(["id", "method", "params", "jsonrpc"]): value()})
        elif kind == 3:
            line = json.dumps(whole | {"method": rng.choice(methods), "params": value()})
        elif kind == 4 and i % 3 == 0:
            line = "[" * 20_000
        else:
            line = json.dumps(whole)
        yield line.replace("\n", " ")


def check_fuzzed(store, n):
    """Send messages and then a search, which must be answered; nothing may have failed inside."""
    last = {"name": "search", "arguments": {"query": "moon crew", "k": 1}}
    messages = [
        json.dumps({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": HELLO}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        *fuzzed(n, seed=n),
    ]
    words = [sys.executable, "-m", "vdsh", "mcp", str(store)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        asked = json.dumps({"jsonrpc": "2.0", "id": "end", "method": "tools/call", "params": last})
        text = "\n".join([*messages, asked, ""])
        Thread(target=lambda: (process.stdin.write(text), process.stdin.flush())).start()
        answers = []
        while not answers or answers[-1].get("id") != "end":
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest, errors = process.stdout.read(), process.stderr.read()
    answers += map(json.loads, rest.splitlines())
    assert process.returncode == 0
    assert "Traceback" not in errors and "failed" not in errors, errors
    assert not [one for one in answers if "The tool failed" in json.dumps(one)]
    ended = next(one for one in answers if one.get("id") == "end")
    assert len(ended["result"]["structuredContent"]["hits"]) == 1
    return len(answers)


def test_fuzzed_messages_are_answered(store):
    assert check_fuzzed(store, 60) > 20


@pytest.mark.slow
def test_a_thousand_fuzzed_messages_are_answered(store):
    assert check_fuzzed(store, 1000) > 400
