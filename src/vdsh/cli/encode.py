"""`vdsh encode`: documents to codes, as a stream."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from vdsh.cli import options
from vdsh.cli.output import output

if TYPE_CHECKING:
    from vdsh.documents import Document

EXAMPLE = "Example: cat titles.jsonl | vdsh encode news-model - --json"
_BATCH = 2000


def command(
    model: Annotated[str, typer.Argument(help="Model folder.", show_default=False)],
    docs: options.Docs,
    out: Annotated[
        str | None, typer.Option(help="File to write to instead of standard output.")
    ] = None,
    bits: Annotated[bool, typer.Option("--bits", help="Write 0s and 1s instead of hex.")] = False,
    format: options.Format = None,
    id_field: options.IdField = "id",
    text_field: options.TextField = None,
    encoding: options.Encoding = "utf-8",
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the id and the code of each document."""
    from vdsh.codes import to_bit_strings, to_hex
    from vdsh.pipeline import TextHasher, warn_of_empty
    from vdsh.progress import reading_bar

    hasher = TextHasher.load(model)
    reader = options.Reading(format, id_field, text_field, None, encoding).reader(docs)
    write = _json_line if as_json else _tab_line
    n_documents = n_empty = 0
    with (
        output(out, force=force) as file,
        reading_bar(reader, "encoding", enabled=not quiet) as read,
    ):
        for batch in _batches(read):
            codes, empty = hasher.encode_and_count([document.text for document in batch])
            texts = to_bit_strings(codes) if bits else to_hex(codes)
            file.writelines(write(d.id, text) for d, text in zip(batch, texts, strict=True))
            n_documents += len(batch)
            n_empty += empty
    warn_of_empty(n_empty, n_documents)


def _batches(documents: "Iterable[Document]") -> "Iterator[list[Document]]":
    documents = iter(documents)
    while batch := list(islice(documents, _BATCH)):
        yield batch


def _json_line(name: str, code: str) -> str:
    return json.dumps({"id": name, "code": code}, ensure_ascii=False) + "\n"


def _tab_line(name: str, code: str) -> str:
    return f"{name}\t{code}\n"
