"""Model folders: manifest.json, weights.safetensors, vocabulary.txt and README.md. No pickle.

A folder is written beside its place and renamed, so it is whole or absent. The manifest holds the
size and SHA-256 of the other files, which tells a damaged folder from a good one.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from vdsh.errors import FolderError, MissingFileError, OutputExistsError, WriteError

FORMAT = 1
MANIFEST, WEIGHTS, VOCABULARY, CARD = (
    "manifest.json",
    "weights.safetensors",
    "vocabulary.txt",
    "README.md",
)


class Folder(NamedTuple):
    """What a model folder holds.

    Attributes
    ----------
    manifest : dict
        Everything that is not an array: class, settings, fitted scalars.
    weights : dict of ndarray
    vocabulary : list of str or None
        The terms in column order; None for a model without text.
    """

    manifest: dict[str, Any]
    weights: dict[str, NDArray[Any]]
    vocabulary: list[str] | None


def write_folder(
    path: str | os.PathLike[str], folder: Folder, card: str, *, force: bool = False
) -> None:
    """Write a model folder in one step; `force` replaces an older model, never anything else."""
    path = Path(path)
    check_free(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise WriteError(f"Could not write '{path}': {error.strerror}.") from error
    try:
        _write_files(draft, folder, card)
        draft.chmod(0o755)
        swap(draft, path)
    except OSError as error:
        raise WriteError(
            f"Could not write '{path}': {error.strerror or error}. Nothing was changed there."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_free(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise unless a model may be written to `path`."""
    path = Path(path)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not force:
        raise OutputExistsError(
            f"'{path}' exists. Choose another place or use --force (force=True)."
        )
    if not (path / MANIFEST).is_file():
        raise OutputExistsError(
            f"'{path}' is not a vdsh model, so it is not replaced even by force."
        )


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """Read a model folder and check that it is whole."""
    path = Path(path)
    if not path.exists():
        raise MissingFileError(f"No model at '{path}'. Make one with: vdsh fit DOCS --out {path}")
    if not (path / MANIFEST).is_file():
        raise FolderError(f"'{path}' is not a vdsh model: it has no {MANIFEST}.")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        version, files = manifest["format"], manifest["files"]
    except (ValueError, KeyError, TypeError):
        raise FolderError(f"'{path}' is damaged: its {MANIFEST} cannot be read.") from None
    if version > FORMAT:
        raise FolderError(
            f"'{path}' has format {version}; this version reads up to {FORMAT}. "
            "Upgrade vdsh to open it."
        )
    for name, facts in files.items():
        _check_file(path, name, facts)
    try:
        weights = load_file(path / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise FolderError(f"'{path}' is damaged: {WEIGHTS} cannot be read ({error}).") from None
    vocabulary = None
    if VOCABULARY in files:
        vocabulary = (path / VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]
    return Folder(manifest, weights, vocabulary)


def _write_files(draft: Path, folder: Folder, card: str) -> None:
    weights = {name: np.ascontiguousarray(array) for name, array in folder.weights.items()}
    try:
        save_file(weights, draft / WEIGHTS)
    except SafetensorError as error:
        raise OSError(f"{error}") from error
    if folder.vocabulary is not None:
        lines = "".join(f"{term}\n" for term in folder.vocabulary)
        (draft / VOCABULARY).write_text(lines, encoding="utf-8", newline="\n")
    files = {file.name: _facts(file) for file in sorted(draft.iterdir())}
    manifest: Mapping[str, Any] = {"format": FORMAT, **folder.manifest, "files": files}
    (draft / MANIFEST).write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (draft / CARD).write_text(card, encoding="utf-8")
    for file in draft.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


def swap(draft: Path, path: Path) -> None:
    """Move a finished folder into place, the older one out of the way first."""
    old = draft.with_name(draft.name + ".old")
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


def _facts(file: Path) -> dict[str, Any]:
    with file.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}


def _check_file(path: Path, name: str, facts: dict[str, Any]) -> None:
    file = path / Path(name).name
    if not file.is_file():
        raise FolderError(f"'{path}' is incomplete: {name} is missing.")
    if file.stat().st_size != facts["bytes"]:
        raise FolderError(
            f"'{path}' is damaged: {name} has {file.stat().st_size} bytes instead of "
            f"{facts['bytes']}. Copy it again or train anew."
        )
    if _facts(file) != facts:
        raise FolderError(f"'{path}' is damaged: the checksum of {name} does not match.")
