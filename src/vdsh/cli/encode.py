"""`vdsh encode`: documents to codes, as a stream."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import output
from vdsh.cli.vectors import VECTORS, vectors_of
from vdsh.documents.document import BATCH, in_batches
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.codes import Codes
    from vdsh.scale.cluster import Machines
    from vdsh.scale.parquet import ParquetFiles

EXAMPLE = "Example: cat titles.jsonl | vdsh research encode news-model - --json"

_SMALL = 10_000  # bytes of a file that is hardly more than one text

Batches = Iterator[tuple[list[str], "Codes"]]


@options.reads_documents
def command(
    model: str = argument(..., "Model folder."),
    docs: str | None = argument(
        None,
        "Documents as for `fit`; or several Parquet files: a folder of them, a pattern in "
        "quotes, or a URI such as s3://bucket/*.parquet.",
    ),
    vectors: str | None = VECTORS,
    out: str | None = option(
        None,
        "File to write to instead of standard output; for several Parquet files, and with "
        "--engine ray, a folder of Parquet files with id and code.",
    ),
    bits: bool = option(False, "Write 0s and 1s instead of hex.", "--bits"),
    engine: str = option("local", "local, or ray for a cluster."),
    address: str | None = option(
        None, "Ray cluster: host:port, or auto for the one of this machine. By default a new one."
    ),
    workers: int | None = option(None, "Processes on the cluster, by default one per CPU."),
    reading: options.Reading = options.BY_DEFAULT,
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Print the id and the code of each document."""
    if docs and Path(docs).is_file() and Path(docs).stat().st_size < _SMALL:
        options.use_one_thread()
    from vdsh.codes import to_bit_strings, to_hex
    from vdsh.scale.cluster import Machines
    from vdsh.scale.parquet import is_several, open_files

    if engine not in ("local", "ray"):
        raise InputError(f"--engine must be local or ray. Got '{engine}'.")
    if engine == "local" and (address or workers):
        raise InputError("--address and --workers belong to a cluster: add --engine ray.")
    machines = Machines(address, workers) if engine == "ray" else None
    loaded = vdsh.Model.load(model)
    if vectors is not None:
        batches = _of_vectors(loaded, vectors, docs, reading)
    elif docs is None:
        raise InputError("Give documents to encode; or, for a model of vectors, --vectors FILE.")
    elif engine == "ray" or (reading.format in (None, "parquet") and is_several(docs)):
        if out is None:
            raise InputError("Several Parquet files are encoded into a folder. Give it: --out.")
        if bits or as_json:
            raise InputError("A folder of Parquet files holds bytes: leave out --bits and --json.")
        files = open_files(docs, id_field=reading.id_field, text_field=reading.text_field or "text")
        _encode_files(loaded, files, out, machines, force=force, quiet=reading.quiet)
        return
    else:
        batches = _of_documents(loaded, reading.stream(docs, "encoding"))

    def line(id: str, code: str) -> str:
        fields = {"id": id, "code": code}
        return (json.dumps(fields, ensure_ascii=False) if as_json else f"{id}\t{code}") + "\n"

    text = to_bit_strings if bits else to_hex
    with output(out, force=force) as file:
        for ids, codes in batches:
            file.writelines(map(line, ids, text(codes)))


def _of_vectors(
    model: "vdsh.Model", vectors: str, docs: str | None, reading: options.Reading
) -> Batches:
    """Encode vectors, with the ids of documents or the numbers of rows."""
    from vdsh.progress import show_progress

    documents = None if docs is None else reading.documents(docs)
    found = vectors_of(vectors, documents)
    ids = [str(i) for i in range(1, len(found) + 1)]
    ids = ids if documents is None else [each.id for each in documents]
    with show_progress("encoding", len(ids), enabled=not reading.quiet) as show:
        for first in range(0, len(ids), BATCH):
            some = slice(first, first + BATCH)
            yield ids[some], model.encode_vectors(found[some])
            show(min(first + BATCH, len(ids)))


def _of_documents(model: "vdsh.Model", source: options.Documents) -> Batches:
    """Encode the documents of one source."""
    from vdsh.model.model import warn_of_empty

    n_documents = n_empty = 0
    with source as read:
        for batch in in_batches(read):
            codes, empty = model.encode_and_count([document.text for document in batch])
            n_documents, n_empty = n_documents + len(batch), n_empty + empty
            yield [document.id for document in batch], codes
    warn_of_empty(n_empty, n_documents)


def _encode_files(
    model: "vdsh.Model",
    files: "ParquetFiles",
    out: str,
    machines: "Machines | None",
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Encode Parquet files, here or on a cluster, into a folder."""
    from vdsh.model.model import warn_of_empty
    from vdsh.progress import show_progress
    from vdsh.scale.encode import codes_folder, encode_files

    n_documents = n_empty = 0
    with (
        codes_folder(out, force=force) as folder,
        show_progress("encoding", files.n_rows, enabled=not quiet) as show,
    ):
        for more, empty in encode_files(model, files, folder, machines):
            n_documents, n_empty = n_documents + more, n_empty + empty
            show(n_documents)
    warn_of_empty(n_empty, files.n_rows)
