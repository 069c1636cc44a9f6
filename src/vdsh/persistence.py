"""Model folders: manifest.json, weights.safetensors, vocabulary.txt and README.md. No pickle.

A folder is whole or absent (`vdsh.files`). The manifest holds the
size and SHA-256 of the other files, which tells a damaged folder from a good one. A database keeps
the same files (`to_files`, `from_files`).
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
# What reading a file may raise that is not what was written.
WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# All that a model learns, and the codes and hashes of its profile.
_DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "|u1", "U32": "<u4"}
_BOXES: dict[str, Any] = {"set": set, "frozenset": frozenset, "tuple": tuple}

Raw = NDArray[np.uint8]  # the bytes of a file


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
    facts = {name: _facts(files[name]) for name in sorted(files)}
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
    with reading(path):
        if not path.exists():
            raise MissingFileError(
                f"No model at '{path}'. Make one with: vdsh fit DOCS --out {path}"
            )
        if not (path / MANIFEST).is_file():
            raise FolderError(f"'{path}' is not a vdsh model: it has no {MANIFEST}.")
        with (path / MANIFEST).open("rb") as file:
            manifest = _read_manifest(file.read(_LARGEST + 1), path)
        files = {name: _read_file(path / name, facts) for name, facts in manifest["files"].items()}
        return _read(manifest, files)


def from_files(files: Mapping[str, bytes], shown: str) -> Folder:
    """Read what `to_files` gave; sums are not checked: a store knows the model's fingerprint."""
    with reading(shown):
        manifest = _read_manifest(files[MANIFEST], shown)
        content = {name: np.frombuffer(bytearray(files[name]), "u1") for name in manifest["files"]}
        return _read(manifest, content)


def _read(manifest: dict[str, Any], files: Mapping[str, Raw]) -> Folder:
    vocabulary = None
    if VOCABULARY in files:
        vocabulary = files[VOCABULARY].tobytes().decode().split("\n")[:-1]
    return Folder(manifest, _read_tensors(files[WEIGHTS]), vocabulary)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a model folder into a sentence."""
    try:
        yield
    except (FolderError, MissingFileError):
        raise
    except OSError as error:
        raise FolderError(f"Cannot read '{path}': {error.strerror or error}.") from error
    except WRONG as e:
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


def _read_tensors(data: Raw) -> dict[str, NDArray[Any]]:
    """Give the arrays of a safetensors file, in its memory; what it says of itself is checked.

    The library's own way of reading holds the file twice, mapped and copied: too much for a single
    search.
    """
    length = int.from_bytes(data[:8].tobytes(), "little")
    if not 0 < length <= min(len(data) - 8, _LARGEST):
        raise ValueError(f"{WEIGHTS} has a head of {length} bytes")
    header: dict[str, Any] = json.loads(data[8 : 8 + length].tobytes())
    header.pop("__metadata__", None)
    arrays, data = {}, data[8 + length :]
    for name, entry in header.items():
        (begin, end), shape = entry["data_offsets"], entry["shape"]
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        sound = all(type(n) is int and n >= 0 for n in (begin, end, *shape))
        if not sound or dtype.itemsize * math.prod(shape) != end - begin or end > len(data):
            raise ValueError(f"{WEIGHTS} has an array '{name}' that does not fit")
        array = data[begin:end].view(dtype).reshape(shape)
        arrays[name] = np.require(array, requirements="A")  # the library aligns all, others may not
    return arrays


def _facts(data: bytes | memoryview) -> dict[str, Any]:
    import hashlib  # loads OpenSSL, which a search does without

    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _read_manifest(content: bytes, shown: str | Path) -> dict[str, Any]:
    """Read the manifest; its format and its list of files are what they should be."""
    if len(content) > _LARGEST:
        raise FolderError(f"'{shown}' is damaged: its {MANIFEST} has over {_LARGEST} bytes.")
    try:
        manifest: dict[str, Any] = json.loads(content)
        version, files = manifest["format"], manifest["files"]
        is_good = isinstance(version, int) and {WEIGHTS} <= files.keys() <= {WEIGHTS, VOCABULARY}
    except WRONG:
        is_good = False
    if not is_good:
        raise FolderError(f"'{shown}' is damaged: its {MANIFEST} cannot be read.")
    if version != FORMAT:
        advice = "Upgrade vdsh to open it." if version > FORMAT else "Train the model again."
        raise FolderError(
            f"'{shown}' has format {version}; this version reads format {FORMAT}. {advice}"
        )
    return manifest


def _read_file(path: Path, facts: dict[str, Any]) -> Raw:
    """Read a file that is as the manifest says."""
    if not path.is_file():
        raise FolderError(f"'{path.parent}' is incomplete: {path.name} is missing.")
    n_bytes = path.stat().st_size  # before it is read: it may be too large for that
    if n_bytes != facts["bytes"]:
        raise FolderError(
            f"'{path.parent}' is damaged: {path.name} has {n_bytes} bytes instead of "
            f"{facts['bytes']}. Copy it again, or train a new model."
        )
    data = np.fromfile(path, np.uint8)
    if _facts(data.data) != facts:
        raise FolderError(
            f"'{path.parent}' is damaged: the checksum of {path.name} does not match."
        )
    return data
