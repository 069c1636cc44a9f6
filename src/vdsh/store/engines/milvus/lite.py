"""The process behind a Milvus Lite file, started and stopped by us.

The stores of this process that use one file share its server. It watches a lock that we hold on a
file beside the data, so it stops when this process ends, whatever ends it.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, RLock
from typing import IO

from vdsh.errors import EngineError, FolderError, WriteError, missing_package

STARTED_IN = 20.0  # seconds
STOPPED_IN = 10.0
SQLITE = b"SQLite format 3\0"  # what a Milvus Lite file begins with

_servers: dict[Path, "LiteServer"] = {}
_lock = Lock()


class LiteServer:
    """A server of one file, at `uri`; the stores that use it take turns."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._held = _hold_lock(file)
        self._folder = Path(tempfile.mkdtemp(prefix="vdsh-milvus-"))
        self.uri = f"unix:{self._folder / 'socket'}"
        self.n_users = 0
        self.turn = RLock()  # held during a call
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.revive()
        except BaseException:
            self.stop()
            raise

    def revive(self) -> None:
        """Start the process where it is not running."""
        if self._process is not None and self._process.poll() is None:
            return
        socket = self._folder / "socket"
        socket.unlink(missing_ok=True)
        self._process = start(self.file, self.uri, lock=_lock_file(self.file))
        deadline = time.monotonic() + STARTED_IN
        while not socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise EngineError(
                    f"Milvus Lite did not start on '{self.file}'. The file may be damaged, or "
                    "made by another version."
                )
            time.sleep(0.005)

    def stop(self) -> None:
        """Let the process end, and take its traces away."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOPPED_IN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._held.close()  # the lock's file stays: removing it could part two who wait for it
        shutil.rmtree(self._folder, ignore_errors=True)


def start(file: Path, uri: str, *, lock: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start Milvus Lite on a file, listening on a socket or a port."""
    spec = find_spec("milvus_lite")  # not imported: it wants a package that setuptools has dropped
    if spec is None or not spec.submodule_search_locations:
        raise missing_package("A store in Milvus Lite", "milvus-lite", "milvus")
    programs = Path(next(iter(spec.submodule_search_locations)), "lib")
    places = [str(programs), os.environ.get("LD_LIBRARY_PATH", "")]
    command = [str(programs / "milvus"), str(file), uri, "ERROR", *([str(lock)] if lock else [])]
    return subprocess.Popen(
        command,
        env={**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, places))},
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def acquire(path: str) -> LiteServer:
    """Return the server of a file, started where it is not running yet."""
    file = Path(path).absolute().resolve()
    _check_file(file)
    with _lock:
        server = _servers.get(file) or LiteServer(file)
        _servers[file] = server
        server.n_users += 1
        return server


def release(server: LiteServer) -> None:
    """Say that a server is no longer needed; the last one to say so stops it."""
    with _lock:
        server.n_users -= 1
        if server.n_users == 0:
            _servers.pop(server.file, None)
            server.stop()


def _check_file(file: Path) -> None:
    if file.is_dir():
        raise FolderError(f"'{file}' is a folder, but Milvus Lite keeps a file. Give another path.")
    if file.exists() and file.stat().st_size:
        with file.open("rb") as content:
            if content.read(len(SQLITE)) != SQLITE:
                raise FolderError(f"'{file}' is not a file of Milvus Lite. Give another path.")


def _lock_file(file: Path) -> Path:
    return file.with_name(f".{file.name}.lock")


def _hold_lock(file: Path) -> IO[str]:
    import fcntl  # not on Windows, where there is no Milvus Lite

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = _lock_file(file).open("a")
    except OSError as error:
        raise WriteError(f"Could not write beside '{file}': {error.strerror}.") from error
    try:
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise WriteError(
            f"Another process has '{file}' open. Milvus Lite serves one process at a time; "
            "close it there, or use a Milvus server."
        ) from None
    return held


@atexit.register
def _stop_all() -> None:
    for server in list(_servers.values()):
        server.stop()
