"""Who may ask: tokens from a file that may change at any time, and what is open without one."""

import hashlib
import logging
import os
import re
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from vdsh.errors import InputError, MissingFileError, VdshError

VARIABLE = "VDSH_TOKEN"
LEAST_LENGTH = 16
OPEN_TO_OTHERS = 0o027  # rights that a file of tokens must not have
LOOK_AGAIN = 1.0  # seconds until a change of the file is seen, at most
FORM = "NAME read|write TOKEN, such as: anna read 5f0c…9a"

log = logging.getLogger("vdsh.server")

# Open to all: a browser loads them without a token, and they say nothing about the documents.
OPEN_PATHS = {"/", "/health", "/ready", "/docs", "/openapi.json"}
OPEN_FOLDERS = ("/page/", "/docs/")


class Token(NamedTuple):
    """What a token allows."""

    name: str | None = None  # whose it is, for the log; None where there is only one
    may_write: bool = True


@dataclass(repr=False)
class Tokens:
    """The tokens that are known, by their SHA-256: looking one up tells nothing by its time.

    `file`: where they come from. It is read again when it has changed; where it cannot be used
    then, the tokens of before stay, and the log says why.
    """

    known: dict[bytes, Token]
    file: str | None = None
    version: tuple[int, ...] = ()
    _looked: float = 0.0

    def find(self, authorization: bytes) -> Token | None:
        """Return what an Authorization header allows; None where its token is not known."""
        self.look_again()
        scheme, _, given = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        return self.known.get(hashlib.sha256(given.strip()).digest())

    def look_again(self) -> None:
        """Read the file again where it has changed; look at most once a second."""
        if self.file is None or time.monotonic() - self._looked < LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        before, self.version = self.version, _version(self.file)
        if before == self.version:
            return
        try:
            self.known = _read_file(self.file)
        except VdshError as error:
            log.error("The tokens of before stay, for the new ones cannot be used: %s", error)
            return
        n_writing = sum(token.may_write for token in self.known.values())
        log.info("Tokens were read again: %d, of which %d may write.", len(self.known), n_writing)


def read_tokens(file: str | None) -> Tokens | None:
    """Return the tokens of a file, else the one of the environment; None where there is neither."""
    if file is not None:
        version = _version(file)  # before it is read: a change meanwhile is one
        return Tokens(_read_file(file), file, version)
    if VARIABLE not in os.environ:
        return None
    return one_token(_checked(os.environ[VARIABLE].strip(), f"The variable {VARIABLE}"))


def one_token(token: str) -> Tokens:
    """Return a single token, which may read and write."""
    return Tokens({_digest(token): Token()})


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _version(file: str) -> tuple[int, ...]:
    try:
        found = os.stat(file)
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
    except OSError:
        return ()


def _read_file(file: str) -> dict[bytes, Token]:
    try:
        text = Path(file).read_text(encoding="utf-8")
        rights = os.stat(file).st_mode & 0o777
    except FileNotFoundError as error:
        raise MissingFileError(f"No file '{file}' to read a token from.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read a token from '{file}': {error}.") from error
    if os.name == "posix" and rights & OPEN_TO_OTHERS:
        raise InputError(
            f"'{file}' is open to others on this machine: its rights are {rights:o}. "
            f"Run: chmod 600 '{file}'"
        )
    rows = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    rows = [(number, words) for number, words in rows if words and not words[0].startswith("#")]
    if not rows or (len(rows) == 1 and len(rows[0][1]) == 1):  # one for all, without a name
        return {_digest(_checked(rows[0][1][0] if rows else "", f"'{file}'")): Token()}
    known: dict[bytes, Token] = {}
    for number, words in rows:
        digest, token = _read_line(words, f"'{file}', line {number},")
        if digest in known:
            raise InputError(f"'{file}', line {number}, has a token that is there already.")
        known[digest] = token
    return known


def _read_line(words: list[str], place: str) -> tuple[bytes, Token]:
    """Read a line; what is wrong is said without the line, which may hold a token."""
    if len(words) != 3 or words[1] not in ("read", "write"):
        raise InputError(f"{place} must hold a token: {FORM}")
    name, right, token = words
    return _digest(_checked(token, place)), Token(name, right == "write")


def _checked(token: str, place: str) -> str:
    if len(token) < LEAST_LENGTH or not re.fullmatch(r"[!-~]+", token):
        raise InputError(
            f"{place} must hold a token: at least {LEAST_LENGTH} ASCII letters, digits and signs "
            "without spaces. Make one: openssl rand -hex 32"
        )
    return token


def check_exposure(host: str, tokens: Tokens | None) -> None:
    """Raise where other machines could ask without a token."""
    if tokens is None and not is_loopback(host):
        raise InputError(
            f"On '{host}' other machines can ask, so a token is needed. Give one with "
            f"--token-file or {VARIABLE}, or leave --host away to serve this machine only."
        )


def is_loopback(host: str) -> bool:
    """Say whether a host name or address means this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "a.org", "")]
    [True, True, True, False, False, False]
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def without_port(host: str) -> str:
    """Take the port off a Host header.

    >>> [without_port(host) for host in ("localhost:8000", "[::1]:80", "127.0.0.1")]
    ['localhost', '::1', '127.0.0.1']
    """
    match = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::\d*)?|([^:\[\]]*)(?::\d*)?", host)
    return (match[1] or match[2] or "") if match else ""


def is_open(path: str) -> bool:
    """Say whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
