"""Files and folders that are whole or absent, by one rule.

What is written lies under a name of its own beside its place, is brought to the disk (fsync) when
it is finished, and is then renamed; so after a crash, too, its name never stands for half of it.
Modes are those that the umask gives to any new file.
"""

import gzip
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from vdsh.errors import InputError, OutputExistsError, VdshError, WriteError


def cache_folder() -> Path:
    """Give the folder of downloads: VDSH_CACHE, $XDG_CACHE_HOME/vdsh or ~/.cache/vdsh."""
    if chosen := os.environ.get("VDSH_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vdsh"


def data_folder() -> Path:
    """Give the folder of stores that have only a name: VDSH_HOME, or where the system keeps data.

    That is $XDG_DATA_HOME/vdsh or ~/.local/share/vdsh; ~/Library/Application Support/vdsh on
    macOS, and %LOCALAPPDATA%/vdsh on Windows.
    """
    if chosen := os.environ.get("VDSH_HOME"):
        return Path(chosen).expanduser().absolute()
    try:
        home = Path.home()
    except RuntimeError as error:
        raise InputError(
            "There is no home folder for stores that have only a name. Set VDSH_HOME to a folder "
            "for them, or give a path, such as ./notes."
        ) from error
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return base / "vdsh"


def check_new(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise where a file is that should not be replaced."""
    if Path(path).exists() and not force:
        raise OutputExistsError(f"'{path}' exists. Choose another file or use --force.")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give an empty file to write to, which takes the place of `path` in the end."""
    with new_files(path) as (draft,):
        yield draft


@contextmanager
def new_files(*paths: Path) -> Iterator[list[Path]]:
    """Give an empty file for each path; all take their places in the end, the first one last."""
    drafts: list[Path] = []
    try:
        with explained(paths[0]):
            for path in paths:
                _check_kind(path)
                drafts.append(_draft_of(path))
                drafts[-1].touch(exist_ok=False)
            mode = drafts[0].stat().st_mode  # by the umask, which only a new file can tell
            yield drafts
            for draft, path in reversed(list(zip(drafts, paths, strict=True))):
                draft.chmod(mode & 0o777)  # some libraries write files of their own
                put(draft, path)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


@contextmanager
def new_gzip_file(path: Path) -> Iterator[gzip.GzipFile]:
    """Write a gzip file that is whole or absent; the same content gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as draft, draft.open("wb") as raw:
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
            yield file


@contextmanager
def new_folder(path: Path, *, replaces: bool = True) -> Iterator[Path]:
    """Give an empty folder to write files into, which takes the place of `path` in the end.

    Unless it `replaces` what is there by then, that stays, and it raises.
    """
    draft = _draft_of(path)
    try:
        with explained(path):
            _check_kind(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.mkdir()
            yield draft
            for file in draft.rglob("*"):
                if file.is_file():
                    file.chmod(draft.stat().st_mode & 0o666)
                    _sync(file)
            if replaces:
                _swap(draft, path)
            else:
                _put_folder(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def put(draft: Path, path: Path) -> None:
    """Bring a finished file to the disk and give it its name."""
    _sync(draft)
    draft.replace(path)


def lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; return False where another process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def locked(file: Path) -> Iterator[bool]:
    """Hold a lock on a file, which is made; give False where another process holds it."""
    try:
        opened = file.open("a")
    except OSError as error:
        raise WriteError(f"Could not write to '{file.parent}': {error.strerror}.") from error
    with opened:
        yield lock(opened)


@contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong while `path` is written into a sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, VdshError | BrokenPipeError):
            raise
        reason = error.strerror or error
        raise WriteError(f"Could not write '{path}': {reason}. Nothing was changed.") from error


def _check_kind(path: Path) -> None:
    """Raise where a device, a pipe or the like would be replaced, also by force."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise WriteError(f"'{path}' is a device or a pipe, which is never replaced.")


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name[:40]}-{os.urandom(4).hex()}")


def _sync(file: Path) -> None:
    with file.open("rb+") as handle:  # Windows syncs only what may be written
        os.fsync(handle.fileno())


def _put_folder(draft: Path, path: Path) -> None:
    """Rename a finished folder, unless another process was faster."""
    try:
        draft.rename(path)
    except OSError as error:
        if not path.exists():
            raise
        raise OutputExistsError(f"'{path}' exists by now. Choose another folder.") from error


def _swap(draft: Path, path: Path) -> None:
    """Rename a finished folder, the older one out of the way first."""
    old = draft.with_name(f"{draft.name}.old")
    replaces = path.exists()
    if replaces:
        path.rename(old)
    try:
        draft.rename(path)
    except OSError:
        if replaces:
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
