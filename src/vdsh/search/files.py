"""Index files: a header in JSON, then plain arrays that are mapped into memory as they lie.

Nothing is pickled. Each array carries a checksum, so a damaged file is told apart from a good one
before any of it is used.
"""

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError, MissingFileError
from vdsh.files import new_file

MAGIC = b"vdsh-idx"
FORMAT = 1
ALIGNMENT = 64
DTYPES = ("uint8", "uint32", "int32", "int64", "bool")

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file that is whole or absent.

    Parameters
    ----------
    path : Path
    facts : mapping
        Anything JSON can hold, returned by `map_arrays` as it is.
    arrays : dict of ndarray
    """
    with new_file(path) as draft, draft.open("wb") as file:
        _write(file, facts, {name: np.ascontiguousarray(a) for name, a in arrays.items()})


def map_arrays(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Map a file written by `write_arrays`; return its facts and arrays."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # Copy on write: arrays may be changed in memory, the file never is.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    except FileNotFoundError:
        raise MissingFileError(f"No index file '{path}'.") from None
    except OSError as error:
        raise FolderError(f"Cannot read the index '{path}': {error.strerror}.") from error
    header, start = _read_header(path, data)
    if header["format"] > FORMAT:
        raise FolderError(
            f"'{path}' has format {header['format']}; this version reads up to {FORMAT}. "
            "Upgrade vdsh to open it."
        )
    arrays = {entry["name"]: _map(path, data, start, entry) for entry in header["arrays"]}
    return header["facts"], arrays


def damaged(path: Path) -> FolderError:
    """Make the error for a file that is not what was written."""
    return FolderError(f"The index '{path}' is damaged or cut short. Build it again.")


def _write(file: BinaryIO, facts: Mapping[str, Any], arrays: Arrays) -> None:
    entries: list[dict[str, Any]] = []
    offset = 0
    for name, array in arrays.items():
        offset = _aligned(offset)
        kind = {"dtype": str(array.dtype), "shape": array.shape}
        entries.append(kind | {"name": name, "offset": offset, "checksum": _checksum(array)})
        offset += array.nbytes
    header = json.dumps({"format": FORMAT, "facts": facts, "arrays": entries}).encode()
    lengths = np.array([len(header), zlib.crc32(header)], "<u8").tobytes()
    start = _aligned(len(MAGIC) + len(lengths) + len(header))
    file.write((MAGIC + lengths + header).ljust(start, b"\0"))
    for entry, array in zip(entries, arrays.values(), strict=True):
        file.write(b"\0" * (start + entry["offset"] - file.tell()))
        file.write(array.reshape(-1).view(np.uint8).data)


def _read_header(path: Path, data: mmap.mmap | bytes) -> tuple[dict[str, Any], int]:
    begin = len(MAGIC) + 16
    if data[: len(MAGIC)] != MAGIC:
        raise FolderError(f"'{path}' is not an index file of vdsh.")
    if len(data) < begin:
        raise damaged(path)
    length, checksum = np.frombuffer(data[len(MAGIC) : begin], "<u8").tolist()
    text = data[begin : begin + length]
    if len(text) != length or zlib.crc32(text) != checksum:
        raise damaged(path)
    header: dict[str, Any] = json.loads(text)
    return header, _aligned(begin + length)


def _map(path: Path, data: mmap.mmap | bytes, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    if entry["dtype"] not in DTYPES:
        raise damaged(path)
    dtype = np.dtype(entry["dtype"])
    count = int(np.prod(entry["shape"], dtype=np.int64))
    offset = start + entry["offset"]
    if offset < 0 or count < 0 or offset + count * dtype.itemsize > len(data):
        raise damaged(path)
    array = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
    if _checksum(array) != entry["checksum"]:
        raise damaged(path)
    return array.reshape(entry["shape"])


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
