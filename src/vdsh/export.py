"""The ids and codes of a store as a file of another program: faiss, numpy, Parquet or hex.

Bits are in one order everywhere: bit 0 of a code is the highest bit of its first byte, as
`numpy.packbits` has it. Programs that only count differing bits need not know.
"""

import json
import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Codes, to_hex
from vdsh.documents.records import EXPORT_MARK
from vdsh.errors import InputError, needing, suggest
from vdsh.files import check_new, new_files
from vdsh.store import Store

__all__ = ["FORMATS", "Exported", "export_codes"]

ROWS = 10_000  # in a row group of Parquet, or in a batch


class Exported(NamedTuple):
    """What was written.

    Attributes
    ----------
    path : str
    ids : str or None
        The file of the ids, one JSON text a line, in the order of the codes; None where `path`
        holds the ids itself.
    documents : int
    """

    path: str
    ids: str | None
    documents: int


Progress = Callable[[int], None]


def export_codes(
    store: Store,
    to: str,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the codes of all documents, in the order of their ids.

    Parameters
    ----------
    store : Store
    to : {"faiss", "npy", "parquet", "hex"}
        `faiss` is an IndexBinaryFlat and `npy` a uint8 array of shape (n_docs, n_bytes), each
        with a file of ids beside it. `parquet` has the columns id, code, text, labels and
        metadata, which `vdsh index` reads back; `hex` a line for each document, its id and its
        code.
    path : path
    force : bool, default=False
        Replace files that are there.
    progress : callable, optional
        Called with the number of documents read so far.
    """
    if to not in FORMATS:
        raise InputError(f"No format '{to}'. {suggest(to, FORMATS)}")
    files = [Path(path)]
    if to in ("faiss", "npy"):
        files.append(files[0].with_name(f"{files[0].stem}.ids.jsonl"))
    for file in files:
        check_new(file, force=force)
    n_documents = 0

    def count(more: int) -> None:
        nonlocal n_documents
        n_documents += more
        if progress is not None:
            progress(n_documents)

    with new_files(*files) as drafts:
        FORMATS[to](store, count, *drafts)
    return Exported(str(files[0]), str(files[1]) if files[1:] else None, n_documents)


def _write_array(
    write: Callable[[Codes, Path], None], store: Store, count: Progress, path: Path, ids_path: Path
) -> None:
    """Write all codes as one array, and the ids beside them."""
    parts = [np.zeros((0, store.info()["bits"] // 8), np.uint8)]
    with ids_path.open("w", encoding="utf-8") as lines:
        for ids, codes in store.codes(ROWS):
            parts.append(codes)
            lines.writelines(json.dumps(id, ensure_ascii=False) + "\n" for id in ids)
            count(len(ids))
    write(np.concatenate(parts), path)


def _write_faiss(codes: Codes, path: Path) -> None:
    with needing("A faiss file", "faiss-cpu", "export"):
        import faiss
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    faiss.write_index_binary(index, str(path))


def _write_npy(codes: Codes, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, codes)


def _write_hex(store: Store, count: Progress, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for ids, codes in store.codes(ROWS):
            lines = zip(ids, to_hex(codes), strict=True)
            file.writelines(f"{id}\t{code}\n" for id, code in lines)
            count(len(ids))


def _write_parquet(store: Store, count: Progress, path: Path) -> None:
    with needing("A Parquet file", "pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    code_type = pa.binary(store.info()["bits"] // 8)
    columns = [("id", pa.string()), ("code", code_type), ("text", pa.string())]
    columns += [("labels", pa.list_(pa.string())), ("metadata", pa.string())]
    schema = pa.schema(columns, {EXPORT_MARK: b"store"})  # `vdsh index` knows it again
    with closing(pq.ParquetWriter(path, schema)) as writer:
        for documents, codes in store.entries(batch_size=ROWS):
            rows = [
                {
                    "id": document.id,
                    "code": code.tobytes(),
                    "text": document.text,
                    "labels": None if document.labels is None else list(document.labels),
                    "metadata": json.dumps(document.metadata, ensure_ascii=False),
                }
                for document, code in zip(documents, codes, strict=True)
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count(len(documents))


FORMATS: dict[str, Callable[..., Any]] = {
    "faiss": partial(_write_array, _write_faiss),
    "npy": partial(_write_array, _write_npy),
    "parquet": _write_parquet,
    "hex": _write_hex,
}
