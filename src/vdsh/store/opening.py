"""Open a local store, or make one, with the model that belongs to it."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.errors import FolderError, InputError, MissingFileError, OutputExistsError, WriteError
from vdsh.store.database import FILE, FORMAT, Database
from vdsh.store.local import LocalStore
from vdsh.store.model import StoreModel, fingerprint, load_hasher

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

MODEL = "model"
KEEPING = ("inside", "reference")


def open_local(
    path: str | os.PathLike[str], hasher: Any, *, keep_model: str, wait: float
) -> LocalStore:
    """Do what `vdsh.store.open_store` says, for a folder."""
    if keep_model not in KEEPING:
        raise InputError(f'keep_model must be "inside" or "reference". Got {keep_model!r}.')
    folder = Path(path)
    if not _holds_store(folder) and hasher is None:
        raise MissingFileError(
            f"No store at '{folder}'. Give a model to make one: open_store(path, hasher), or "
            f"vdsh index MODEL DOCS --store {folder}."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"Could not make '{folder}': {error.strerror}.") from error
    database = Database(folder, wait=wait)
    try:
        meta = database.meta() or _create(database, hasher, keep_model)
        return LocalStore(database, meta, _find_model(folder, meta, hasher))
    except BaseException:
        database.close()
        raise


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
    model = load_hasher(hasher)
    if keep_model == "reference":
        if not isinstance(hasher, str | os.PathLike):
            raise InputError('keep_model="reference" needs the path of a model folder as hasher.')
        place = str(Path(hasher).absolute())
    else:
        place = MODEL
        _keep_inside(database.folder / MODEL, model)
    return database.create(
        {
            "format": str(FORMAT),
            "uuid": uuid.uuid4().hex,
            "n_bits": str(model.hasher_.n_bits),
            "fingerprint": fingerprint(model),
            "keep_model": keep_model,
            "model": place,
        }
    )


def _keep_inside(place: Path, model: "TextHasher") -> None:
    try:
        model.save(place)
    except OutputExistsError:  # from an earlier attempt, or from another process just now
        if fingerprint(load_hasher(place)) != fingerprint(model):
            raise FolderError(
                f"'{place}' holds another model. Give a new folder for the store."
            ) from None


def _find_model(folder: Path, meta: Mapping[str, str], hasher: Any) -> StoreModel:
    """Return the store's model; one that was given must be the same."""
    n_bits, made_with = int(meta["n_bits"]), meta["fingerprint"]
    place = folder.absolute() / meta["model"]  # an absolute path stays as it is
    if hasher is None or _is_path_of(hasher, place):
        return StoreModel(n_bits, made_with, place)
    model = load_hasher(hasher)
    given = fingerprint(model)
    if given != made_with:
        raise InputError(
            f"'{folder}' was made with another model ({n_bits} bits, {made_with[:12]}) than the "
            f"one given ({model.hasher_.n_bits} bits, {given[:12]}). Open it without a model, or "
            "index the documents into a new store."
        )
    return StoreModel(n_bits, made_with, place, model)


def _is_path_of(hasher: Any, place: Path) -> bool:
    return isinstance(hasher, str | os.PathLike) and Path(hasher).resolve() == place.resolve()
