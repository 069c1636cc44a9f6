"""Parquet files in a folder or a bucket, cut into pieces that can be encoded anywhere.

Which pieces there are, and the file that each becomes, follows from the input alone. So the same
files come out, byte for byte, on one process and on a hundred workers.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from vdsh.documents import Document, DocumentReader
from vdsh.errors import InputError, MissingFileError, needing

PIECE = 20_000  # rows that are worth a file of their own: about a second of work
_BATCH = 2000  # rows in memory at a time
_WILD = frozenset("*?[")


class Piece(NamedTuple):
    """Whole row groups of one file."""

    path: str  # the file
    groups: list[int]  # its row groups, one after the other
    row: int  # how many rows of the file stand before
    number: int  # how many rows of all files stand before


class ParquetFiles(NamedTuple):
    """Files that hold one corpus, in the order of their names."""

    filesystem: Any
    reader: DocumentReader  # of no file: each has a copy
    pieces: list[Piece]
    n_rows: int

    def documents(self, piece: Piece) -> Iterator[list[Document]]:
        """Read the documents of a piece in batches."""
        import pyarrow.parquet as pq

        reader = replace(self.reader, name=piece.path)
        row, shift = piece.row, piece.number - piece.row
        with _reading(piece.path), self.filesystem.open_input_file(piece.path) as handle:
            file = pq.ParquetFile(handle, buffer_size=1 << 20)
            columns = {reader.id_field, *reader.text_fields} & set(file.schema_arrow.names)
            batches = file.iter_batches(_BATCH, row_groups=piece.groups, columns=sorted(columns))
            for batch in batches:
                records = enumerate(batch.to_pylist(), row + 1)
                yield [reader.document(i + shift, f"row {i}", fields) for i, fields in records]
                row += len(batch)


def open_files(
    source: str, *, id_field: str = "id", text_field: str | Sequence[str] = "text"
) -> ParquetFiles:
    """Find Parquet files and look at their ends; the rows are not read.

    `source`: A file, a folder (searched to any depth), a pattern with `*`, `?` or `[...]`, or a URI
    of one of these that pyarrow knows, such as `s3://bucket/docs/*.parquet?region=eu-west-1`.
    `id_field` and `text_field`: as for `vdsh.documents.read_documents`. Where an id is missing it
    is the file's name and the number of the row, counted over all files.
    """
    fields = (text_field,) if isinstance(text_field, str) else tuple(text_field) or ("text",)
    reader = DocumentReader("", "parquet", id_field, fields, "labels")
    filesystem, paths = _find(source)
    with ThreadPoolExecutor(8) as threads:
        groups = list(threads.map(lambda path: _row_groups(filesystem, path, reader), paths))
    pieces, n_rows = [], 0
    for path, sizes in zip(paths, groups, strict=True):
        pieces += list(_cut(path, sizes, n_rows))
        n_rows += sum(sizes)
    if not n_rows:
        raise InputError(f"'{source}' holds no documents.")
    return ParquetFiles(filesystem, reader, pieces, n_rows)


def is_several(source: str) -> bool:
    """Tell whether a source is a pattern, a URI or a folder with Parquet files."""
    if os.path.isdir(source):
        inside = (name for _, _, names in os.walk(source) for name in names)
        return any(name.endswith(".parquet") for name in inside)
    return "://" in source or (not _WILD.isdisjoint(source) and not os.path.exists(source))


def filesystem_of(place: str) -> tuple[Any, str]:
    """Return the filesystem of a path or URI, and the path on it."""
    with needing("Parquet", "pyarrow", "parquet"):
        from pyarrow import ArrowException
        from pyarrow import fs as filesystems
    if "://" not in place:
        return filesystems.LocalFileSystem(), os.path.abspath(place)
    # A pattern is no valid URI, so only the bucket or host, and its options, go to pyarrow.
    address, _, options = place.partition("?")
    scheme, _, rest = address.partition("://")
    bucket, _, path = rest.partition("/")
    try:
        filesystem, root = filesystems.FileSystem.from_uri(f"{scheme}://{bucket}/?{options}")
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"Cannot use '{place}': {_reason(error)}.") from error
    return filesystem, str(PurePosixPath(root, path))


def _find(source: str) -> tuple[Any, list[str]]:
    """List the files that a path, folder, pattern or URI names, sorted.

    Files whose name, or a folder's, begins with a point or an underscore are passed over.
    """
    filesystem, path = filesystem_of(source)
    from pyarrow.fs import FileSelector, FileType

    with _reading(source):
        kind = filesystem.get_file_info(path).type
        if kind == FileType.File:
            return filesystem, [path]
        is_pattern, folder = kind != FileType.Directory, PurePosixPath(path)
        while is_pattern and not _WILD.isdisjoint(str(folder)):
            folder = folder.parent
        selector = FileSelector(str(folder), recursive=True, allow_not_found=True)
        below = [info for info in filesystem.get_file_info(selector) if info.type == FileType.File]
    found = []
    for name in (info.path for info in below):
        parts = PurePosixPath(name).relative_to(folder).parts
        fits = _matches(name, path) if is_pattern else name.endswith(".parquet")
        if fits and not any(part[0] in "._" for part in parts):
            found.append(name)
    if not found:
        raise MissingFileError(f"No Parquet file matches '{source}'. Check the path or pattern.")
    return filesystem, sorted(found)


def _matches(path: str, pattern: str) -> bool:
    names, wanted = PurePosixPath(path).parts, PurePosixPath(pattern).parts
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))


def _row_groups(filesystem: Any, path: str, reader: DocumentReader) -> list[int]:
    """Return the rows of each row group, and see that the columns are there."""
    import pyarrow.parquet as pq

    with _reading(path), filesystem.open_input_file(path) as handle:
        file = pq.ParquetFile(handle)
        replace(reader, name=path).check_columns(file.schema_arrow.names)
        return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]


def _cut(path: str, sizes: list[int], number: int) -> Iterator[Piece]:
    """Take row groups together until they are worth a piece."""
    groups: list[int] = []
    row = first = 0
    for i, size in enumerate(sizes):
        groups.append(i)
        row += size
        if row - first >= PIECE or (row > first and i == len(sizes) - 1):
            yield Piece(path, groups, first, number + first)
            groups, first = [], row


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn what goes wrong while files are read into a sentence."""
    from pyarrow import ArrowException

    try:
        yield
    except InputError:
        raise
    except (ArrowException, OSError) as error:
        raise InputError(f"Cannot read '{name}' as Parquet: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
