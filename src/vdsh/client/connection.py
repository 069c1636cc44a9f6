"""A connection to the service, kept open; a request that gets lost is sent again."""

import json
import random
import re
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import EAI_NONAME, gaierror
from ssl import SSLCertVerificationError
from threading import Lock
from typing import Any
from urllib.parse import SplitResult, urlsplit

from vdsh.errors import EngineError, InputError

BUSY = (429, 502, 503)  # said by the service, or by a proxy in front of it
MINE = (400, 404, 413, 415, 422)  # the request is wrong, not the service
# Seconds between two tries, longer and longer, by chance: not all clients come back at once.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Connection:
    """Sends requests, one at a time, and reads the answers.

    Every request may be sent twice: those that ask change nothing, a document that is written
    again replaces itself, and one that is deleted again is gone.

    Parameters
    ----------
    timeout : float
        Seconds to wait for an answer.
    wait : float
        Seconds to go on trying where the service cannot be reached or is busy.
    """

    def __init__(self, url: str, token: str | None, timeout: float, wait: float) -> None:
        parts = _read_url(url)
        self.url = url.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._timeout = _check_seconds("timeout", timeout, least=0.001)
        self._wait = _check_seconds("wait", wait, least=0)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._http = kind(parts.hostname or "", parts.port, timeout=self._timeout)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            if not isinstance(token, str) or not re.fullmatch(r"[!-~]+", token):
                raise InputError("token must be ASCII letters, digits and signs, without spaces.")
            self._headers["Authorization"] = f"Bearer {token}"
        self._lock = Lock()

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return the answer to a request, or raise what the service says against it."""
        with self._lock:
            status, content = self._send_until_answered(method, self._path + path, body)
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if status == 200 and answer is not None:
            return answer
        if not isinstance(answer, dict) or "error" not in answer:
            raise EngineError(
                f"{self.url} answers with status {status}, but not as `vdsh serve` does. "
                "Is the address right?"
            )
        sentence = str(answer["error"])
        if answer.get("code") == "no_document":
            raise NoDocumentError(sentence)
        raise (
            InputError(sentence) if status in MINE else EngineError(f"{self.url} says: {sentence}")
        )

    def close(self) -> None:
        """Close the connection; a further request opens it again."""
        with self._lock:
            self._http.close()

    def _send_until_answered(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        longest, stop = FIRST_PAUSE, time.monotonic() + self._wait
        while True:
            kept, pause = self._http.sock is not None, longest * random.uniform(0.5, 1.0)
            longest = min(2 * longest, LONGEST_PAUSE)
            try:
                status, content, asked_for = self._send(method, path, body)
            except (HTTPException, OSError) as error:
                self._http.close()
                may_pass = _may_pass(error)
                if kept and may_pass:  # the service closes a connection that was idle for long
                    continue
                if not may_pass or time.monotonic() + pause > stop:
                    raise self._lost(error) from error
            else:
                pause = max(pause, asked_for)
                if status not in BUSY or time.monotonic() + pause > stop:
                    return status, content
            time.sleep(pause)

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Return the status, the body and the seconds that the service asks us to wait."""
        self._http.request(method, path, body, self._headers)
        answer = self._http.getresponse()
        after = answer.headers.get("Retry-After", "")
        return answer.status, answer.read(), float(after) if after.isdecimal() else 0.0

    def _lost(self, error: Exception) -> EngineError:
        if isinstance(error, TimeoutError):
            return EngineError(f"{self.url} gave no answer within {self._timeout:g} s.")
        if isinstance(error, SSLCertVerificationError):
            return EngineError(
                f"The certificate of {self.url} is not trusted: {error.verify_message}. For one of "
                "your own, name its file in the variable SSL_CERT_FILE."
            )
        why = str(error) or type(error).__name__
        return EngineError(f"{self.url} cannot be reached: {why}. Does `vdsh serve` run there?")


class NoDocumentError(InputError):
    """There is no document of that id."""


def _may_pass(error: Exception) -> bool:
    """Say whether a failure may be over soon; a slow answer would only be asked for again."""
    if isinstance(error, gaierror):
        return error.errno != EAI_NONAME
    return not isinstance(error, TimeoutError | SSLCertVerificationError)


def _read_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError):
        fits = False
    if not fits or parts.query or parts.fragment or re.search(r"[^!-~]", url):
        raise InputError(f"url must be that of a service, as http://127.0.0.1:8000. Got {url!r}.")
    if parts.username is not None or parts.password is not None:
        raise InputError("A url must have no name and password. Give the token with token=…")
    return parts


def _check_seconds(name: str, seconds: Any, least: float) -> float:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not least <= seconds < 1e9:
        raise InputError(f"{name} must be a number of seconds. Got {seconds!r}.")
    return float(seconds)
