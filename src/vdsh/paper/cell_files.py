"""Finished cells on disk: two files a corpus, `tmc.jsonl` and `tmc.npz`.

The first has a line of JSON for each cell, in the order of names. The second has the precision of
each query, in thousandths, which significance tests compare: a table `permille` of shape
(n_queries, n_columns), whose columns `names` tells. It is an ordinary `.npz`, which `numpy.load`
reads, compressed by LZMA: two thirds of what deflate takes.

A cell is written under a lock, both files anew, and they take their places one after the other.
A line says the checksums of its columns, so where a process was killed between the two files, the
cell that it was writing counts as missing and is run again; all others are as they were.
"""

import json
import lzma
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.files import explained, lock, new_files
from vdsh.paper.cells import Cell

Records = dict[str, dict[str, Any]]
Columns = dict[tuple[str, str], NDArray[np.int16]]

# Fills a column where another has more queries.
_MISSING = -1
_SECONDS_BETWEEN_TRIES = 0.05
# What reading a damaged .npz may raise.
_DAMAGED = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)
_DEFAULTS = Cell._field_defaults


def read(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """Return a cell's record; None where there is none, or none that can be read."""
    record = _lines(folder / f"{cell.dataset}.jsonl").get(cell.name)
    if record is None:
        return None
    columns = _columns(folder / f"{cell.dataset}.npz")
    per_query = {}
    for threshold, checksum in record["per_query_crc32"].items():
        values = columns.get((cell.name, threshold))
        if values is None or _checksum(values) != checksum:
            return None
        per_query[threshold] = values
    return record | {"per_query_permille": per_query}


def write(folder: Path, cell: Cell, record: Mapping[str, Any]) -> None:
    """Keep a finished cell in the place of an older record of it; other cells stay."""
    values = {
        threshold: np.asarray(permille, np.int16)
        for threshold, permille in record["per_query_permille"].items()
    }
    line = {name: value for name, value in record.items() if name != "per_query_permille"}
    line["cell"] = {
        name: value
        for name, value in cell._asdict().items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    line["per_query_crc32"] = {name: _checksum(column) for name, column in values.items()}
    lines_path = folder / f"{cell.dataset}.jsonl"
    columns_path = folder / f"{cell.dataset}.npz"
    with explained(lines_path):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f".{cell.dataset}.lock"):
        records = dict(_lines(lines_path))
        records[cell.name] = line
        # Columns of cells without a line are what a killed process left behind.
        columns = {
            (name, threshold): column
            for (name, threshold), column in _columns(columns_path).items()
            if name in records and name != cell.name
        }
        columns |= {(cell.name, threshold): column for threshold, column in values.items()}
        # The lines are the last to take their place: until then they name the older columns.
        with new_files(lines_path, columns_path) as (lines_draft, columns_draft):
            _write_lines(lines_draft, records)
            _write_columns(columns_draft, columns)


def _lines(path: Path) -> Records:
    return _cached_lines(path, _version(path))


def _columns(path: Path) -> Columns:
    return _cached_columns(path, _version(path))


def _version(path: Path) -> tuple[int, ...]:
    """Return what changes whenever a file is replaced; nothing where there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=16)
def _cached_lines(path: Path, version: tuple[int, ...]) -> Records:
    """Read the cells of a corpus by name; lines that cannot be read are left out."""
    if not version:
        return {}
    records = {}
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
            name = Cell(**record["cell"]).name
            record["per_query_crc32"].items()
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        records[name] = record
    return records


@lru_cache(maxsize=16)
def _cached_columns(path: Path, version: tuple[int, ...]) -> Columns:
    """Read the per-query values of a corpus, by cell and threshold; none from a damaged file."""
    if not version:
        return {}
    try:
        # numpy would leave a damaged file open that it has opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = arrays["names"].tolist()
            permille = arrays["permille"]
    except _DAMAGED:
        return {}
    columns = {}
    for name, column in zip(names, permille.T, strict=False):
        cell, _, threshold = name.partition(" ")
        columns[cell, threshold] = column[column != _MISSING]
    return columns


def _write_lines(path: Path, records: Records) -> None:
    lines = [
        json.dumps(records[name], ensure_ascii=False, separators=(",", ":")) + "\n"
        for name in sorted(records)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def _write_columns(path: Path, columns: Columns) -> None:
    """Write the table of values; the same columns give the same bytes."""
    keys = sorted(columns)
    n_queries = max((len(column) for column in columns.values()), default=0)
    permille = np.full((n_queries, len(keys)), _MISSING, np.int16)
    for number, key in enumerate(keys):
        permille[: len(columns[key]), number] = columns[key]
    names = np.array([" ".join(key) for key in keys])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in (("names", names), ("permille", permille)):
            # Its time is 1980, whenever it is written.
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_LZMA
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _checksum(column: NDArray[np.int16]) -> int:
    return zlib.crc32(column.astype("<i2").tobytes())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process or thread writes to this corpus, and keep others out."""
    with explained(path):
        file = path.open("a")
    with file:
        while not lock(file):
            time.sleep(_SECONDS_BETWEEN_TRIES)
        yield
