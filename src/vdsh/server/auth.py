"""Who may ask: bearer tokens, and requests that come from this machine."""

import hmac
import os
import re
from ipaddress import ip_address
from pathlib import Path

from vdsh.errors import InputError, MissingFileError

VARIABLE = "VDSH_TOKEN"
LEAST_LENGTH = 16
# Open to all: a browser loads them without a token, and they say nothing about the documents.
OPEN_PATHS = {"/", "/health", "/ready", "/docs", "/openapi.json"}
OPEN_FOLDERS = ("/page/", "/docs/")


def read_token(file: str | None) -> str | None:
    """Return the token from a file, else from the environment; None where there is neither."""
    token, source = os.environ.get(VARIABLE), f"The variable {VARIABLE}"
    if file is not None:
        source = f"'{file}'"
        try:
            token = Path(file).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise MissingFileError(f"No file '{file}' to read a token from.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"Cannot read a token from '{file}': {error}.") from error
    if token is None:
        return None
    token = token.strip()
    if len(token) < LEAST_LENGTH or not re.fullmatch(r"[!-~]+", token):
        raise InputError(
            f"{source} must hold a token: at least {LEAST_LENGTH} ASCII letters, digits and signs "
            "without spaces. Make one: openssl rand -hex 32"
        )
    return token


def check_exposure(host: str, token: str | None) -> None:
    """Raise where other machines could ask without a token."""
    if token is None and not is_loopback(host):
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


def is_token(authorization: bytes, token: str) -> bool:
    """Compare an Authorization header with the token, in a time that tells nothing."""
    scheme, _, given = authorization.partition(b" ")
    right = hmac.compare_digest(given.strip(), token.encode())
    return right and scheme.lower() == b"bearer"
