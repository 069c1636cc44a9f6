"""Engines that fail: servers that are away, refuse, restart, or hold something else."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
from typer.testing import CliRunner

from engines import REMOTE, code, codes_of, doc, ids, server_is_running
from servers import PASSWORD, QUOTED, MilvusServer, PostgresServer, free_port
from vdsh import Document
from vdsh.cli import app
from vdsh.errors import EngineError, FolderError, InputError, VdshError, WriteError
from vdsh.store import open_store
from vdsh.store import store as store_module
from vdsh.store.engine import Engine
from vdsh.store.engines.milvus import engine as milvus_engine
from vdsh.store.engines.postgres import Postgres
from vdsh.store.engines.postgres import search as postgres_search
from vdsh.store.engines.sqlite import Sqlite

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")


@pytest.fixture(params=REMOTE)
def remote_place(request, new_place):
    return new_place(request.param)


@pytest.fixture(scope="module")
def restarting(tmp_path_factory):
    """A PostgreSQL and a Milvus server that tests may stop and start."""
    servers = {"postgres": PostgresServer()}
    servers["milvus"] = MilvusServer(tmp_path_factory.mktemp("milvus-server") / "data.db")
    yield servers
    for server in servers.values():
        server.remove()


@pytest.fixture(params=["postgres", "milvus"])
def server(request, restarting):
    return restarting[request.param]


@pytest.fixture
def url(server, request):
    return server.store_url(f"t{abs(hash(request.node.name))}")


def message_of(work):
    with pytest.raises(VdshError) as caught:
        work()
    gc.collect()  # what a failed attempt leaves open would warn here
    return caught.type, str(caught.value)


def test_an_engine_fills_in_twenty_methods_at_most():  # #32
    methods = [name for name, value in vars(Engine).items() if callable(value) and name[0] != "_"]
    filled_in = [name for name in methods if name in vars(Sqlite) or name in vars(Postgres)]
    assert 10 < len(filled_in) <= 20


# -- getting in -----------------------------------------------------------------------------------


def test_a_wrong_password_is_said_and_never_shown(postgres_server, fitted):
    url = postgres_server.url("plain").replace(QUOTED, "not%20it")
    kind, message = message_of(lambda: open_store(url, fitted))
    assert kind is EngineError
    assert "password authentication failed" in message
    assert "Check the user and the password" in message
    assert "not it" not in message
    assert "not%20it" not in message


def test_a_wrong_password_of_milvus_is_said_and_never_shown(fitted):
    """Milvus Lite asks for none, so this server only refuses, in the words of Milvus 2.3.5."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Refusing()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        url = f"milvus://ann:not%20it@127.0.0.1:{port}/news"
        kind, message = message_of(lambda: open_store(url, fitted))
    finally:
        server.stop(None).wait()
    assert kind is EngineError
    assert "auth check failure" in message
    assert message.endswith("Check the user and the password.")
    assert "not it" not in message


class Refusing(grpc.GenericRpcHandler):
    """Refuses every call as Milvus does when the password is wrong."""

    def service(self, call):
        words = "auth check failure, please check username [ann] and password are correct"

        def refuse(request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, words)

        return grpc.unary_unary_rpc_method_handler(refuse)


def test_a_password_is_in_no_text_about_a_store(postgres_server, fitted):
    with open_store(postgres_server.url("plain", table="secret"), fitted) as store:
        store.upsert([doc("a")])
        shown = repr(store) + str(store.info())
    assert "postgres:***@127.0.0.1" in shown
    assert PASSWORD not in shown
    assert QUOTED not in shown


@pytest.mark.parametrize("scheme", ["postgresql", "milvus"])
def test_a_server_that_is_not_there(scheme, fitted):
    url = f"{scheme}://ann:secret@127.0.0.1:{free_port()}/news"
    kind, message = message_of(lambda: open_store(url, fitted, wait=1))
    assert kind is EngineError
    assert message.startswith(f"Could not connect to '{scheme}://ann:***@127.0.0.1")
    assert "Is the server running" in message
    assert "secret" not in message


def test_an_unknown_database(postgres_server, fitted):
    _, message = message_of(lambda: open_store(postgres_server.url("nowhere"), fitted))
    assert 'database "nowhere" does not exist' in message


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("milvis://host/news", "Did you mean 'milvus'?"),
        ("milvus://host:19530/1news", "must be letters, digits and _"),
        ("milvus://host:port/news", "is not a URL"),
        ("milvus-lite:", "needs a file"),
        ("milvus-lite:x.db?colection=a", "Did you mean 'collection'?"),
        ("milvus-lite:x.db?index=ivf", "has no option 'index'"),
        ("milvus://host/news?partition=year", "has no option 'partition'"),  # 17: never ran
        ("milvus://host/news?secure=true", "has no option 'secure'"),
        ("postgresql://host/db?table=", "?table= must be a name"),
        ("postgresql://host/db?table=a.b.c", "?table= must be a name"),
    ],
)
def test_urls_that_make_no_sense(url, sentence, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind, message = message_of(lambda: open_store(url, fitted))
    assert kind is InputError
    assert sentence in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("package", "extra", "url"),
    [
        ("psycopg", "postgres", "postgresql://host/db"),
        ("pymilvus", "milvus", "milvus://host/news"),
        ("milvus_lite", "milvus", "milvus-lite:new.db"),
    ],
)
def test_a_missing_package_names_the_extra(package, extra, url, tmp_path):
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from vdsh.errors import MissingPackageError\n"
        "from vdsh.store import open_store\n"
        f"try: open_store({url!r}, {str(tmp_path)!r})\n"
        "except MissingPackageError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert f"Run: pip install 'vdsh[{extra}]'" in done.stdout


# -- places that belong to others ------------------------------------------------------------------


def test_a_table_of_somebody_else_is_left_alone(postgres_server, fitted):
    with postgres_server.connect("plain") as connection:
        connection.execute("CREATE TABLE others (mine text)")
        connection.execute("CREATE TABLE others2_meta (mine text)")
        connection.execute("CREATE TABLE others3 (mine text)")
        connection.execute("CREATE TABLE others3_meta (mine text)")
        for name in ("others", "others2", "others3"):
            url = postgres_server.url("plain", table=name)
            kind, message = message_of(lambda url=url: open_store(url, fitted))
            assert kind is FolderError
            assert "another name by ?table=" in message
        assert connection.execute("SELECT count(*) FROM others").fetchone() == (0,)


def test_a_collection_of_somebody_else_is_left_alone(restarting, fitted):
    server = restarting["milvus"]
    client = server.client()
    client.create_collection("others", dimension=8)
    kind, message = message_of(lambda: open_store(server.store_url("others"), fitted))
    assert kind is FolderError
    assert "the collection others belongs to something else" in message
    client.drop_collection("others")
    client.close()


def test_a_file_that_is_not_of_milvus_lite(tmp_path, fitted):
    (tmp_path / "notes.db").write_text("mine, and longer than a few bytes")
    kind, message = message_of(lambda: open_store(f"milvus-lite:{tmp_path}/notes.db", fitted))
    assert kind is FolderError
    assert "is not a file of Milvus Lite" in message
    assert message_of(lambda: open_store(f"milvus-lite:{tmp_path}", fitted))[0] is FolderError
    assert (tmp_path / "notes.db").read_text().startswith("mine")


def test_names_of_tables_are_quoted(postgres_server, fitted):
    name = "odd%22; DROP TABLE documents; -- é"
    with open_store(postgres_server.url("plain", table=name), fitted) as store:
        store.upsert([doc("a")])
        assert store.count() == 1


def test_a_schema_may_be_named(postgres_server, fitted):
    with postgres_server.connect("plain") as connection:
        connection.execute("CREATE SCHEMA news")
        url = postgres_server.url("plain", table="news.posts")
        with open_store(url, fitted) as store:
            store.upsert([doc("a")], codes_of(3))
            assert ids(store.search(code(3))) == ["a"]
        assert connection.execute("SELECT count(*) FROM news.posts").fetchone() == (1,)


def test_a_newer_format_is_refused(postgres_server, fitted):
    url = postgres_server.url("plain", table="newer")
    open_store(url, fitted).close()
    with postgres_server.connect("plain") as connection:
        connection.execute("UPDATE newer_meta SET value = '99' WHERE key = 'format'")
    assert "has format 99; this version reads 5" in message_of(lambda: open_store(url))[1]


# -- making stores ---------------------------------------------------------------------------------


def test_many_may_make_the_same_store_at_once(remote_place, fitted):
    problems = []

    def make(number):
        try:
            with open_store(remote_place, fitted) as store:
                store.upsert([doc(f"d{number}")], codes_of(number))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    with open_store(remote_place) as store:
        assert store.count() == 4
        assert store.search("orbit", k=1)  # the model is there and whole


def test_info_says_how_an_engine_searches(new_place, fitted):
    said = {}
    for engine in REMOTE:
        with open_store(new_place(engine), fitted) as store:
            said[engine] = store.info()["search"]
    assert said["postgres"] == "exact, bit_count"
    assert said["milvus-lite"] == "exact, BIN_FLAT"


def test_a_store_on_a_milvus_server_is_shown_in_a_notebook(restarting, fitted):  # #31 B7
    """It does not know its size, which was divided by a million."""
    with open_store(restarting["milvus"].store_url("shown"), fitted) as store:
        store.upsert([doc("a")])
        assert "1 documents" in repr(store)


# -- what fits -------------------------------------------------------------------------------------


def test_documents_of_any_size(remote_place, fitted):
    large = doc("large", "ключ" * 50_000, ("x" * 30_000, "y"), big="v" * 90_000, year=1990)
    with open_store(remote_place, fitted) as store:
        store.upsert([doc("a", year=1991), large, doc("b", "small")], codes_of(1, 2, 3))
        assert store.get("large") == large
        assert store.count({"year": 1990}) == 1
        assert ids(store.search(code(2), k=5, where={"label": "y"})) == ["large"]
        store.upsert([doc("large", "now small")], codes_of(2))
        assert store.get("large") == doc("large", "now small")
        store.upsert([large], codes_of(2))
        assert store.delete(["large", "a"]) == 2
        assert [d.id for batch in store.documents() for d in batch] == ["b"]


def test_numbers_of_any_size(remote_place, fitted):
    values = {"a": 2**53, "b": 2**53 + 1, "c": 10**300, "d": 1e300, "e": 1e-7, "f": -(2**70)}
    with open_store(remote_place, fitted) as store:
        store.upsert([doc(id, x=value) for id, value in values.items()])
        for id, value in values.items():
            assert store.get(id).metadata == {"x": value}
            same = [other for other, x in values.items() if x == value]
            assert ids(store.search("orbit", where={"x": value})) == same
            less = sorted(other for other, x in values.items() if x < value)
            assert sorted(ids(store.search("orbit", where={"x": {"<": value}}))) == less


def test_ids_too_long_for_an_engine_are_refused(new_place, fitted):
    rng = np.random.default_rng(0)
    long = rng.bytes(40_000).hex()
    for engine in REMOTE:
        with open_store(new_place(engine), fitted) as store:
            kind, message = message_of(lambda store=store: store.upsert([doc("a"), doc(long)]))
            assert kind is InputError
            assert "is too long" in message
            assert store.count() == 0


def test_what_nobody_waits_for_any_more_is_given_up_by_milvus(new_place, fitted):
    with open_store(new_place("milvus-lite"), fitted) as store:
        store.upsert([doc("a")])
        stop = threading.Event()

        def give_up():
            while not stop.wait(0.03):
                store.interrupt()

        thread = threading.Thread(target=give_up)
        thread.start()
        with pytest.raises(EngineError, match="given up"):
            for _ in range(1000):
                store.count()
        stop.set()
        thread.join()
        store.interrupt()  # the last one comes when nothing is asked any more
        assert store.count() == 1


def test_more_ties_than_milvus_gives_at_once(new_place, fitted, monkeypatch):
    n = 900
    monkeypatch.setattr("vdsh.store.engines.milvus.collection.MOST", 500)  # it gives 16,384
    numbers = [i % 3 for i in range(n)]  # distances 0, 1 and 1 from code 0
    names = [f"{i:05}" for i in range(n)]
    with open_store(new_place("milvus-lite"), fitted) as store:
        order = np.random.default_rng(0).permutation(n)
        documents = [doc(names[i], third=numbers[i]) for i in order]
        store.upsert(documents, codes_of(*(numbers[i] for i in order)))
        zeros = [name for name, number in zip(names, numbers, strict=True) if number == 0]
        ones = [name for name, number in zip(names, numbers, strict=True) if number]
        assert ids(store.search(code(0), k=20)) == zeros[:20]
        assert ids(store.search(code(0), k=len(zeros) + 5)) == zeros + ones[:5]
        within = store.within(code(0), radius=1, where={"third": {"!=": 2}})
        assert len(within) == sum(number != 2 for number in numbers)
        assert len(store.within(code(0), radius=1)) == n


def test_no_more_documents_are_fetched_than_asked_for(remote_place, fitted, monkeypatch):
    read = []

    def counted(function):
        return lambda *parts: read.append(parts) or function(*parts)

    for module, name in ((milvus_engine, "to_document"), (postgres_search, "to_stored")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    with open_store(remote_place, fitted) as store:
        store.upsert([doc(f"{i:03}", year=i % 3) for i in range(300)], codes_of(*range(300)))
        for where, total in ((None, 300), ({"year": 1}, 100)):
            hits, n = store.within_at_most(code(0), 16, 7, where=where)
            assert (len(hits), n, len(read)) == (7, total, 7)
            read.clear()


# -- servers that go away --------------------------------------------------------------------------


def test_a_restart_in_the_middle_of_an_upsert_loses_nothing(server, url, fitted, monkeypatch):
    monkeypatch.setattr(store_module, "BATCH", 50)
    restarted = []

    def restart(n_committed):
        if n_committed == 200:
            server.stop()
            threading.Timer(0.5, server.start).start()
            restarted.append(n_committed)

    with open_store(url, fitted) as store:
        codes = codes_of(*range(500))
        written = store.upsert((doc(f"{i:03}") for i in range(500)), codes, progress=restart)
        assert (written, restarted) == (500, [200])
        assert store.count() == 500
        assert [hit.distance for hit in store.search(code(0), k=1)] == [0]
        assert [d.id for b in store.documents() for d in b] == [f"{i:03}" for i in range(500)]


CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'vdsh' AND datname = 'postgres'"
)


def test_connections_that_are_cut_are_made_anew(restarting, fitted, monkeypatch):
    """An administrator, a firewall or a pooler ends them, while nothing or much is going on."""
    server = restarting["postgres"]
    monkeypatch.setattr(store_module, "BATCH", 50)
    done = threading.Event()

    def cut():
        with server.connect() as connection:
            while not done.wait(0.03):
                connection.execute(CUT)

    with open_store(server.store_url("cut"), fitted) as store, server.connect() as connection:
        store.upsert([doc("first")], codes_of(0))
        connection.execute(CUT)
        assert store.count() == 1
        knife = threading.Thread(target=cut)
        knife.start()
        try:
            store.upsert([doc(f"{i:04}") for i in range(500)], codes_of(*range(500)))
        finally:
            done.set()
            knife.join()
        assert store.count() == 501
        assert [hit.distance for hit in store.search(code(499), k=1)] == [0]


def test_a_killed_server_leaves_whole_batches(restarting, fitted, monkeypatch):
    """The server dies at any moment, while batches are on their way."""
    server = restarting["postgres"]
    monkeypatch.setattr(store_module, "BATCH", 200)
    url = server.store_url("killed")
    done = []
    with open_store(url, fitted, wait=0.2) as store:
        killer = threading.Timer(0.3, server.stop)
        killer.start()
        with pytest.raises(EngineError, match=r"Lost the connection|Could not connect"):
            while True:
                documents = [doc(f"{len(done):03}-{i:03}") for i in range(200)]
                store.upsert(documents, np.zeros((200, 2), np.uint8))
                done.append(len(documents))
        killer.join()
        server.start()
        n_documents = store.count()  # the same store goes on
        assert n_documents % 200 == 0
        assert n_documents - sum(done) in (0, 200)


def test_a_server_that_stays_away_is_said_so(server, url, fitted):
    with open_store(url, fitted, wait=1) as store:
        store.upsert([doc("a")], codes_of(1))
        server.stop()
        try:
            for work in (store.count, lambda: store.upsert([doc("b")]), lambda: store.get("a")):
                kind, message = message_of(work)
                assert kind is EngineError
                assert PASSWORD not in message
                assert "Lost the connection" in message or "Could not connect" in message
        finally:
            server.start()
    with open_store(url) as store:
        assert store.get("a") == doc("a")
        assert store.count() in (1, 2)  # the second may have arrived before the end


@pytest.mark.linux("finds the server in /proc")
def test_a_milvus_lite_that_was_killed_comes_back(tmp_path, fitted):
    file = tmp_path / "news.db"
    with open_store(f"milvus-lite:{file}", fitted) as store:
        store.upsert([doc("a")], codes_of(1))
        (process,) = [p for p in Path("/proc").glob("[0-9]*") if holds(p, file)]
        os.kill(int(process.name), signal.SIGKILL)
        assert ids(store.search(code(1))) == ["a"]
        store.upsert([doc("b")], codes_of(2))
    assert not server_is_running(file)
    with open_store(f"milvus-lite:{file}") as store:
        assert store.count() == 2


def holds(process, file):
    try:
        return os.fsencode(str(file)) in (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


HOLD = """
import sys, time
from vdsh.store import open_store
store = open_store(sys.argv[1])
print("open", flush=True)
time.sleep(100)
"""


def test_milvus_lite_serves_one_process_and_stops_with_it(tmp_path, fitted):
    file = tmp_path / "news.db"
    url = f"milvus-lite:{file}"
    with open_store(url, fitted) as first, open_store(url) as second:
        first.upsert([doc("a")])
        assert second.count() == 1
    assert not server_is_running(file)
    other = subprocess.Popen([sys.executable, "-c", HOLD, url], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "open\n"
        kind, message = message_of(lambda: open_store(url))
        assert kind is WriteError
        assert "Another process has" in message
    finally:
        other.kill()
        other.communicate()
    deadline = time.monotonic() + 10
    while server_is_running(file) and time.monotonic() < deadline:
        time.sleep(0.05)
    with open_store(url) as store:
        assert store.count() == 1


def test_copies_of_a_server_are_its_own_tools_work(remote_place, fitted, tmp_path):
    with open_store(remote_place, fitted) as store:
        store.upsert([doc("a", "orbit moon")])
        assert store.check() == []
        assert "Use " in message_of(lambda: store.back_up(tmp_path / "copy"))[1]
    commands = (["reindex", remote_place, "--back"], ["compact", remote_place])
    done = [CliRunner().invoke(app, command) for command in commands]
    assert [(one.exit_code, QUOTED in one.output) for one in done] == [(1, False), (0, False)]
    with open_store(remote_place) as store:
        assert ids(store.search("orbit moon")) == ["a"]
    assert not list(tmp_path.glob("copy*"))


def test_check_names_a_damaged_document_in_postgresql(postgres_server, fitted):
    place = postgres_server.url("plain", table="damaged")
    long = Document("long", "moon orbit " * 20_000, ("a\x00b", "c"), {"n": 1.5, "x": [1, "\x00"]})
    with open_store(place, fitted) as store:
        store.upsert([Document("short", "moon"), long])
        assert store.check() == [] and store.get("long") == long
        with postgres_server.connect("plain") as connection:
            connection.execute("UPDATE damaged SET text = text || '.' WHERE id = 'long'")
        assert any("Document 'long' of this store is damaged" in one for one in store.check())
        with pytest.raises(FolderError, match="Document 'long' of this store is damaged"):
            store.search("orbit")
        store.upsert([long])
        assert store.check() == []
