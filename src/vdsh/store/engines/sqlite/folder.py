"""The folder of a store: whether it is one, and the model inside."""

from pathlib import Path

from vdsh.errors import FolderError, OutputExistsError
from vdsh.model import Model
from vdsh.persistence import MANIFEST
from vdsh.store.engines.sqlite.database import FILE
from vdsh.store.model import FOLDER, load_model


def holds_store(folder: Path) -> bool:
    """Say whether there is a store; refuse places that belong to something else."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise FolderError(f"'{folder}' is a file, but a store is a folder. Give another path.")
    if (folder / FILE).is_file():
        return True
    # A model, or a draft of one, is left where making a store was interrupted.
    others = [f.name for f in folder.iterdir() if f.name != FOLDER and not f.name.startswith(".")]
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


def keep_inside(place: Path, model: Model) -> None:
    """Write the model into the store; refuse where another one lies there."""
    try:
        model.save(place)
    except OutputExistsError:  # from an earlier attempt, or from another process just now
        if load_model(place).fingerprint != model.fingerprint:
            raise FolderError(
                f"'{place}' holds another model. Give a new folder for the store."
            ) from None
