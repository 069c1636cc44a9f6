"""Care of a store: what it says about itself, whether it is sound, its backup."""

import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.errors import FolderError, InputError, OutputExistsError
from vdsh.files import check_new, explained, new_file, new_folder
from vdsh.store.engine import Engine
from vdsh.store.found import pages
from vdsh.store.model import StoreModel
from vdsh.store.rows import read_codes

if TYPE_CHECKING:
    from vdsh.store.store import Store


MANY = 10_000  # codes that are read at a time

ABOUT = "backup.json"
_BROKEN = (tarfile.TarError, EOFError, KeyError, ValueError, TypeError)

Progress = Callable[[int, int], None]


def describe(engine: Engine, meta: Mapping[str, str], model: StoreModel) -> dict[str, Any]:
    """Describe a store: how it searches, documents, bits, model, fields, labels, bytes."""
    facts = engine.facts()
    return {
        "path": engine.shown,
        **{name: facts[name] for name in ("engine", "search", "words") if name in facts},
        "documents": engine.count(None),
        "bits": model.n_bits,
        "model": {
            "fingerprint": model.fingerprint,
            "kept": meta["keep_model"],
            "path": model.place,
        },
        "fields": sorted(engine.fields()),
        "labels": len(engine.labels()),
        "bytes": facts["bytes"],
        "format": int(meta["format"]),
        "read_only": engine.read_only,
    }


def find_problems(engine: Engine, model: StoreModel, sample: int) -> list[str]:
    """Say what is wrong with a store and what to do: nothing where all is well."""
    found = list(engine.problems())
    try:
        ids: list[str] = []
        for page in pages(lambda last: engine.code_page(last, MANY), ""):
            ids += read_codes(page, model.n_bits // 8)[0]
        found += _wrong_codes(engine, model, ids, sample)
        engine.code_page("", 1)  # raises where the store has got another model meanwhile
    except FolderError as error:
        found.append(str(error))
    return found


def _wrong_codes(engine: Engine, model: StoreModel, ids: Sequence[str], sample: int) -> list[str]:
    """Encode some documents from all over again; complain where the store has other codes.

    Of vectors a store keeps nothing but codes.
    """
    if not model.model.texts_suffice:
        return []
    chosen = engine.look_up(ids[:: max(1, len(ids) // sample)][:sample])
    codes = model.model.encode([found.document.text for found in chosen])
    n_wrong = sum(one.code != code.tobytes() for one, code in zip(chosen, codes, strict=True))
    if not n_wrong:
        return []
    return [
        f"The codes of {n_wrong:,} of {len(chosen):,} documents are not those of the model. "
        "Index the documents into a new store."
    ]


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
