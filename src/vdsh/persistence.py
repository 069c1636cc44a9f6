"""Model folders: manifest.json, weights.safetensors, vocabulary.txt and README.md. No pickle.

A folder is whole or absent (`vdsh.files`). The manifest holds the
size and SHA-256 of the other files, which tells a damaged folder from a good one.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from vdsh.errors import FolderError, MissingFileError, OutputExistsError
from vdsh.files import new_folder

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
    with new_folder(path) as draft:
        _write_files(draft, folder, card)


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


def write_tensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], facts: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; what goes wrong is an OSError as for any file."""
    try:
        save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path, facts)
    except SafetensorError as error:
        raise OSError(f"{error}") from error


def _write_files(draft: Path, folder: Folder, card: str) -> None:
    write_tensors(draft / WEIGHTS, folder.weights)
    if folder.vocabulary is not None:
        lines = "".join(f"{term}\n" for term in folder.vocabulary)
        (draft / VOCABULARY).write_text(lines, encoding="utf-8", newline="\n")
    files = {file.name: _facts(file) for file in sorted(draft.iterdir())}
    manifest: Mapping[str, Any] = {"format": FORMAT, **folder.manifest, "files": files}
    (draft / MANIFEST).write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (draft / CARD).write_text(card, encoding="utf-8")


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
