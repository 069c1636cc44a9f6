"""The service as a user starts it: real processes, real sockets, slow clients, killed workers."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from conftest import toy_corpus
from servers import serving
from vdsh import Document, open_store
from vdsh.errors import VdshError
from vdsh.server.connections import MOST_BYTES, MOST_REQUESTS
from vdsh.server.metrics import FOLDER
from vdsh.server.run import check_tls

pytestmark = pytest.mark.linux("finds the workers of a service in /proc")
TOKEN = "correct-horse-battery-staple"
SECONDS = 3  # what clients are given here to send a request


@pytest.fixture(scope="module")
def store(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "store"
    texts, labels = toy_corpus()
    with open_store(path, fitted) as opened:
        opened.upsert(
            Document(f"d{i}", text, (label,), {})
            for i, (text, label) in enumerate(zip(texts, labels, strict=True))
        )
    return path


@pytest.fixture(scope="module")
def pair(store):
    """Two workers that write, with little patience for slow clients."""
    with serving(store, "--workers", 2, "--writable", "--client-timeout", SECONDS) as service:
        wait_for(lambda: len(service.workers()) == 2)
        assert service.ask("GET", "/ready") == (200, {"status": "ok"})
        yield service


def head(path, length, *lines):
    rows = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*rows, f"Content-Length: {length}", *lines, "", ""]).encode()


def read_all(connection):
    parts = []
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_a_client_that_does_not_send_its_body_is_told_so(pair):
    with pair.connect() as connection:
        connection.sendall(head("/v1/search", 100) + b'{"text"')
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'{"error":"The body did not arrive within 3 s.","code":"request_timeout"}' in answer


def test_a_client_that_sends_nothing_or_half_a_head_is_let_go(pair):
    for beginning in (b"", b"POST /v1/search HTTP/1.1\r\nHost: loc"):
        with pair.connect() as connection:
            connection.sendall(beginning)
            assert read_all(connection) == b""


def test_a_client_that_drips_its_head_gets_no_more_time(pair):
    with pair.connect() as connection, pytest.raises(ConnectionError):
        for byte in b"GET /health HTTP/1.1\r\nX-Long: " + b"x" * 300:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)


def test_a_huge_body_is_refused_before_it_is_read(pair):
    with pair.connect() as connection:
        connection.sendall(head("/v1/search", 10**12))
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    body = json.dumps({"texts": ["x" * 2**24]}).encode()
    with pair.connect() as connection:
        connection.sendall(head("/v1/encode", len(body)) + body)
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
FLOODS = {
    "many": b"".join(b"X-%d: y\r\n" % i for i in range(5000)),
    "long": b"X-Long: " + b"x" * 2**20,
    "path": b"",
    "trailers": b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Long: " + b"x" * 2**20,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_head_without_end_is_refused_before_it_is_gathered(pair, flood):
    """#16 B2: 300 MB of headers took 3.1 GB, before the token was looked at."""
    path = b"/" + b"x" * (2**20 if flood == "path" else 6)
    with pair.connect() as connection:
        with suppress(ConnectionError):
            method = b"POST " if flood == "trailers" else b"GET "
            lines = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(method + path + lines + FLOODS[flood])
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"The head of a request must be at most 65,536 bytes with 100 headers."' in answer
    assert b'"code":"head_too_large"' in answer


def head_of(size, shape):
    """A whole request whose head has so many bytes, most of them in one place."""
    line, host, end = b"GET /health HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r\n\r\n"
    before, after = {
        "value": (line + host + b"X: ", end),
        "name": (line + host + b"X", b": x" + end),
        "address": (b"GET /health?x=", b" HTTP/1.1\r\n" + host + b"\r\n"),
        "headers": (line + host, b"\r\n"),
    }[shape]
    room = size - len(before) - len(after)
    if shape == "headers":  # 90 of them, the last of which fills the rest
        lines = [b"X-%02d: " % i + b"x" * (room // 100) + b"\r\n" for i in range(89)]
        rest = room - sum(map(len, lines)) - len(b"X-99: \r\n")
        return before + b"".join(lines) + b"X-99: " + b"x" * rest + b"\r\n" + after
    return before + b"x" * room + after


@pytest.mark.parametrize("shape", ["value", "name", "address", "headers"])
def test_the_largest_head_is_answered_and_a_byte_more_is_refused(pair, shape):
    for size, status in ((MOST_BYTES, b"200"), (MOST_BYTES + 1, b"431"), (100_000, b"431")):
        assert statuses_of(pair, head_of(size, shape)) == [status], size


@pytest.mark.parametrize("shape", ["value", "address"])
def test_requests_sent_before_a_head_that_is_too_large_are_answered(pair, shape):
    ahead = [b"200"] * 3
    assert statuses_of(pair, HEALTH * 3 + head_of(MOST_BYTES, shape), 4) == [*ahead, b"200"]
    for size in (MOST_BYTES + 1, 100_000):
        answers = statuses_of(pair, HEALTH * 3 + head_of(size, shape), 4)
        # Where they were answered before it was read, it has an answer of its own.
        assert answers in (ahead, [*ahead, b"431"])


def statuses_of(service, requests, most=1):
    """Send requests; give the statuses until there are so many, or the service hangs up."""
    answers = b""
    with service.connect() as connection, suppress(ConnectionError):
        connection.sendall(requests)
        while answers.count(b"HTTP/1.1 ") < most and (some := connection.recv(65536)):
            answers += some
    return re.findall(rb"HTTP/1\.1 (\d+)", answers)


def test_blanks_around_a_header_count_too(pair):
    request = head_of(1000, "value").replace(b"X: ", b"X: " + b" " * 100_000)
    with pair.connect() as connection:
        with suppress(ConnectionError):
            connection.sendall(request)
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_a_request_that_is_cut_is_not_carried_out(pair):
    body = b'{"documents": [{"id": "cut", "text": "moon"}]}'
    with pair.connect() as connection:
        connection.sendall(head("/v1/documents", 100) + body)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""
    wait_for(lambda: b'"status":400' in Path(f"/proc/self/fd/{pair.log.fileno()}").read_bytes())
    assert pair.ask("GET", "/v1/documents/cut")[0] == 404


def test_a_body_in_small_pieces_is_no_flood(pair):
    body = json.dumps({"texts": ["moon " * 10_000]}).encode()
    pieces = b"".join(b"4\r\n" + body[i : i + 4] + b"\r\n" for i in range(0, len(body) // 4 * 4, 4))
    rest = body[len(body) // 4 * 4 :]
    last = b"%x\r\n" % len(rest) + rest + b"\r\n" if rest else b""
    with pair.connect() as connection:
        lines = b"POST /v1/encode HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        lines += b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(lines + pieces + last + b"0\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def memory(service):
    """The most megabytes that each worker had since the last look, added up."""
    status = [Path(f"/proc/{worker}/status").read_text() for worker in service.workers()]
    for worker in service.workers():
        Path(f"/proc/{worker}/clear_refs").write_text("5")
    return sum(int(re.search(r"VmHWM:\s+(\d+)", one)[1]) for one in status) / 1024


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_on_an_open_path_costs_no_memory(pair, method):
    """#31 B1: 200 x GET /health with 16 MiB took 4 GB, without a token."""
    before = memory(pair)
    lines = head("/health", 2**22).replace(b"POST", method.encode())
    with ExitStack() as stack:
        clients = [stack.enter_context(pair.connect()) for _ in range(40)]
        for client in clients:
            client.sendall(lines + bytes(2**22 - 1))
        for client in clients:
            status = b"200" if method == "GET" else b"405"
            assert client.recv(65536).startswith(b"HTTP/1.1 " + status)
    assert memory(pair) - before < 60, "160 MB were sent"


def test_requests_sent_ahead_are_bounded(pair):
    """#31 B1: one connection that sent 42 MiB of GET /health took 2.5 GB."""
    before = memory(pair)
    with pair.connect() as connection:
        reading = Thread(target=read_all, args=(connection,))
        reading.start()
        with suppress(OSError):
            connection.sendall(HEALTH * 200_000)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        reading.join()
    with pair.connect() as connection:
        connection.sendall(HEALTH * 40)
        answers = b""
        while answers.count(b'{"status":"ok"}') < 40:
            answers += connection.recv(65536)
    assert memory(pair) - before < 60, "8 MB were sent"


def test_trailers_without_end_leave_no_traceback(pair):
    """#31 B6: 431 during a body logged one."""
    for lines in (head("/v1/search", 0), b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        lines = lines.replace(b"Content-Length: 0\r\n", b"")[:-2]
        with pair.connect() as connection, suppress(ConnectionError):
            connection.sendall(lines + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            time.sleep(0.1)
            connection.sendall(b"0\r\nX-Long: " + b"x" * 2**20)
            read_all(connection)
    # Opened anew: reading from the service's own file would move where it writes.
    assert "Traceback" not in Path(f"/proc/self/fd/{pair.log.fileno()}").read_text()


def test_a_database_that_was_cut_takes_no_writes_and_is_not_ready(fitted, tmp_path):
    """#31 B7: /ready said that all was well; one write was answered and lost."""
    texts, _ = toy_corpus()
    folders = {tmp_path / "cut": 0, tmp_path / "logged": 20}  # copies that wait in SQLite's log
    for folder in folders:
        with open_store(folder, fitted) as opened:
            opened.upsert(Document(f"d{i}", text) for i, text in enumerate(50 * texts))
    with serving(*folders, "--quiet", "--writable") as service:
        assert service.ask("GET", "/ready")[0] == 200
        for folder, in_log in folders.items():
            file, at = folder / "store.sqlite", f"/v1/stores/{folder.name}/documents"
            with open_store(folder) as other:  # open: nobody brings the log into the file
                other.upsert(Document(f"d{i}", text) for i, text in enumerate(in_log * texts))
                os.truncate(file, file.stat().st_size - 4096 if in_log else 4096)
                late = [{"id": "late", "text": "moon"}]
                asked = [("POST", at, {"documents": late}), ("DELETE", f"{at}/d1", None)]
                for one in asked * 2:  # of each handle
                    status, answer = service.ask(*one)
                    assert (status, answer["code"]) == (503, "unavailable")
                stores = service.ask("GET", "/v1/stores")[1]["stores"]
                trouble = next(one["trouble"] for one in stores if one["name"] == folder.name)
                assert re.search("damaged|cut short", trouble), trouble
        status, answer = service.ask("GET", "/ready")
        assert status == 503 and re.search("damaged|cut short", answer["error"]), answer
        assert str(tmp_path) not in answer["error"]
        assert service.ask("GET", "/health")[0] == 200


def test_a_client_comes_back_after_many_requests(pair):
    """#16 B6: so that a worker that replaced another gets its share of busy clients."""
    with pair.connect() as connection:
        answers = b""
        for n_asked in range(40, MOST_REQUESTS + 1, 40):
            connection.sendall(HEALTH * 40)
            while answers.count(b'{"status":"ok"}') < n_asked:
                answers += connection.recv(65536)
        answers += read_all(connection)
    assert answers.count(b"HTTP/1.1 200 OK") == MOST_REQUESTS
    assert answers.count(b"connection: close") == 1


def test_connections_are_spread_over_the_workers(pair):
    """#16 B6: 64 connections to one worker and none to the other were seen."""
    before = {worker: n_connections(worker) for worker in pair.workers()}
    most, deadline = dict(before), time.monotonic() + 30
    with ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(pair.connect())
        while sum(most.values()) - sum(before.values()) < 64 and time.monotonic() < deadline:
            most = {worker: max(n, n_connections(worker)) for worker, n in most.items()}
    shares = [most[worker] - before[worker] for worker in before]
    assert min(shares) >= 12, shares  # fewer are as likely as one in three million


def n_connections(process):
    links = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()]
    return sum(link.startswith("socket:") for link in links)


def test_what_is_not_http_is_refused(pair):
    with pair.connect() as connection:
        connection.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert b" 400 " in read_all(connection).split(b"\r\n")[0]
    assert pair.ask("GET", "/health")[0] == 200


def test_a_thousand_connections_at_once_are_all_answered(pair):
    message = b'{"text": "rocket moon orbit", "k": 3}'
    request = head("/v1/search", len(message), "Connection: close") + message
    with ExitStack() as open_ones:
        connections = []
        for _ in range(1000):  # each asks as soon as it is open: the service has little patience
            connection = socket.create_connection((pair.host, int(pair.port)), timeout=60)
            connections.append(open_ones.enter_context(connection))
            connection.sendall(request)
        answers = [read_all(connection).partition(b"\r\n\r\n") for connection in connections]
    assert {first[:12] for first, _, _ in answers} == {b"HTTP/1.1 200"}
    assert len({body for _, _, body in answers}) == 1


@pytest.mark.parametrize("id", ["50%25", "a/b", "ü 世界", "..", "/", "x\u3000y"])
def test_ids_are_decoded_once(pair, id):
    path = f"/v1/documents/{quote(id, safe='')}"
    body = {"documents": [{"id": id, "text": "moon"}]}
    assert pair.ask("POST", "/v1/documents", body) == (200, {"written": 1})
    assert pair.ask("GET", path)[1]["id"] == id
    assert pair.ask("DELETE", path) == (200, {"deleted": True})


def test_all_workers_see_what_one_of_them_or_another_process_writes(pair, store):
    document = {"id": "new", "text": "moon", "labels": ["fresh"]}
    assert pair.ask("POST", "/v1/documents", {"documents": [document]})[0] == 200
    with open_store(store) as other:
        other.upsert([Document("newer", "moon", ("fresh",), {})])
    for _ in range(8):  # connections go to either worker
        body = {"text": "moon", "where": {"label": "fresh"}}
        hits = pair.ask("POST", "/v1/search", body)[1]["hits"]
        assert sorted(hit["id"] for hit in hits) == ["new", "newer"]


def test_numbers_of_all_workers_are_added_up(pair):
    def n_healthy():
        connection = http.client.HTTPConnection(pair.host, int(pair.port))
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        line = 'vdsh_requests_total{method="GET",path="/health",status="200"} '
        return float(([0, *re.findall(re.escape(line) + r"(\S+)", text)])[-1])

    before = n_healthy()
    for _ in range(20):
        pair.ask("GET", "/health")
    assert n_healthy() == before + 20


def test_when_workers_are_killed_it_keeps_answering_and_nothing_is_lost(pair, store):
    before, written, failures = pair.workers(), [], 0
    victims = sorted(before)
    for i in range(60):
        if i in (10, 35):
            os.kill(victims.pop(), signal.SIGKILL)
        try:
            body = {"documents": [{"id": f"kept-{i}", "text": "moon"}]}
            status, answer = pair.ask("POST", "/v1/documents", body)
            assert (status, answer) == (200, {"written": 1})
            written.append(f"kept-{i}")
        except (ConnectionError, http.client.HTTPException):
            failures += 1  # this connection was the killed worker's
        if i == 34:  # the second is killed when the first was replaced
            wait_for(lambda: len(pair.workers() - before) == 1)
            time.sleep(3)
    assert failures <= 4
    wait_for(lambda: len(pair.workers()) == 2 and not pair.workers() & before)
    for id in written:
        assert pair.ask("GET", f"/v1/documents/{id}")[0] == 200
    with open_store(store) as opened:
        assert all(opened.get(id) for id in written)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_it_finishes_a_running_request_and_leaves_a_log_without_token_and_text(store, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    body = b'{"text": "rocket", "k": 1}'
    with serving(store, "--host", "0.0.0.0", "--token-file", file) as service:
        service.host = "127.0.0.1"
        assert service.ask("POST", "/v1/search", {"text": "rocket"})[0] == 401
        with service.connect() as connection, service.connect() as idle:
            right = f"Authorization: Bearer {TOKEN}"
            connection.sendall(head("/v1/search", len(body), right) + body[:5])
            time.sleep(0.5)
            service.process.terminate()
            assert idle.recv(1) == b""  # a connection without a request is closed at once
            with pytest.raises(ConnectionError):
                service.connect()
            connection.sendall(body[5:])
            answer = read_all(connection)
        log = service.end()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"hits":[{"id"' in answer
    assert service.process.returncode == 0
    entries = [json.loads(line) for line in log.splitlines()]
    assert [(entry["path"], entry["status"]) for entry in entries] == [
        ("/v1/search", 401), ("/v1/search", 200)
    ]  # fmt: skip
    assert "rocket" not in log
    assert TOKEN not in log


def test_it_stops_with_two_workers_and_refuses_connections_meanwhile(store):
    """#16 B5: the first process kept the listener open, and new connections hung."""
    body = b'{"text": "rocket", "k": 1}'
    with serving(store, "--workers", 2, "--quiet") as service:
        assert service.ask("GET", "/ready")[0] == 200
        with service.connect() as connection:
            connection.sendall(head("/v1/search", len(body)) + body[:5])
            time.sleep(0.5)
            service.process.terminate()
            wait_for(lambda: is_refused(service))
            connection.sendall(body[5:])
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")
        service.end()
    assert service.process.returncode == 0


def make_certificate(folder):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
               "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_an_expired_certificate_is_said(tmp_path):
    """#31 B6: it was served without a word, and clients refused it."""
    cert, key = make_certificate(tmp_path)
    assert check_tls(str(cert), str(key)) == (str(cert), str(key))
    command = ["openssl", "x509", "-in", cert, "-signkey", key, "-days", "0", "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    time.sleep(1.1)
    with pytest.raises(VdshError, match=r"Clients will refuse '.*cert\.pem': .*expired"):
        check_tls(str(cert), str(key))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_a_handshake_has_the_time_of_a_request(store, tmp_path):
    """#31 B6: it had 60 s, whatever --client-timeout said."""
    cert, key = make_certificate(tmp_path)
    options = ("--tls-cert", cert, "--tls-key", key, "--client-timeout", 0.5, "--quiet")
    with serving(store, *options) as service, service.connect() as silent:
        silent.settimeout(30)
        assert read_all(silent) == b""


# What systemd does: the socket is number 3 of the process, and the environment says so.
PASS_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, "-m", "vdsh", *sys.argv[2:]])
"""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_it_serves_two_stores_with_tls_at_a_socket_that_outlives_it(store, fitted, tmp_path):
    """#20: who comes while it is stopped waits at the socket, and is answered by the next one."""
    open_store(tmp_path / "empty", fitted).close()
    cert, key = make_certificate(tmp_path)
    options = ["serve", store, tmp_path / "empty", "--as", f"other={tmp_path / 'empty'}", "--quiet"]
    options += ["--tls-cert", cert, "--tls-key", key]
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        trusting = ssl.create_default_context(cafile=cert)
        waiting = http.client.HTTPSConnection(*listener.getsockname(), timeout=60, context=trusting)
        stack.callback(waiting.close)
        raw = stack.enter_context(socket.create_connection(listener.getsockname()))
        words = [sys.executable, "-c", PASS_ON, listener.fileno(), *options]
        process = stack.enter_context(
            subprocess.Popen(
                list(map(str, words)),
                pass_fds=[listener.fileno()],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.terminate)
        said = [process.stdout.readline() for _ in range(3)]
        assert said[0].startswith("Serving 2 stores at https://127.0.0.1:")
        assert said[2].split()[:2] == ["/v1/stores/other/", "0"]
        raw.sendall(b"GET /health HTTP/1.1\r\n\r\n")  # not TLS: hung up on
        assert read_all(raw) == b""
        waiting.request("GET", "/v1/stores/other/info")
        assert json.loads(waiting.getresponse().read())["documents"] == 0
        process.terminate()
        closing = False
        while not closing:  # what is on its way while it stops is answered, and told to go
            waiting.request("GET", "/health")
            answer = waiting.getresponse()
            assert (answer.status, answer.read()) == (200, b'{"status":"ok"}')
            closing = answer.getheader("connection") == "close"
        assert process.wait(60) == 0
        socket.create_connection(listener.getsockname()).close()  # waits, is not refused


def is_refused(service):
    try:
        service.connect().close()
    except ConnectionResetError:  # caught in the moment of closing
        return False
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.skipif(
    getattr(os, "geteuid", int)() != 0, reason="a small file system has to be mounted"
)
def test_with_a_full_temporary_folder_it_serves(store, tmp_path):
    """#16 B4: all workers were killed in a loop."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path]).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with serving(store, "--workers", 2, TMPDIR=str(tmp_path)) as service:
            assert service.ask("POST", "/v1/search", {"text": "moon"})[0] == 200
            assert service.ask("GET", "/metrics")[0] == 503
            service.process.terminate()
            log = service.end()
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert "There is no space for metrics" in log
    assert "is replaced" not in log


def test_a_second_service_cannot_share_the_port(pair, vdsh, store):
    result = vdsh("serve", store, "--workers", 2, "--port", pair.port)
    assert result.returncode == 1
    assert "Address already in use" in result.stderr


def test_what_keeps_it_from_starting_is_one_sentence(vdsh, store, tmp_path, monkeypatch):
    monkeypatch.delenv("VDSH_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {
            ("--port", port): f"Cannot listen at 127.0.0.1, port {port}: Address already in use.",
            ("--host", "0.0.0.0"): "a token is needed. Give one with --token-file or VDSH_TOKEN",
            ("--host", "no.such.host.invalid"): "a token is needed",
            ("--token-file", "none"): "No file 'none' to read a token from.",
            ("--tls-cert", "cert.pem"): "give --tls-cert and --tls-key",
            ("--tls-cert", "none", "--tls-key", "none"): "No file 'none'",
            ("--tls-cert", __file__, "--tls-key", __file__): "not a certificate and its key",
            ("--tls-cert", tmp_path, "--tls-key", tmp_path): "Cannot read",
            ("--as", "news"): "--as takes NAME=STORE",
            (store,): "Two stores are called 'store'",
        }
        for options, words in cases.items():
            result = vdsh("serve", store, *options)
            assert result.returncode == 1
            assert result.stderr.startswith("Error: ") and words in result.stderr
    result = vdsh("serve", tmp_path / "none")
    assert (result.returncode, result.stdout) == (1, "")
    assert "No store at" in result.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_without_its_model_does_not_start(fitted, tmp_path, vdsh, workers, monkeypatch):
    monkeypatch.setenv(FOLDER, "")  # set again in this process: later tests must not see it
    path = tmp_path / "broken"
    open_store(path, fitted).close()
    with closing(sqlite3.connect(path / "store.sqlite")) as connection, connection:
        connection.execute("DELETE FROM models")
    result = vdsh("serve", path, "--port", 0, "--workers", workers)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("Error: The service could not start.")


def test_without_fastapi_it_says_what_to_install(store):
    code = (
        "import sys\n"
        "class NoFastapi:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'fastapi':\n"
        "            raise ModuleNotFoundError('No module named fastapi', name='fastapi')\n"
        "sys.meta_path.insert(0, NoFastapi())\n"
        "from vdsh.cli import main\n"
        f"sys.argv = ['vdsh', 'serve', {str(store)!r}]\n"
        "main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "The server needs fastapi, which is not installed." in result.stderr
    assert "Run: pip install 'vdsh[server]'" in result.stderr


def test_workers_stop_when_the_process_that_watches_them_is_killed(pair):
    """The last of this file, since nobody can ask these workers any more."""
    assert pair.ask("GET", "/ready")[0] == 200
    workers = pair.workers()
    pair.process.kill()
    pair.process.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{worker}/exe") for worker in workers))
