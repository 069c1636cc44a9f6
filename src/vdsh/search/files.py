"""Index files: a header in JSON, then plain arrays that are mapped into memory as they lie.

Nothing is pickled. Each array carries a checksum, so a damaged file is told apart from a good one
before any of it is used.
"""

import json
import math
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
    try:
        if header["format"] > FORMAT:
            raise FolderError(
                f"'{path}' has format {header['format']}; this version reads up to {FORMAT}. "
                "Upgrade vdsh to open it."
            )
        return dict(header["facts"]), _map_all(data, start, header["arrays"])
    except FolderError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged(path) from error


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


def _read_header(path: Path, data: mmap.mmap | bytes) -> tuple[Any, int]:
    begin = len(MAGIC) + 16
    if data[: len(MAGIC)] != MAGIC:
        raise FolderError(f"'{path}' is not an index file of vdsh.")
    if len(data) < begin:
        raise damaged(path)
    length, checksum = np.frombuffer(data[len(MAGIC) : begin], "<u8").tolist()
    text = data[begin : begin + length]
    if len(text) != length or zlib.crc32(text) != checksum:
        raise damaged(path)
    try:
        return json.loads(text), _aligned(begin + length)
    except (ValueError, RecursionError) as error:
        raise damaged(path) from error


def _map_all(data: mmap.mmap | bytes, start: int, entries: list[dict[str, Any]]) -> Arrays:
    """Map the arrays, which lie one after the other; raise a ValueError where they do not."""
    arrays: Arrays = {}
    end = start
    for entry in entries:
        offset, shape = start + entry["offset"], entry["shape"]
        if entry["dtype"] not in DTYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError("no such array")
        dtype, count = np.dtype(entry["dtype"]), math.prod(shape)
        if offset != _aligned(end) or offset + count * dtype.itemsize > len(data):
            raise ValueError("an array does not lie where it should")
        array = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
        if _checksum(array) != entry["checksum"]:
            raise ValueError("a checksum does not match")
        arrays[str(entry["name"])] = array.reshape(shape)
        end = offset + array.nbytes
    return arrays


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
