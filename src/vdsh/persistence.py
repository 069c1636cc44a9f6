"""Model folders: manifest.json, weights.safetensors, vocabulary.txt and README.md. No pickle.

A folder is whole or absent (`vdsh.files`). The manifest holds the
size and SHA-256 of the other files, which tells a damaged folder from a good one. A database keeps
the same files (`to_files`, `from_files`).
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save, save_file

from vdsh.errors import FolderError, InputError, MissingFileError, OutputExistsError
from vdsh.files import new_folder

FORMAT = 2  # 1 had models of words and vectors together
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
VOCABULARY, CARD = "vocabulary.txt", "README.md"
_LARGEST = 1 << 26  # bytes of a manifest: a thousand times what the largest has
_WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# All that a model learns, and the codes and hashes of its profile.
_DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "|u1", "U32": "<u4"}
_BOXES: dict[str, Any] = {"set": set, "frozenset": frozenset, "tuple": tuple}

Open = Callable[[str], BufferedIOBase]  # opens a file of a model by its name


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
        for name, content in to_files(folder, card).items():
            (draft / name).write_bytes(content)


def to_files(folder: Folder, card: str) -> dict[str, bytes]:
    """Give the files of a model folder by name."""
    arrays = {name: np.ascontiguousarray(array) for name, array in folder.weights.items()}
    files = {WEIGHTS: save(arrays)}
    if folder.vocabulary is not None:
        files[VOCABULARY] = "".join(f"{term}\n" for term in folder.vocabulary).encode()
    facts = {name: _facts(BytesIO(files[name])) for name in sorted(files)}
    manifest: Mapping[str, Any] = {"format": FORMAT, **folder.manifest, "files": facts}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    for name, content in ((MANIFEST, text), (CARD, card)):
        # Half a surrogate pair in a label becomes the escape that JSON has for it.
        files[name] = content.encode(errors="backslashreplace")
    return files


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

    def open_file(name: str) -> BufferedIOBase:
        if not (path / name).is_file():
            raise FileNotFoundError(name)
        return (path / name).open("rb")

    with reading(path):
        if not path.exists():
            raise MissingFileError(
                f"No model at '{path}'. Make one with: vdsh fit DOCS --out {path}"
            )
        if not (path / MANIFEST).is_file():
            raise FolderError(f"'{path}' is not a vdsh model: it has no {MANIFEST}.")
        manifest = _read_manifest(open_file, path)
        for name, facts in manifest["files"].items():
            _check_file(open_file, name, facts, path)
        return _read(open_file, manifest)


def from_files(files: Mapping[str, bytes], shown: str) -> Folder:
    """Read what `to_files` gave; sums are not checked: a store knows the model's fingerprint."""

    def open_file(name: str) -> BufferedIOBase:
        if name not in files:
            raise FileNotFoundError(name)
        return BytesIO(files[name])

    with reading(shown):
        return _read(open_file, _read_manifest(open_file, shown))


def _read(open_file: Open, manifest: dict[str, Any]) -> Folder:
    with open_file(WEIGHTS) as file:
        weights = _read_tensors(file)
    vocabulary = None
    if VOCABULARY in manifest["files"]:
        with open_file(VOCABULARY) as file:
            vocabulary = file.read().decode().split("\n")[:-1]
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


def _read_tensors(file: BufferedIOBase) -> dict[str, NDArray[Any]]:
    """Read a safetensors file; what it says of itself is checked first.

    The library's own way of reading holds the file twice, mapped and copied: too much for a single
    search.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, _LARGEST):
        raise ValueError(f"{WEIGHTS} has a head of {length} bytes")
    header: dict[str, Any] = json.loads(file.read(length))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        (begin, end), shape = entry["data_offsets"], entry["shape"]
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        sound = all(type(n) is int and n >= 0 for n in (begin, end, *shape))
        n_bytes = dtype.itemsize * math.prod(shape) if sound else -1
        if n_bytes != end - begin or 8 + length + end > size:
            raise ValueError(f"{WEIGHTS} has an array '{name}' that does not fit")
        flat = np.empty(n_bytes, np.uint8)
        file.seek(8 + length + begin)
        if file.readinto(flat.data) != n_bytes:
            raise ValueError(f"{WEIGHTS} is cut")
        arrays[name] = flat.view(dtype).reshape(shape)
    return arrays


def _facts(file: BufferedIOBase) -> dict[str, Any]:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": file.seek(0, os.SEEK_END), "sha256": digest}


def _read_manifest(open_file: Open, shown: str | Path) -> dict[str, Any]:
    """Read the manifest; its format and its list of files are what they should be."""
    with open_file(MANIFEST) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise FolderError(f"'{shown}' is damaged: its {MANIFEST} has over {_LARGEST} bytes.")
    try:
        manifest: dict[str, Any] = json.loads(content)
        version, files = manifest["format"], manifest["files"]
        is_good = isinstance(version, int) and {WEIGHTS} <= files.keys() <= {WEIGHTS, VOCABULARY}
    except _WRONG:
        is_good = False
    if not is_good:
        raise FolderError(f"'{shown}' is damaged: its {MANIFEST} cannot be read.")
    if version != FORMAT:
        advice = "Upgrade vdsh to open it." if version > FORMAT else "Train the model again."
        raise FolderError(
            f"'{shown}' has format {version}; this version reads format {FORMAT}. {advice}"
        )
    return manifest


def _check_file(open_file: Open, name: str, facts: dict[str, Any], shown: str | Path) -> None:
    try:
        with open_file(name) as file:
            found = _facts(file)
    except FileNotFoundError:
        raise FolderError(f"'{shown}' is incomplete: {name} is missing.") from None
    if found["bytes"] != facts["bytes"]:
        raise FolderError(
            f"'{shown}' is damaged: {name} has {found['bytes']} bytes instead of "
            f"{facts['bytes']}. Copy it again, or train a new model."
        )
    if found != facts:
        raise FolderError(f"'{shown}' is damaged: the checksum of {name} does not match.")
