"""One file that holds a store: made while others write, and put back into a new folder."""

import json
import os
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vdsh.errors import FolderError, InputError, OutputExistsError
from vdsh.files import check_new, explained, new_file, new_folder
from vdsh.store.engine import Engine

if TYPE_CHECKING:
    from vdsh.store.store import Store

ABOUT = "backup.json"
_BROKEN = (tarfile.TarError, EOFError, KeyError, ValueError, TypeError)

Progress = Callable[[int, int], None]


def write_backup(
    engine: Engine, file: Path, *, force: bool = False, progress: Progress | None = None
) -> None:
    """Write one state of a store to a file, which is whole or absent."""
    check_new(file, force=force)
    inside, place = Path(engine.shown).resolve(), file.resolve()
    if inside == place or inside in place.parents:
        raise InputError(f"'{file}' is inside the store. Give a file somewhere else.")
    with explained(file), tempfile.TemporaryDirectory(dir=file.absolute().parent) as folder:
        engine.copy_to(Path(folder), progress)
        parts = sorted(path.name for path in Path(folder).iterdir())
        Path(folder, ABOUT).write_text(json.dumps({"vdsh": "backup", "parts": parts}))
        with new_file(file) as draft, tarfile.open(draft, "w") as archive:
            for part in (ABOUT, *parts):
                archive.add(Path(folder, part), part)


def restore_store(file: str | os.PathLike[str], path: str | os.PathLike[str]) -> "Store":
    """Make a store of a backup, in a new folder, and open it.

    Parameters
    ----------
    file : path
        What `Store.back_up` wrote.
    path : path
        The new store's folder.
    """
    from vdsh.store.opening import open_store

    if not Path(file).is_file():
        raise InputError(f"There is no file '{file}'. Give what vdsh backup wrote.")
    if Path(path).exists():
        raise OutputExistsError(f"'{path}' exists. Restore into a new folder, then rename it.")
    with new_folder(Path(path)) as draft:
        try:
            with tarfile.open(file) as archive:
                about = archive.extractfile(ABOUT)
                if about is None or json.loads(about.read())["vdsh"] != "backup":
                    raise ValueError("of another kind")
                archive.extractall(draft, filter="data")
            (draft / ABOUT).unlink()
        except _BROKEN as error:
            raise FolderError(
                f"'{file}' is not a whole backup of vdsh ({error}). Nothing was restored."
            ) from error
        with open_store(draft) as store:  # or it is not put in place
            store.count()
    return open_store(path)
