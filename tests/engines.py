"""Places for stores on every engine, for tests that must pass on all of them."""

import itertools
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from servers import PostgresServer
from vdsh import Document
from vdsh.store import open_store
from vdsh.store.engines.milvus import lite

ENGINES = ("local", "milvus-lite", "postgres")
REMOTE = ENGINES[1:]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server; stores are in its database `plain`."""
    server = PostgresServer()
    try:
        with server.connect() as connection:
            connection.execute("CREATE DATABASE plain")
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def lite_file(tmp_path_factory):
    """A Milvus Lite file whose server stays up, since starting one for each test takes long."""
    file = tmp_path_factory.mktemp("milvus") / "tests.db"
    server = lite.acquire(str(file))
    yield file
    lite.release(server)
    assert not server_is_running(file)


@pytest.fixture
def new_place(request, tmp_path):
    """Name a new place for a store on an engine."""

    def make(engine):
        number = next(_numbers)
        if engine == "local":
            return str(tmp_path / f"store{number}")
        if engine == "milvus-lite":
            return f"milvus-lite:{request.getfixturevalue('lite_file')}?collection=store{number}"
        return request.getfixturevalue("postgres_server").url("plain", table=f"store{number}")

    return make


@pytest.fixture(params=ENGINES)
def place(request, new_place):
    """A new place on each engine in turn."""
    return new_place(request.param)


@pytest.fixture
def folder(tmp_path):
    """A new folder for a store."""
    return tmp_path / "store"


@pytest.fixture
def readable():
    """A folder that other users may read; pytest closes its own whenever another run starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def store(folder, fitted):
    """A new store in that folder."""
    with open_store(folder, fitted) as store:
        yield store


@pytest.fixture
def years(store):
    """The module's store with ten documents, d0 to d9: code = number, year = 1990 + number."""
    documents = [
        doc(f"d{i}", f"text {i}", ("even",) if i % 2 == 0 else ("odd", "all"), year=1990 + i)
        for i in range(10)
    ]
    store.upsert(documents, codes_of(*range(10)))
    return store


def server_is_running(file):
    """Say whether a Milvus Lite server has the file open, by looking at all processes."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(str(file)) in words:
            return True
    return False


def code(number):
    """A code of 16 bits."""
    return np.frombuffer(int(number).to_bytes(2, "big"), np.uint8)


def codes_of(*numbers):
    return np.array([code(number) for number in numbers]).reshape(-1, 2)


def doc(id, text="", labels=None, **metadata):
    return Document(id, text, labels, metadata)


def ids(hits):
    return [hit.id for hit in hits]


@contextmanager
def full_disk(size):
    """Let no file grow beyond a size, as if the disk were full."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
