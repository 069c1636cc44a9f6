"""Download files: with a bar, from the first address that answers, checked, whole or absent."""

import hashlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vdsh.errors import DownloadError
from vdsh.files import explained, new_file

# Bytes that are read at once.
_BLOCK = 1 << 16
# Seconds of silence before a connection counts as broken.
_TIMEOUT = 30
_BROKEN = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


@dataclass(frozen=True)
class File:
    """A published file.

    Attributes
    ----------
    name : str
    urls : tuple of str
        Where it is published, in the order to try; empty where there is no direct address.
    sha256 : str, optional
        None where no checksum was published.
    size : str
        As its publisher gives it.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    size: str = ""

    def addresses(self) -> tuple[str, ...]:
        """Give the addresses to try: the mirror's alone where VDSH_MIRROR names one."""
        mirror = os.environ.get("VDSH_MIRROR")
        return (f"{mirror.rstrip('/')}/{self.name}",) if mirror else self.urls


def fetch(file: File, folder: Path, *, home: str, quiet: bool = False) -> Path:
    """Bring a file into a folder unless it is there, and check it.

    `home`: the page to name where the file cannot be had.
    """
    path = folder / file.name
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _check(file, path)
            return path
        with new_file(path) as draft:
            _download(file, draft, home, quiet)
            _check(file, draft)
    return path


def _check(file: File, path: Path) -> None:
    with path.open("rb") as handle:
        checksum = hashlib.file_digest(handle, "sha256").hexdigest()
    if file.sha256 not in (None, checksum):
        raise DownloadError(
            f"{file.name} has the wrong checksum and is not used: sha256 {checksum} instead of "
            f"{file.sha256}. Download it again, or check its source."
        )


def _download(file: File, draft: Path, home: str, quiet: bool) -> None:
    from rich.progress import DownloadColumn, TransferSpeedColumn

    from vdsh.progress import progress_bar

    reasons = []
    with progress_bar(DownloadColumn(), TransferSpeedColumn(), enabled=not quiet) as bar:
        show = partial(bar.update, bar.add_task(file.name, total=None))
        for url in file.addresses():
            try:
                return _copy(url, draft, show)
            except _BROKEN as error:
                reasons.append(f"{url} gave {_reason(error)}")
    raise DownloadError(
        f"Could not download {file.name}: {'; '.join(reasons) or 'it has no direct address'}. "
        f"Download it by hand from {home} into '{draft.parent}', or give a folder that holds the "
        "corpus with root= or VDSH_DATA."
    )


def _copy(url: str, draft: Path, show: Callable[..., None]) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "vdsh"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response, draft.open("wb") as file:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        n_read = 0
        while block := response.read(_BLOCK):
            file.write(block)
            n_read += len(block)
            show(completed=n_read, total=total)
    if total is not None and n_read < total:
        raise ConnectionError(f"the connection broke after {n_read:,} of {total:,} bytes")


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} ({error.reason})"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"'{getattr(cause, 'strerror', None) or cause}'"
