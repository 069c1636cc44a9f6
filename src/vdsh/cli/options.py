"""Options that several verbs share, and how documents are read with them."""

import json
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.documents import Document, DocumentReader

LEAST_TO_HOLD_OUT = 100  # with fewer documents every one is needed to learn from

Docs = Annotated[
    str,
    typer.Argument(
        help="JSONL, CSV, TSV, Parquet or text file (gz or plain), a folder of text files, "
        "or - for stdin.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None, typer.Option(help="jsonl, csv, tsv, parquet or text; by default from the ending.")
]
IdField = Annotated[str, typer.Option(help="Field of the id.")]
TextField = Annotated[
    list[str] | None,
    typer.Option(help="Field of the text; give it again to join several.  [default: text]"),
]
LabelsField = Annotated[str, typer.Option(help="Field of the labels.")]
Encoding = Annotated[str, typer.Option(help="Of the file's text.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Engine = Annotated[str, typer.Option(help="local, or ray for a cluster.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster: host:port, or auto for the one of this machine. By default a new one."
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes on the cluster, by default one a CPU.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


class Reading(NamedTuple):
    """The options that say how documents are read."""

    format: str | None
    id_field: str
    text_field: list[str] | None
    labels_field: str | None
    encoding: str
    quiet: bool = False

    def reader(self, source: str) -> "DocumentReader":
        """Open documents to go through one by one."""
        from vdsh.documents import read_documents

        return read_documents(
            source,
            format=self.format,
            id_field=self.id_field,
            text_field=self.text_field or "text",
            labels_field=self.labels_field or "labels",
            encoding=self.encoding,
        )

    def documents(self, source: str) -> "list[Document]":
        """Read all documents, with a bar."""
        from vdsh.progress import reading_bar

        with reading_bar(self.reader(source), "reading", enabled=not self.quiet) as documents:
            return list(documents)


def hold_out(
    documents: "list[Document]", seed: int
) -> "tuple[list[Document], list[Document] | None]":
    """Set a random tenth aside for validation."""
    import numpy as np

    if len(documents) < LEAST_TO_HOLD_OUT:
        return documents, None
    order = np.random.RandomState(seed).permutation(len(documents))
    cut = len(documents) // 10
    return [documents[i] for i in np.sort(order[cut:])], [documents[i] for i in order[:cut]]


def texts_and_labels(documents: "list[Document]") -> tuple[list[str], list[Any] | None]:
    """Divide documents; the labels are None where no document has any."""
    labels = [document.labels for document in documents]
    known = any(label is not None for label in labels)
    return [document.text for document in documents], labels if known else None


def check_engine(engine: str, address: str | None, workers: int | None) -> None:
    """Raise for an engine that there is not, or options that belong to the other one."""
    if engine not in ("local", "ray"):
        raise InputError(f"--engine must be local or ray. Got '{engine}'.")
    if engine == "local" and (address or workers):
        raise InputError("--address and --workers belong to a cluster: add --engine ray.")


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Read `--set name=value` options; values are JSON where they can be, else text.

    >>> parse_settings(["epochs=5", "threshold=sign", "stop_words=null"])
    {'epochs': 5, 'threshold': 'sign', 'stop_words': None}
    """
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, such as --set epochs=5. Got '{pair}'.")
        try:
            settings[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            settings[name.replace("-", "_")] = value
    return settings
