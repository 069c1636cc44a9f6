"""Encode Parquet files, in this process or on the workers of a Ray cluster: the same bytes.

The folder of Parquet files that is left is whole or absent, where a rename can do it.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Codes
from vdsh.errors import EngineError, OutputExistsError, VdshError, WriteError
from vdsh.files import new_folder
from vdsh.jit import use_threads
from vdsh.model import Model
from vdsh.scale.cluster import Machines, cluster, count_workers
from vdsh.scale.parquet import ParquetFiles, filesystem_of

_PART = re.compile(r"part-\d{6}\.parquet")


class CodesFolder(NamedTuple):
    """Where workers write to; each writes files of its own."""

    filesystem: Any
    path: str

    def write(self, number: int, ids: list[str], codes: Codes) -> None:
        """Write the file of piece `number`; one that a worker left half-written is replaced."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        kind = pa.binary(codes.shape[1])
        column = pa.Array.from_buffers(kind, len(codes), [None, pa.py_buffer(codes.tobytes())])
        table = pa.table({"id": pa.array(ids, pa.string()), "code": column})
        name = f"{self.path}/part-{number:06}.parquet"
        try:
            pq.write_table(table, name, filesystem=self.filesystem)
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
    try:
        if force:
            filesystem.delete_dir_contents(path, missing_dir_ok=True)
        filesystem.create_dir(path)
        yield CodesFolder(filesystem, path)
    except BaseException as error:
        filesystem.delete_dir_contents(path, missing_dir_ok=True)
        if isinstance(error, OSError) and not isinstance(error, VdshError):
            raise WriteError(f"Could not write '{place}': {error}.") from error
        raise


def _check_free(filesystem: Any, path: str, place: str, *, force: bool) -> None:
    from pyarrow.fs import FileSelector, FileType

    kind = filesystem.get_file_info(path).type
    inside = filesystem.get_file_info(FileSelector(path)) if kind == FileType.Directory else []
    if kind != FileType.File and not inside:
        return
    if not force:
        raise OutputExistsError(f"'{place}' exists. Choose another folder or use --force.")
    if not inside or not all(_PART.fullmatch(os.path.basename(info.path)) for info in inside):
        raise OutputExistsError(f"'{place}' is not a folder of codes, so it is not replaced.")


class PieceEncoder:
    """Encodes pieces with a model, on so many `threads` or all; each Ray worker has one."""

    def __init__(
        self, model: Model, files: ParquetFiles, folder: CodesFolder, threads: int = 0
    ) -> None:
        self.model, self.files, self.folder = model, files, folder
        if threads:
            use_threads(threads)

    def encode(self, number: int) -> tuple[int, int]:
        """Encode a piece; return how many documents it has, and how many without a known word."""
        ids, parts, n_empty = list[str](), list[Codes](), 0
        for documents in self.files.documents(self.files.pieces[number]):
            some, empty = self.model.encode_and_count([document.text for document in documents])
            ids += [document.id for document in documents]
            parts.append(some)
            n_empty += empty
        self.folder.write(number, ids, np.concatenate(parts))
        return len(ids), n_empty


def encode_files(
    model: Model, files: ParquetFiles, folder: CodesFolder, machines: Machines | None = None
) -> Iterator[tuple[int, int]]:
    """Encode Parquet files piece by piece into a folder; yield what each piece counts.

    `machines`: A Ray cluster; without it, this process does the work. A worker that dies is
    replaced and its piece encoded again. Texts go from the files to the worker that encodes them
    and nowhere else.
    """
    if machines is None:
        yield from map(PieceEncoder(model, files, folder).encode, range(len(files.pieces)))
    else:
        yield from _encode_on_ray(model, files, folder, machines)
    folder.check(len(files.pieces))


def _encode_on_ray(
    model: Model, files: ParquetFiles, folder: CodesFolder, machines: Machines
) -> Iterator[tuple[int, int]]:
    with cluster(machines.address) as ray:
        from ray.util import ActorPool

        workers = min(count_workers(ray, machines.workers), len(files.pieces))
        shared = ray.put(model)  # once a node, in memory that its workers share
        worker = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(PieceEncoder)
        pool = ActorPool([worker.remote(shared, files, folder, threads=1) for _ in range(workers)])
        try:
            yield from pool.map(lambda one, n: one.encode.remote(n), [*range(len(files.pieces))])
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)  # what a worker raised
            if isinstance(cause, VdshError):
                raise cause from None
            reason = str(error).strip().splitlines()[-1]
            raise EngineError(f"Encoding on Ray failed: {reason}") from error
