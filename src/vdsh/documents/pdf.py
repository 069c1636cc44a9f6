"""PDF files, read by pypdf in another process with a budget of time and memory for each file.

A file of 700 bytes can keep pypdf busy for minutes, and a thread cannot be stopped. One worker
reads file after file, so that only the first waits for it to start.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from vdsh.documents.unreadable import UnreadableError
from vdsh.errors import missing_package

# pypdf reads about 20 pages, or 150 kB, in a second.
_SECONDS = 3.0  # of a processor, for any file
_SECONDS_PER_MB = 60.0
_MOST_SECONDS = 600.0
_TIMES_THE_CLOCK = 4  # a busy machine may need so many times longer before the worker is ended
_MEMORY = 384 * 2**20  # bytes of address space; Python and pypdf alone have 100 MB
_TIMES_THE_SIZE = 8  # bytes of memory for each byte of a file, beside those
_WORKER = Path(__file__).with_name("pdf_worker.py")


def read_pdf(data: bytes, limit: int) -> tuple[str, str]:
    """Return text, with a form feed between pages, and title; raise `UnreadableError` if it can't.

    `limit` is the most characters of text. What pypdf fails at is a `ValueError`.
    """
    if find_spec("pypdf") is None:
        raise UnreadableError(str(missing_package("", "pypdf", "files")).strip())
    answer = _worker.read(data, limit)
    if "reason" in answer:
        raise UnreadableError(answer["reason"])
    if "damage" in answer:
        raise ValueError(answer["damage"])
    return answer["text"], answer["title"]


class _Worker:
    """The other process, which starts for the first file, and again where a file has ended it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = Lock()

    def read(self, data: bytes, limit: int) -> dict[str, Any]:
        """Have a file read, one at a time."""
        n_megabytes = len(data) / 2**20
        seconds = min(_MOST_SECONDS, _SECONDS + _SECONDS_PER_MB * n_megabytes)
        memory = _MEMORY + _TIMES_THE_SIZE * len(data)
        asked = {"size": len(data), "limit": limit, "seconds": seconds, "memory": memory}
        with self.lock:
            process = self._running()
            timer = Timer(_TIMES_THE_CLOCK * seconds, process.kill)
            timer.daemon = True
            timer.start()
            try:
                line = _exchange(process, json.dumps(asked).encode() + b"\n" + data)
            finally:
                timer.cancel()
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
            else:
                answer = {"reason": _why_ended(process.wait(), seconds)}
            if answer.get("memory"):
                answer = {"reason": f"takes more than {memory >> 20:,} MB of memory to read"}
        return answer

    def _running(self) -> "subprocess.Popen[bytes]":
        if self.process is None or self.process.poll() is not None:
            self.stop()
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self.process = subprocess.Popen(
                [sys.executable, "-P", os.fspath(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self.process

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is None:
            return
        process = self.process
        self.process = None
        process.kill()
        process.wait()
        _close(process)

    def forget(self) -> None:
        """Leave the process to the parent of this one, which was forked."""
        if self.process is not None:
            self.process.returncode = 0  # nobody here waits for it
            _close(self.process)
        self.process = None
        self.lock = Lock()


def _exchange(process: "subprocess.Popen[bytes]", message: bytes) -> bytes:
    """Send a file and return the answer: no whole line, where the process ended."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(message)
        process.stdin.flush()
    except OSError:
        return b""
    return process.stdout.readline()


def _why_ended(status: int, seconds: float) -> str:
    """Say why there is no answer, by the status of a process that has ended."""
    out_of_time = [
        -getattr(signal, name) for name in ("SIGXCPU", "SIGKILL") if hasattr(signal, name)
    ]
    if status in (out_of_time or [1]):  # Windows ends a process with 1
        return f"takes more than {seconds:.0f} seconds to read"
    return "is not PDF, or is damaged"


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:  # what was not sent
            pass


_worker = _Worker()
atexit.register(_worker.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_worker.forget)
