"""Download files: with a bar, resumed where they broke off, checked, whole or absent."""

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdsh.errors import DownloadError, VdshError, WriteError
from vdsh.files import put

_BLOCK = 1 << 16
_TRIES = 4  # in a row without a single byte
_BROKEN: tuple[type[Exception], ...] = (urllib.error.URLError, http.client.HTTPException)
_BROKEN += (ConnectionError, TimeoutError, ssl.SSLError)
Listener = Callable[[int, int | None], None]  # bytes here, bytes in all if known


@dataclass(frozen=True)
class File:
    """A published file."""

    name: str
    # Where it is published, in the order to try; empty where there is no direct address.
    urls: tuple[str, ...]
    # None where no checksum was published: the first download's is then kept beside the file.
    sha256: str | None = None
    size: str = ""  # as its publisher gives it

    def addresses(self) -> tuple[str, ...]:
        """Give the addresses to try: the mirror's alone where VDSH_MIRROR names one."""
        mirror = os.environ.get("VDSH_MIRROR")
        return (f"{mirror.rstrip('/')}/{self.name}",) if mirror else self.urls


def fetch(
    file: File,
    folder: Path,
    *,
    home: str,
    quiet: bool = False,
    timeout: float = 30,
    wait: float = 0.5,
) -> Path:
    """Bring a file into a folder unless it is there, and check it.

    What a broken download left, `NAME.part`, is continued. A file with the wrong checksum is kept
    aside as `NAME.wrong-checksum`.

    `home`: the page to name where the file cannot be had. `timeout` and `wait`: seconds: of silence
    before a connection counts as broken, and before it is tried again.
    """
    path, part = folder / file.name, folder / f"{file.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _check(file, path)
        else:
            _download(file, part, home, quiet, timeout, wait)
            _check(file, part)
            put(part, path)
    except OSError as error:
        if isinstance(error, VdshError):
            raise
        reason = error.strerror or error
        raise WriteError(f"Could not write to '{folder}': {reason}.") from error
    return path


def recorded_sum(path: Path) -> str | None:
    """Read the checksum that the first download of a file left beside it."""
    beside = path.with_name(f"{path.name}.sha256")
    return beside.read_text().split()[0] if beside.exists() else None


def _check(file: File, path: Path) -> None:
    final = path.with_name(file.name)
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    wanted = file.sha256 or recorded_sum(final)
    if wanted is None:
        final.with_name(f"{file.name}.sha256").write_text(f"{found}  {file.name}\n")
    elif found != wanted:
        aside = final.with_name(f"{file.name}.wrong-checksum")
        os.replace(path, aside)
        raise DownloadError(
            f"{file.name} has the wrong checksum and is not used: sha256 {found} instead of "
            f"{wanted}. It is kept as '{aside}'. Download it again, or check its source."
        )


def _download(file: File, part: Path, home: str, quiet: bool, timeout: float, wait: float) -> None:
    from rich.progress import DownloadColumn, TransferSpeedColumn

    from vdsh.progress import progress_bar

    reasons = []
    with progress_bar(DownloadColumn(), TransferSpeedColumn(), enabled=not quiet) as bar:
        task = bar.add_task(file.name, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        for url in file.addresses():
            try:
                return _persist(url, part, show, timeout, wait)
            except _BROKEN as error:
                reasons.append(f"{url} gave {_reason(error)}")
    raise DownloadError(
        f"Could not download {file.name}: {'; '.join(reasons) or 'it has no direct address'}. "
        f"Download it by hand from {home} into '{part.parent}', or give a folder that holds the "
        "corpus with root= or VDSH_DATA."
    )


def _persist(url: str, part: Path, show: Listener, timeout: float, wait: float) -> None:
    """Download, and go on where it broke off until it is done or nothing comes any more."""
    tries = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            return _continue(url, part, show, timeout)
        except _BROKEN as error:
            gained = part.exists() and part.stat().st_size > before
            tries = 0 if gained else tries + 1
            if not gained and (_is_final(error) or tries == _TRIES):
                raise
        time.sleep(wait * 2**tries)


def _continue(url: str, part: Path, show: Listener, timeout: float) -> None:
    """Ask for the bytes that are missing and append them."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "vdsh"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 416:
                raise
            if error.headers.get("Content-Range") == f"bytes */{start}":
                return  # all of it is here already
        part.unlink()
        return _continue(url, part, show, timeout)
    with response:
        if not _goes_on(response, start):
            start = 0
        _append(response, part, start, show)


def _goes_on(response: Any, start: int) -> bool:
    """Tell whether the answer begins where asked; a server may ignore Range and send it all."""
    sent = response.headers.get("Content-Range") or ""
    return response.status == 206 and sent.startswith(f"bytes {start}-")


def _append(response: Any, part: Path, start: int, show: Listener) -> None:
    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    with part.open("ab" if start else "wb") as file:
        while block := response.read(_BLOCK):
            file.write(block)
            start += len(block)
            show(start, total)
    if total is not None and start < total:
        raise ConnectionError(f"the connection broke after {start:,} of {total:,} bytes")


def _is_final(error: BaseException) -> bool:
    """Tell whether trying again is useless: no such page, or no way to the server."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500 and error.code != 429
    return isinstance(error, urllib.error.URLError) and not isinstance(error.reason, TimeoutError)


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} ({error.reason})"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"'{getattr(cause, 'strerror', None) or cause}'"
