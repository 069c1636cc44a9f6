"""Encode Parquet files, in this process or on the workers of a Ray cluster: the same bytes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from vdsh import errors
from vdsh.codes import Codes
from vdsh.errors import EngineError, VdshError
from vdsh.model import Model
from vdsh.scale.cluster import Machines, cluster, count_workers
from vdsh.scale.output import CodesFolder, to_parquet
from vdsh.scale.parquet import ParquetFiles


class Encoded(NamedTuple):
    """What became of a piece.

    Attributes
    ----------
    n_documents, n_empty : int
        How many there are, and how many of them without a known word.
    content : bytes
        The Parquet file of ids and codes; empty where it was written to the folder.
    """

    n_documents: int
    n_empty: int
    content: bytes

    def rows(self) -> tuple[list[str], Codes]:
        """Return the ids and codes of the content."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(pa.BufferReader(self.content)).combine_chunks()
        codes = b"".join(table["code"].to_pylist())
        return table["id"].to_pylist(), np.frombuffer(codes, np.uint8).reshape(len(table), -1)


class PieceEncoder:
    """Encodes pieces with a model; each Ray worker has one.

    Parameters
    ----------
    model : Model
    files : ParquetFiles
    folder : CodesFolder, optional
        Where the codes are written to; without one they are handed back.
    """

    def __init__(self, model: Model, files: ParquetFiles, folder: CodesFolder | None) -> None:
        self.model, self.files, self.folder = model, files, folder

    def __call__(self, number: int) -> Encoded:
        """Encode a piece; no more than a batch of its texts is in memory at a time."""
        ids: list[str] = []
        codes: list[Codes] = []
        n_empty = 0
        for documents in self.files.documents(self.files.pieces[number]):
            some, empty = self.model.encode_and_count([document.text for document in documents])
            ids += [document.id for document in documents]
            codes.append(some)
            n_empty += empty
        content = to_parquet(ids, np.concatenate(codes))
        if self.folder:
            self.folder.write(number, content)
        return Encoded(len(ids), n_empty, b"" if self.folder else content)


def encode_files(
    model: Model,
    files: ParquetFiles,
    folder: CodesFolder | None = None,
    machines: Machines | None = None,
) -> Iterator[Encoded]:
    """Encode Parquet files piece by piece; the pieces come back in order.

    Parameters
    ----------
    model : Model
    files : ParquetFiles
    folder : CodesFolder, optional
        Where the codes are written to; without one they are handed back.
    machines : Machines, optional
        A Ray cluster; without it, this process does the work. A worker that dies is replaced and
        its piece encoded again. Texts go from the files to the worker that encodes them and
        nowhere else.
    """
    if machines is None:
        yield from map(PieceEncoder(model, files, folder), range(len(files.pieces)))
    else:
        yield from _encode_on_ray(model, files, folder, machines)
    if folder:
        folder.check(len(files.pieces))


def _encode_on_ray(
    model: Model,
    files: ParquetFiles,
    folder: CodesFolder | None,
    machines: Machines,
) -> Iterator[Encoded]:
    with cluster(machines.address) as ray:
        workers = min(count_workers(ray, machines.workers), len(files.pieces))
        shared = ray.put(model)  # once a node, in memory that its workers share
        numbers = [{"number": number} for number in range(len(files.pieces))]
        pieces = ray.data.from_items(numbers, override_num_blocks=len(numbers))
        encoded = pieces.map_batches(
            _Worker,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
            fn_constructor_args=(shared, files, folder),
        )
        try:
            for row in encoded.iter_rows():
                if row["error"]:
                    raise getattr(errors, row["error"])(row["content"].decode())
                yield Encoded(row["n_documents"], row["n_empty"], row["content"])
        except (ray.exceptions.RayError, OSError) as error:
            if isinstance(error, VdshError):
                raise
            reason = str(error).strip().splitlines()[-1]
            raise EngineError(f"Encoding on Ray failed: {reason}") from error


class _Worker:
    """A `PieceEncoder` as Ray Data wants it: columns in, columns out, errors as text."""

    def __init__(self, model: Any, files: ParquetFiles, folder: CodesFolder | None) -> None:
        import ray

        from vdsh.jit import use_threads

        use_threads(1)  # there is a worker for each CPU
        self.encoder = PieceEncoder(ray.get(model), files, folder)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        try:
            encoded, error = self.encoder(int(batch["number"][0])), ""
        except VdshError as problem:
            encoded, error = Encoded(0, 0, str(problem).encode()), type(problem).__name__
        columns = {name: [value] for name, value in encoded._asdict().items()}
        return columns | {"error": [error]}
