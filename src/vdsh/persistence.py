"""Model folders: manifest.json, weights.safetensors, vocabulary.txt and README.md. No pickle.

A folder is whole or absent (`vdsh.files`). The manifest holds the
size and SHA-256 of the other files, which tells a damaged folder from a good one.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from vdsh.errors import FolderError, InputError, MissingFileError, OutputExistsError
from vdsh.files import new_folder

FORMAT = 2  # 1 had models of words and vectors together
MANIFEST, WEIGHTS, VOCABULARY, CARD = (
    "manifest.json",
    "weights.safetensors",
    "vocabulary.txt",
    "README.md",
)
_LARGEST = 1 << 26  # bytes of a manifest: a thousand times what the largest has
_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}  # all that a model learns
_BOXES: dict[str, Any] = {"set": set, "frozenset": frozenset, "tuple": tuple}


class Folder(NamedTuple):
    """What a model folder holds."""

    manifest: dict[str, Any]  # everything that is not an array: class, settings, fitted scalars
    weights: dict[str, NDArray[Any]]
    vocabulary: list[str] | None  # the terms in column order; None for a model without text


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
    with reading(path):
        if not path.exists():
            raise MissingFileError(
                f"No model at '{path}'. Make one with: vdsh fit DOCS --out {path}"
            )
        if not (path / MANIFEST).is_file():
            raise FolderError(f"'{path}' is not a vdsh model: it has no {MANIFEST}.")
        manifest = _read_manifest(path)
        for name, facts in manifest["files"].items():
            _check_file(path, name, facts)
        try:
            weights = _read_tensors(path / WEIGHTS)
        except SafetensorError as error:
            raise FolderError(f"'{path}' is damaged: {WEIGHTS} cannot be read ({error}).") from None
        vocabulary = None
        if VOCABULARY in manifest["files"]:
            vocabulary = (path / VOCABULARY).read_bytes().decode().split("\n")[:-1]
    return Folder(manifest, weights, vocabulary)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a model folder into a sentence."""
    try:
        yield
    except (FolderError, MissingFileError):
        raise
    except OSError as error:
        raise FolderError(f"Cannot read '{path}': {error.strerror or error}.") from error
    except _WRONG as e:
        reason = " ".join(f"{type(e).__name__} {e}".split())[:300].rstrip(".")
        raise FolderError(f"'{path}' is damaged: {reason}. Train or copy it again.") from e


def to_json(name: str, value: Any) -> Any:
    """Return a setting as JSON holds it, so that `from_json` gives an equal one back.

    >>> to_json("stop_words", {"b", "a"})
    {'set': ['a', 'b']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list):
        return [to_json(name, item) for item in value]
    if isinstance(value, dict) and not any(kind in value for kind in _BOXES):
        return {str(key): to_json(name, item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        value = type(value)(to_json(name, item) for item in value)
    for kind, box in _BOXES.items():
        if type(value) is box:
            items = sorted(value, key=repr) if kind != "tuple" else value
            return {kind: [to_json(name, item) for item in items]}
    raise InputError(
        f"A model folder cannot hold {name}={value!r}. Give numbers, texts, or lists, tuples and "
        "sets of them."
    )


def jsonable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a manifest holds them; a generator of random numbers has had its use."""
    drawn = np.random.RandomState | np.random.Generator
    return {
        name: None if isinstance(value, drawn) else to_json(name, value)
        for name, value in settings.items()
    }


def from_json(value: Any) -> Any:
    """Return the setting that `to_json` was given."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    for kind, box in _BOXES.items():
        if value.keys() == {kind}:
            return box(from_json(value[kind]))
    return {name: from_json(item) for name, item in value.items()}


def write_tensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], facts: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; what goes wrong is an OSError as for any file."""
    try:
        save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path, facts)
    except SafetensorError as error:
        raise OSError(f"{error}") from error


def _read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a safetensors file; what it says of itself is checked by the library.

    Its own way of reading holds the file twice, mapped and copied: too much for a single search.
    """
    with safe_open(path, "np") as file:
        names = set(file.keys())
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header, arrays = json.loads(file.read(length)), {}
        for name in names:
            entry = header[name]
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            flat = np.fromfile(file, dtype, (end - begin) // dtype.itemsize)
            arrays[name] = flat.reshape(entry["shape"])
    return arrays


def _write_files(draft: Path, folder: Folder, card: str) -> None:
    write_tensors(draft / WEIGHTS, folder.weights)
    if folder.vocabulary is not None:
        lines = "".join(f"{term}\n" for term in folder.vocabulary)
        (draft / VOCABULARY).write_text(lines, encoding="utf-8", newline="\n")
    files = {file.name: _facts(file) for file in sorted(draft.iterdir())}
    manifest: Mapping[str, Any] = {"format": FORMAT, **folder.manifest, "files": files}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    for name, content in ((MANIFEST, text), (CARD, card)):
        # Half a surrogate pair in a label becomes the escape that JSON has for it.
        (draft / name).write_text(content, encoding="utf-8", errors="backslashreplace")


def _facts(file: Path) -> dict[str, Any]:
    with file.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest; its format and its list of files are what they should be."""
    file = path / MANIFEST
    if file.stat().st_size > _LARGEST:
        raise FolderError(f"'{path}' is damaged: its {MANIFEST} has {file.stat().st_size} bytes.")
    try:
        manifest: dict[str, Any] = json.loads(file.read_bytes())
        version, files = manifest["format"], manifest["files"]
        is_good = isinstance(version, int) and {WEIGHTS} <= files.keys() <= {WEIGHTS, VOCABULARY}
    except _WRONG:
        is_good = False
    if not is_good:
        raise FolderError(f"'{path}' is damaged: its {MANIFEST} cannot be read.")
    if version != FORMAT:
        advice = "Upgrade vdsh to open it." if version > FORMAT else "Train the model again."
        raise FolderError(
            f"'{path}' has format {version}; this version reads format {FORMAT}. {advice}"
        )
    return manifest


def _check_file(path: Path, name: str, facts: dict[str, Any]) -> None:
    file = path / name
    if not file.is_file():
        raise FolderError(f"'{path}' is incomplete: {name} is missing.")
    if file.stat().st_size != facts["bytes"]:
        raise FolderError(
            f"'{path}' is damaged: {name} has {file.stat().st_size} bytes instead of "
            f"{facts['bytes']}. Copy it again or train anew."
        )
    if _facts(file) != facts:
        raise FolderError(f"'{path}' is damaged: the checksum of {name} does not match.")
