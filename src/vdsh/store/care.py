"""Care of a store: what it says about itself, whether it is sound or has drifted, its backup."""

import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import FolderError, InputError, OutputExistsError
from vdsh.files import check_new, explained, new_file, new_folder
from vdsh.model.drift import HELD_OUT, LEAST, Drift, compare, too_few
from vdsh.model.profile import AMONG, make_profile
from vdsh.store.engine import Engine
from vdsh.store.found import pages
from vdsh.store.model import StoreModel
from vdsh.store.rows import read_codes

if TYPE_CHECKING:
    from vdsh.store.store import Store


MANY = 10_000  # codes that are read at a time

RECENT = 1_000  # documents that were written last
MOST_DRAWN = 10_000  # of those that were given: more tell nothing that these do not
OLDEST = "oldest documents of the store (the model kept none from when it learned)"

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


def measure_drift(
    engine: Engine, model: StoreModel, documents: Sequence[Document] | None, n: int
) -> Drift:
    """Hold documents, or the n that were written last, against those from when it learned.

    Half of the store is recent at most. A model that kept nothing from then is held against the
    oldest documents of the store.
    """
    n_stored = engine.count(None)
    recent = documents
    if recent is None:
        recent = [found.document for found in engine.written(min(n, n_stored // 2), last=True)]
    known, ids = model.model.profile, {document.id for document in recent}
    against: str = HELD_OUT
    old: list[Document] = []
    if known is None:
        against, oldest = OLDEST, engine.written(min(n, n_stored // 2), last=False)
        old = [found.document for found in oldest if found.document.id not in ids]
    n_old = len(old) if known is None else known.documents
    if min(len(recent), n_old) < LEAST:
        return too_few(len(recent), n_old, against)
    ids |= {document.id for document in old}
    others = _others(engine, ids, AMONG if known is None else known.among, model.n_bits)
    if known is None:
        known = make_profile(model.model, [document.text for document in old], others)
    now = make_profile(model.model, [document.text for document in recent], others)
    return compare(known, now, against)


def _others(engine: Engine, ids: Collection[str], n: int, n_bits: int) -> Codes | None:
    """Return the codes of n stored documents that are none of these; None where there are fewer."""
    found = [code for id, code in engine.some_codes(n + len(ids)) if id not in ids][:n]
    if len(found) < n:
        return None
    return np.frombuffer(b"".join(found), np.uint8).reshape(n, n_bits // 8)


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
