"""The client against the real service, and against one that is slow, busy, broken or gone."""

import json
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain

import numpy as np
import pytest

from conftest import toy_corpus
from servers import free_port
from test_server_live import serving
from vdsh import Client, Document, VdshError, open_store
from vdsh.errors import EngineError, InputError
from vdsh.server import document_routes

TOKEN = "correct-horse-battery-staple"
LIMITS = ("--max-k", 50, "--max-batch", 7, "--max-body", 2000)


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("client") / "store"
    rows = enumerate(zip(*toy_corpus(), strict=True))
    with open_store(path, fitted) as opened:
        opened.upsert(Document(f"d{i}", text, (label,), {"n": i}) for i, (text, label) in rows)
    return path


@pytest.fixture(scope="module")
def url(folder):
    """The service as a user starts it, which takes little at a time."""
    with serving(folder, "--writable", *LIMITS, VDSH_TOKEN=TOKEN) as service:
        yield f"http://{service.host}:{service.port}"


@pytest.fixture
def client(url):
    with Client(url, token=TOKEN) as client:
        yield client


@pytest.fixture
def store(folder):
    with open_store(folder) as store:
        yield store


@pytest.mark.parametrize(
    "options",
    [{}, {"k": 3}, {"where": {"label": "sport"}}, {"rank": "distance"}, {"rank": "expected"}],
    ids=str,
)
@pytest.mark.parametrize("text", ["orbit moon", '"goal match" -coach frobnicate', "the", ""])
def test_a_search_gives_what_the_store_gives(client, store, text, options):
    asked, wanted = client.search(text, **options), store.search(text, **options)
    assert asked == wanted
    assert (asked.unknown, asked.warning) == (wanted.unknown, wanted.warning)


def test_codes_and_radii_give_what_the_store_gives(client, store):
    code = client.encode(["orbit moon"])[0]
    assert code.tolist() == store.model.encode(["orbit moon"])[0].tolist()
    assert client.search(code, 4) == store.search(code, 4)
    assert client.within("orbit moon", 2) == store.within("orbit moon", 2)
    assert client.within_at_most(code, 16, 5) == store.within_at_most(code, 16, 5)
    with pytest.raises(InputError, match="There are 80 documents within 16 bits.* gives 50 at mo"):
        client.within(code, 16)


def test_what_goes_through_all_documents_gives_what_the_store_gives(client, store):
    assert list(client) == list(store)
    assert [len(some) for some in client.documents(3)][:-1] == [3] * 26
    for asked, wanted in ((client.entries("d7"), store.entries("d7")), (client.entries("zz"), ())):
        asked, wanted = ([*chain(*(page[0] for page in pages))] for pages in (asked, wanted))
        assert asked == wanted
    ((_, codes), *_), (_, wanted) = client.entries(batch_size=100), next(store.entries())
    assert np.array_equal(codes, wanted[: len(codes)]) and len(codes) == 7  # what it gives at once
    assert client.count({"label": "sport"}) == store.count({"label": "sport"}) == 40
    with pytest.raises(VdshError, match="limit must be at most 7. Got 8"):
        client._connection.ask("GET", "/v1/documents?limit=8")
    with pytest.raises(VdshError, match="limit: .*greater than or equal to 1"):
        client._connection.ask("GET", "/v1/documents?limit=0")


def test_long_texts_come_a_few_at_a_time(client, store, monkeypatch):
    monkeypatch.setattr(document_routes, "PAGE", 100)
    whole = document_routes._page(store, "", 50)
    assert 1 < len(whole["documents"]) < 10
    assert whole["next"] == whole["documents"][-1]["id"]
    assert document_routes._page(store, "d99", 50)["next"] is None


def test_pages_of_two_models_are_not_given_out_together(client, monkeypatch):
    models = iter(["old", "new"])

    def ask(*_):
        return {"documents": [], "next": "a", "model": next(models)}

    list(client.entries())  # its limits are known from now on
    monkeypatch.setattr(client._connection, "ask", ask)
    with pytest.raises(VdshError, match="changed during the read"):
        list(client.entries())


def test_many_queries_are_sent_in_portions_that_the_service_takes(client, store):
    texts = [text for text, _ in zip(*toy_corpus(), strict=True)][:17]
    queries = [*texts, store.model.encode(texts[:1])[0], "x" * 1500, "y" * 1500]
    assert client.search_many(queries, k=6) == store.search_many(queries, k=6)
    assert client.search_many([]) == []
    assert np.array_equal(client.encode(texts), store.model.encode(texts))
    assert client.encode([]).shape == (0, 2)


def test_documents_are_written_read_and_deleted(client, store):
    odd = ["a/b c", "..", "?#%41", "ü", "\u3000"]
    documents = [Document(id, "orbit " * 50, None if id == "ü" else (), {"x": [1]}) for id in odd]
    written = []
    assert client.upsert(iter(documents * 3), progress=written.append) == 15
    assert written[-1] == 15 > written[0], "more than a body"
    assert [client.get(id) for id in odd] == documents == [store.get(id) for id in odd]
    assert client.find("ü") == store.find("ü")
    assert ("ü" in client, "v" in client, "" in client, 3 in client) == (True, False, False, False)
    assert len(client) == client.count() == 85
    assert client.delete([*odd, "v"]) == 5
    assert client.get("ü") is None
    assert client.labels() == ["space", "sport"]
    assert client.info()["limits"]["batch"] == 7


def test_a_client_shows_itself_without_its_token(client, url):
    assert repr(client) == f"<Client '{url}/v1', 80 documents, 16 bits>"
    assert "cannot be reached" in repr(Client(f"http://127.0.0.1:{free_port()}", wait=0))
    assert TOKEN not in str(vars(client))


def test_what_the_service_says_against_a_request_is_an_error(client, url):
    with pytest.raises(InputError, match="k must be at most 50. Got 51"):
        client.search("moon", k=51)
    with pytest.raises(InputError, match="The body must be at most 2,000 bytes"):
        client.upsert([Document("a", "x" * 3000)])
    with Client(f"{url}/v2", token=TOKEN) as lost:
        with pytest.raises(InputError, match="There is nothing at /v2/v1/documents/d0"):
            lost.get("d0")
    with Client(url) as stranger:
        with pytest.raises(EngineError, match="says: The token is missing or wrong"):
            stranger.info()


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda c: c.search("moon", k=0), "k must be"),
        (lambda c: c.search(3), "A query must be a text or a code"),
        (lambda c: c.search("moon\ud800"), "cannot be sent as JSON"),
        (lambda c: c.search("moon", where={"n": np.int64(3)}), "cannot be sent as JSON"),
        (lambda c: c.search_many("moon"), r"\['moon'\] is a list"),
        (lambda c: c.encode("moon"), r"\['moon'\] is a list"),
        (lambda c: c.delete("d1"), r"\['d1'\] is a list"),
        (lambda c: c.get(""), "An id must not be empty"),
        (lambda c: c.upsert([Document("a", "", None, {"n": float("nan")})]), "does not fit into J"),
        (lambda c: c.upsert([Document("a", "", "label")]), "must be a tuple of strings"),
        (lambda c: c.upsert(["a"]), "A store holds Documents"),
    ],
)
def test_wrong_arguments_are_refused_in_the_words_of_a_store(client, ask, sentence):
    with pytest.raises(InputError, match=sentence):
        ask(client)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://a", "http://", "http://a:x", "http://a b", "http://a/?q", 3]
)
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="url must be that of a service"):
        Client(url)


def test_names_tokens_and_seconds_are_checked():
    with pytest.raises(InputError, match="no name and password"):
        Client("http://ann:secret@a")
    for token in ("", "a b", "a\nX: y", 3):
        with pytest.raises(InputError, match="token must be"):
            Client("http://a", token=token)
    for seconds in (-1, "3", True, float("nan"), float("inf")):
        with pytest.raises(InputError, match="wait must be a number"):
            Client("http://a", wait=seconds)
    with pytest.raises(InputError, match="timeout must be"):
        Client("http://a", timeout=0)


COUNT = (200, {"count": 1})


@contextmanager
def answering(*answers, port=0, certificate=None):
    """A service that gives these answers, one a request; None hangs up. Yields url and paths."""
    left, paths = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            paths.append(self.path)
            answer = left.pop(0)
            if answer is None:
                self.close_connection = True
                return
            status, body, *headers = answer
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in [("Content-Length", len(content)), *headers]:
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(content)

        do_DELETE = do_POST

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if certificate:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


BUSY = (503, {"error": "The service is too busy."})


@pytest.mark.parametrize("trouble", [None, BUSY, (429, b"slow down"), (502, b"<html>")], ids=str)
def test_lost_and_busy_requests_are_sent_again(trouble):
    with answering(trouble, trouble, COUNT) as (url, paths), Client(url) as client:
        assert client.count() == 1
    assert len(paths) == 3


def test_a_length_is_asked_for_without_labels():
    """#31 B6: len(client) asked for all labels, twice in list(client)."""
    with answering(COUNT) as (url, paths), Client(url) as client:
        assert len(client) == 1
    assert paths == ["/v1/count"]


@pytest.mark.parametrize("sentence", ["There is no document 'a'.", "Kein Dokument."])
def test_a_missing_document_is_known_by_its_code(sentence):
    """#31 B6: it was known by how the English sentence began."""
    with answering((404, {"error": sentence, "code": "no_document"})) as (url, _):
        with Client(url) as client:
            assert client.delete(["a"]) == 0
    with answering((404, {"error": sentence, "code": "not_found"})) as (url, _):
        with Client(url) as client, pytest.raises(InputError, match=sentence):
            client.delete(["a"])


def test_a_connection_that_was_closed_meanwhile_is_opened_at_once():
    with answering(COUNT, None, COUNT) as (url, paths), Client(url, wait=0) as client:
        assert [client.count(), client.count()] == [1, 1]
    assert len(paths) == 3


def test_a_service_that_starts_later_is_waited_for():
    port = free_port()
    client, answers = Client(f"http://127.0.0.1:{port}", store="a b"), []
    asking = threading.Thread(target=lambda: answers.append(client.count()))
    asking.start()
    with answering(COUNT, port=port) as (_, paths):
        asking.join(10)
    client.close()
    assert answers == [1]
    assert paths == ["/v1/stores/a%20b/count"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "cannot be reached: Remote end closed"),
        (BUSY, "says: The service is too busy"),
        ((503, {"error": "Later."}, ("Retry-After", 100)), "says: Later"),
        ((504, {"error": "It took more than 30 s."}), "says: It took more"),
        ((200, b"<html>"), "status 200, but not as `vdsh serve` does"),
        ((302, b"", ("Location", "http://other/")), "status 302, but not as"),
        ((500, {"oops": 1}), "status 500, but not as"),
    ],
    ids=str,
)
def test_a_service_that_goes_on_so_is_an_error(answer, sentence):
    with answering(answer) as (url, paths), Client(url, token=TOKEN, wait=0) as client:
        with pytest.raises(EngineError, match=sentence):
            client.count()
    assert len(paths) == 1, "not asked again, and the token not sent elsewhere"


def test_a_slow_answer_is_not_asked_for_again():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(EngineError, match=r"gave no answer within 0\.05 s"):
            client.count()
        client.close()


def test_an_unknown_host_is_said_at_once():
    with pytest.raises(EngineError, match="cannot be reached"):
        Client("http://nowhere.invalid").count()


def test_a_certificate_must_be_trusted(tmp_path, monkeypatch):
    file = tmp_path / "both.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=a", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", "-"], check=True, capture_output=True,
    )  # fmt: skip
    file.write_bytes(made.stdout)
    with answering(COUNT, certificate=file) as (url, _):
        secure = url.replace("http", "https")
        with pytest.raises(VdshError, match="is not trusted: self.signed certificate"):
            Client(secure).count()
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with Client(secure) as client:
            assert client.count() == 1
