"""Open a store, or make one, with the model that belongs to it."""

import os
import re
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vdsh.codes import MAX_BITS
from vdsh.errors import FolderError, InputError, MissingFileError, OutputExistsError, WriteError
from vdsh.model import Model
from vdsh.persistence import MANIFEST
from vdsh.search.id_kinds import show
from vdsh.store.engine import Engine
from vdsh.store.local import LocalStore
from vdsh.store.local.database import FILE, FORMAT, Database
from vdsh.store.model import StoreModel, load_model
from vdsh.store.remote import RemoteStore

MODEL = "model"
KEEPING = ("inside", "reference")
# What a store says about itself, the format first.
META = {
    "format": "[0-9]{1,9}",
    "uuid": "[0-9a-f]{32}",
    "n_bits": "|".join(str(n) for n in range(8, MAX_BITS + 1, 8)),
    "fingerprint": "[0-9a-f]{64}",
    "keep_model": "|".join(KEEPING),
    "model": "(?s:.+)",
}


def open_local(
    path: str | os.PathLike[str], hasher: Any, *, keep_model: str, wait: float
) -> LocalStore:
    """Do what `vdsh.store.open_store` says, for a folder."""
    _check_keeping(keep_model)
    folder = Path(path)
    if not _holds_store(folder):
        if hasher is None:
            raise MissingFileError(
                f"No store at '{folder}'. Give a model to make one: open_store(path, hasher), or "
                f"vdsh index MODEL DOCS --store {folder}."
            )
        load_model(hasher)  # a model that cannot be read makes no folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"Could not make '{folder}': {error.strerror}.") from error
    database = Database(folder, wait=wait)
    try:
        meta = database.meta() or _create(database, hasher, keep_model)
        _check_meta(str(folder), meta)
        return LocalStore(database, meta, _find_model(folder, meta, hasher))
    except BaseException:
        database.close()
        raise


def open_remote(engine: Engine, hasher: Any, *, keep_model: str) -> RemoteStore:
    """Do what `vdsh.store.open_store` says, for an engine; close it where that fails."""
    try:
        _check_keeping(keep_model)
        meta = engine.meta()
        if not meta:
            if hasher is None:
                raise MissingFileError(
                    f"No store at '{engine.shown}'. Give a model to make one: "
                    f"open_store(url, hasher), or vdsh index MODEL DOCS --store '{engine.shown}'."
                )
            meta = _create_remote(engine, hasher, keep_model)
        _check_meta(engine.shown, meta)
        return RemoteStore(engine, meta, _find_remote_model(engine, meta, hasher))
    except BaseException:
        engine.close()
        raise


def _check_meta(shown: str, meta: Mapping[str, Any]) -> None:
    """Raise unless a store says about itself what `_new_meta` wrote: names of files come of it."""
    for name, pattern in META.items():
        value = meta.get(name)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise FolderError(
                f"'{shown}' is damaged: its {name} is {show(value)}. Restore a copy, or index the "
                "documents into a new store."
            )
        if name == "format" and int(value) > FORMAT:
            raise FolderError(
                f"'{shown}' has format {value}; this version reads up to {FORMAT}. "
                "Upgrade vdsh to open it."
            )
    if meta["keep_model"] == "inside" and meta["model"] != MODEL:
        raise FolderError(f"'{shown}' is damaged: its model is not inside. Restore a copy.")


def _check_keeping(keep_model: Any) -> None:
    if keep_model not in KEEPING:
        raise InputError(f'keep_model must be "inside" or "reference". Got {keep_model!r}.')


def _holds_store(folder: Path) -> bool:
    """Say whether there is a store; refuse places that belong to something else."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise FolderError(f"'{folder}' is a file, but a store is a folder. Give another path.")
    if (folder / FILE).is_file():
        return True
    # A model, or a draft of one, is left where making a store was interrupted.
    others = [f.name for f in folder.iterdir() if f.name != MODEL and not f.name.startswith(".")]
    if MANIFEST in others:
        raise FolderError(
            f"'{folder}' is a model, not a store. Its README.md says what it learned; "
            f"vdsh index {folder} DOCS --store STORE makes a store with it."
        )
    if others:
        raise FolderError(
            f"'{folder}' is not a store: it has no {FILE}, but {sorted(others)[0]}. "
            "Give the path of a store, or of a new folder."
        )
    return False


def _create(database: Database, hasher: Any, keep_model: str) -> dict[str, str]:
    """Make the tables; the model comes first, so that a store is never without it."""
    if hasher is None:
        raise FolderError(f"The store '{database.folder}' was never finished. Give it a model.")
    model = load_model(hasher)
    meta = _new_meta(hasher, model, keep_model)
    if keep_model == "inside":
        _keep_inside(database.folder / MODEL, model)
    return database.create(meta)


def _create_remote(engine: Engine, hasher: Any, keep_model: str) -> dict[str, str]:
    model = load_model(hasher)
    meta = _new_meta(hasher, model, keep_model)
    if keep_model == "reference":
        return engine.create(meta, {})
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, MODEL))
        files = {file.name: file.read_bytes() for file in Path(folder, MODEL).iterdir()}
    return engine.create(meta, files)


def _new_meta(hasher: Any, model: Model, keep_model: str) -> dict[str, str]:
    """Write down what a store has to remember."""
    if keep_model == "reference" and not isinstance(hasher, str | os.PathLike):
        raise InputError('keep_model="reference" needs the path of a model folder as hasher.')
    return {
        "format": str(FORMAT),
        "uuid": uuid.uuid4().hex,
        "n_bits": str(model.n_bits),
        "fingerprint": model.fingerprint,
        "keep_model": keep_model,
        "model": str(Path(hasher).absolute()) if keep_model == "reference" else MODEL,
    }


def _keep_inside(place: Path, model: Model) -> None:
    try:
        model.save(place)
    except OutputExistsError:  # from an earlier attempt, or from another process just now
        if load_model(place).fingerprint != model.fingerprint:
            raise FolderError(
                f"'{place}' holds another model. Give a new folder for the store."
            ) from None


def _find_model(folder: Path, meta: Mapping[str, str], hasher: Any) -> StoreModel:
    """Return the store's model; one that was given must be the same."""
    place = folder.absolute() / meta["model"]  # an absolute path stays as it is
    given = None if hasher is None or _is_path_of(hasher, place) else load_model(hasher)
    _check_same(str(folder), meta, given)
    return StoreModel(int(meta["n_bits"]), meta["fingerprint"], place, given)


def _find_remote_model(engine: Engine, meta: Mapping[str, str], hasher: Any) -> StoreModel:
    n_bits, made_with, place = int(meta["n_bits"]), meta["fingerprint"], meta["model"]
    given = None if hasher is None else load_model(hasher)
    _check_same(engine.shown, meta, given)
    if meta["keep_model"] == "reference":
        return StoreModel(n_bits, made_with, place, given)

    def load(_: Any) -> Model:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in engine.files().items():
                Path(folder, Path(name).name).write_bytes(content)
            return load_model(folder)

    return StoreModel(n_bits, made_with, engine.shown, given, load=load)


def _check_same(shown: str, meta: Mapping[str, str], model: Model | None) -> None:
    """Raise where a model was given that is not the one the store was made with."""
    n_bits, made_with = int(meta["n_bits"]), meta["fingerprint"]
    if model is not None and (given := model.fingerprint) != made_with:
        raise InputError(
            f"'{shown}' was made with another model ({n_bits} bits, {made_with[:12]}) than the "
            f"one given ({model.n_bits} bits, {given[:12]}). Open it without a model, or "
            "index the documents into a new store."
        )


def _is_path_of(hasher: Any, place: Path) -> bool:
    return isinstance(hasher, str | os.PathLike) and Path(hasher).resolve() == place.resolve()
