"""The folder of Parquet files that encoding leaves: whole or absent, where a rename can do it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from vdsh.codes import Codes
from vdsh.errors import OutputExistsError, VdshError, WriteError
from vdsh.files import new_folder
from vdsh.scale.parquet import filesystem_of

_PART = re.compile(r"part-\d{6}\.parquet")


class CodesFolder(NamedTuple):
    """Where workers write to; each writes files of its own."""

    filesystem: Any
    path: str

    def write(self, number: int, content: bytes) -> None:
        """Write the file of piece `number`; one that a worker left half-written is replaced."""
        name = f"{self.path}/part-{number:06}.parquet"
        try:
            with self.filesystem.open_output_stream(name) as file:
                file.write(content)
        except OSError as error:
            reason = error.strerror or str(error)
            raise WriteError(f"Could not write '{name}': {reason}.") from error

    def check(self, n_files: int) -> None:
        """Raise unless all files are there."""
        from pyarrow.fs import FileSelector

        found = len(self.filesystem.get_file_info(FileSelector(self.path)))
        if found != n_files:
            raise WriteError(
                f"The workers wrote {n_files} files but {found} can be seen here. All machines "
                "must share the folder: give one on a shared disk, or a URI such as s3://..."
            )


def to_parquet(ids: list[str], codes: Codes) -> bytes:
    """Write ids and codes as a Parquet file with the columns id and code."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = pa.binary(codes.shape[1])
    column = pa.Array.from_buffers(kind, len(codes), [None, pa.py_buffer(codes.tobytes())])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array(ids, pa.string()), "code": column}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


@contextmanager
def codes_folder(place: str, *, force: bool = False) -> Iterator[CodesFolder]:
    """Give a folder to write to.

    On a disk it is a draft beside `place`, renamed at the end and removed after an error. In a
    bucket, where nothing can be renamed, files appear one by one and are removed after an error.
    `force` replaces a folder of codes, never anything else.
    """
    filesystem, path = filesystem_of(place)
    _check_free(filesystem, path, place, force=force)
    if filesystem.type_name == "local":
        with new_folder(Path(path)) as draft:
            yield CodesFolder(filesystem, str(draft))
        return
    folder = CodesFolder(filesystem, path)
    try:
        if force:
            filesystem.delete_dir_contents(path, missing_dir_ok=True)
        filesystem.create_dir(path)
        yield folder
    except BaseException as error:
        filesystem.delete_dir_contents(path, missing_dir_ok=True)
        if isinstance(error, OSError) and not isinstance(error, VdshError):
            raise WriteError(f"Could not write '{place}': {error}.") from error
        raise


def _check_free(filesystem: Any, path: str, place: str, *, force: bool) -> None:
    from pyarrow.fs import FileSelector, FileType

    kind = filesystem.get_file_info(path).type
    inside: list[Any] = []
    if kind == FileType.Directory:
        inside = filesystem.get_file_info(FileSelector(path))
    if kind != FileType.File and not inside:
        return
    if not force:
        raise OutputExistsError(f"'{place}' exists. Choose another folder or use --force.")
    if not inside or not all(_PART.fullmatch(os.path.basename(info.path)) for info in inside):
        raise OutputExistsError(f"'{place}' is no folder of codes, so it is not replaced.")
