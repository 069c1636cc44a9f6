"""Index files: a header in JSON, then plain arrays that are mapped into memory as they lie.

`to_arrays` and `from_arrays` make arrays of an index and back. Nothing is pickled. Each array
carries a checksum, so a damaged file is told apart from a good one before any of it is used.
"""

import json
import math
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError, MissingFileError
from vdsh.files import new_file
from vdsh.search.id_kinds import Ids, IntegerIds, ids_from_file
from vdsh.search.partition import NO_OFFSETS, Partition
from vdsh.search.parts import STRIP, Strips
from vdsh.search.rows import RowIndex
from vdsh.search.tables import NARROWEST, WIDEST, WORD, Tables

MAGIC = b"vdsh-idx"
FORMAT = 2
ALIGNMENT = 64

Arrays = dict[str, NDArray[Any]]

# What each array may be: its types and its number of dimensions.
KINDS = {
    "strips": (("uint8",), 3),
    "offsets": (("uint32",), 1),
    "members": (("uint32",), 1),
    "alive": (("bool",), 1),
    "id_range": (("int64",), 1),
    "ids": (("int32", "int64"), 1),
    "id_text": (("uint8",), 1),
    "id_ends": (("uint32", "int64"), 1),
    "id_keys": (("int64",), 1),
    "numbers": (("int32", "int64"), 1),
    "number_range": (("int64",), 1),
    "luts": (("uint64",), 4),
    "starts": (("uint32",), 2),
    "entries": (("uint8",), 4),
}
TABLES = ("luts", "starts", "entries")  # last in a file: it is whole without them


def to_arrays(rows: RowIndex, ids: Ids, next_id: int | None) -> tuple[dict[str, Any], Arrays]:
    """Describe an index by facts for a header and arrays."""
    main = rows.settled()
    facts = {"n_codes": len(main.strips), "ids": ids.kind, "next_id": next_id}
    arrays: Arrays = {"strips": main.strips.trimmed()}
    if len(main.members):
        arrays |= {"members": main.members}
    if main.grouped:
        arrays |= {"offsets": main.offsets}
    if len(rows) < rows.n_rows:
        arrays["alive"] = rows.alive
    arrays |= ids.arrays()
    if main.tables is not None:
        arrays |= {name: getattr(main.tables, name) for name in TABLES}
    return facts, arrays


def from_arrays(path: Path, threads: int | None) -> tuple[RowIndex, Ids, int | None, IntegerIds]:
    """Read what `to_arrays` described, from a mapped file, and the numbers of the codes."""
    facts, arrays = map_arrays(path)
    with _told_as_damage(path):
        _check_facts(facts)
        strips = Strips(arrays["strips"].shape[1], arrays["strips"], facts["n_codes"])
        offsets, members = arrays.get("offsets", NO_OFFSETS), arrays.get("members", NO_OFFSETS)
        main = Partition(strips, 0, offsets, members, _tables(arrays, strips))
        alive = arrays.get("alive")
        _check_partition(main)
        _check(alive is None or not (alive.view(np.uint8) > 1).any())
        _check_id_text(arrays)
        ids = ids_from_file(facts["ids"], arrays)
        numbered = {"numbers", "number_range"} & arrays.keys()
        numbers = IntegerIds.from_arrays(arrays, "number") if numbered else IntegerIds(range(0))
        alike = ids, arrays.get("id_keys"), alive, numbers if numbered else None
        _check({len(some) for some in alike if some is not None} == {main.n_rows})
    rows = RowIndex.from_partition(main, alive, ids.keys(), threads=threads)
    return rows, ids, facts["next_id"], numbers


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file that is whole or absent.

    `facts`: anything JSON can hold, returned by `map_arrays` as it is.
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
    if data[: len(MAGIC)] != MAGIC:
        raise FolderError(f"'{path}' is not an index file of vdsh.")
    with _told_as_damage(path):
        header, start = _read_header(data)
        if header["format"] > FORMAT:
            raise FolderError(
                f"'{path}' has format {header['format']}; this version reads up to {FORMAT}. "
                "Upgrade vdsh to open it."
            )
        return dict(header["facts"]), _map_all(data, start, header["arrays"])


@contextmanager
def _told_as_damage(path: Path) -> Iterator[None]:
    """Say of a file that is not what was written, whatever that led to, that it is damaged."""
    try:
        yield
    except FolderError:
        raise
    except (LookupError, ValueError, TypeError, OverflowError, RecursionError) as error:
        text = f"The index '{path}' is damaged or cut short. Build it again."
        raise FolderError(text) from error


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


def _read_header(data: mmap.mmap | bytes) -> tuple[Any, int]:
    begin = len(MAGIC) + 16
    length, checksum = np.frombuffer(data[len(MAGIC) : begin], "<u8").tolist()
    text = data[begin : begin + length]
    _check(len(text) == length and zlib.crc32(text) == checksum)
    return json.loads(text), _aligned(begin + length)


def _map_all(data: mmap.mmap | bytes, start: int, entries: list[dict[str, Any]]) -> Arrays:
    """Map the arrays, which lie one after the other; raise a ValueError where they do not.

    Tables that are cut short are left out: they are built again when they are worth it.
    """
    arrays: Arrays = {}
    end = start
    for entry in entries:
        try:
            arrays[str(entry["name"])], end = _map_one(data, start, end, entry)
        except ValueError:
            if entry["name"] not in TABLES:
                raise
            return {name: array for name, array in arrays.items() if name not in TABLES}
    return arrays


def _map_one(
    data: mmap.mmap | bytes, start: int, end: int, entry: dict[str, Any]
) -> tuple[NDArray[Any], int]:
    """Map one array that begins where others end; return it and its own end."""
    offset, shape = start + entry["offset"], entry["shape"]
    dtypes, n_dimensions = KINDS[entry["name"]]
    _check(entry["dtype"] in dtypes and len(shape) == n_dimensions)
    _check(all(isinstance(n, int) and n >= 0 for n in shape))
    dtype, count = np.dtype(entry["dtype"]), math.prod(shape)
    _check(offset == _aligned(end) and offset + count * dtype.itemsize <= len(data))
    array = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
    _check(_checksum(array) == entry["checksum"])
    return array.reshape(shape), offset + array.nbytes


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _check(holds: object) -> None:
    if not holds:
        raise ValueError("the arrays do not fit each other")


def _check_facts(facts: dict[str, Any]) -> None:
    next_id = facts["next_id"]
    _check(isinstance(facts["n_codes"], int))
    _check(next_id is None or (isinstance(next_id, int) and abs(next_id) < 2**63))


def _tables(arrays: Arrays, strips: Strips) -> Tables | None:
    """Take tables that kernels can probe without leaving them; others are built again."""
    if any(name not in arrays for name in TABLES):
        return None
    luts, starts, entries = (arrays[name] for name in TABLES)
    width = (starts.shape[1] - 1).bit_length() - 1
    n_entry, n_strips = entries.shape[2], -(-len(strips) // STRIP)
    n_words = -(-n_entry // WORD)
    fits = NARROWEST <= width <= WIDEST and starts.shape[1] == 2**width + 1 and 8 * n_entry >= width
    fits &= luts.shape == (len(starts), 1 + n_words, strips.data.shape[1], 256)
    fits &= entries.shape == (len(starts) - 1, n_strips, n_entry, STRIP) and len(starts) > 1
    fits = fits and int(np.bitwise_or.reduce(luts[:, 0], axis=None)) < 2**width
    fits = fits and bool((starts[:, 0] == 0).all() and (starts[:, -1] == len(strips)).all())
    fits = fits and bool((starts[:, 1:] >= starts[:, :-1]).all())
    return Tables(luts, width, starts, entries) if fits else None


def _check_partition(main: Partition) -> None:
    """See that kernels can run over a partition without leaving its arrays."""
    shape, n_codes = main.strips.data.shape, len(main.strips)
    _check(shape[1] and shape[2] == STRIP and 0 <= n_codes <= shape[0] * STRIP)
    offsets, members = main.offsets, main.members
    if main.grouped:
        _check(len(offsets) == n_codes + 1 and offsets[0] == 0 and offsets[-1] == len(members))
        _check((offsets[1:] >= offsets[:-1]).all())
    if len(members):
        _check(main.grouped or len(members) == n_codes)
        _check(members.max() < len(members))
        _check((np.bincount(members, minlength=len(members)) == 1).all())  # each row once


def _check_id_text(arrays: Arrays) -> None:
    ends = arrays.get("id_ends", NO_OFFSETS)
    if len(ends):
        _check(ends[0] >= 0 and ends[-1] == len(arrays["id_text"]))
        _check((ends[1:] >= ends[:-1]).all())
