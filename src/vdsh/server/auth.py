"""Who may ask: requests that come from this machine, and what is open to all."""

import re
from ipaddress import ip_address

from vdsh.errors import InputError
from vdsh.server.tokens import VARIABLE, Tokens

# Open to all: a browser loads them without a token, and they say nothing about the documents.
OPEN_PATHS = {"/", "/health", "/ready", "/docs", "/openapi.json"}
OPEN_FOLDERS = ("/page/", "/docs/")


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
