"""`vdsh copy`: a store to another engine."""

import json
from typing import Annotated

import typer

from vdsh.cli import options

EXAMPLE = "Example: vdsh copy news-store 'postgresql://ann@db.example/news?table=posts'"
_PLACE = "Folder, milvus://host:19530/collection, milvus-lite:file.db or postgresql://…?table=name."


def command(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help=f"Store to copy. {_PLACE}", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="Store to copy into, made when it is not there.", show_default=False
        ),
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Write again what an earlier run has written.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Copy documents and codes from one store to another; nothing is encoded again.

    The same command resumes an interrupted run. At the end the numbers of documents are compared,
    and a sample of documents and codes.
    """
    from vdsh.progress import counting_bar
    from vdsh.store import copy_store, open_store, without_password

    with open_store(source) as opened:
        with (
            open_store(target, opened.model) as other,
            counting_bar("copying", opened.count(), enabled=not quiet) as bar,
        ):
            task = bar.task_ids[0]
            done = copy_store(
                opened, other, again=again, progress=lambda n: bar.update(task, completed=n)
            )
    if as_json:
        typer.echo(json.dumps(done._asdict()))
    else:
        typer.echo(
            f"Copied {done.written:,} documents; {without_password(target)} holds "
            f"{done.documents:,}. {done.checked:,} of them were compared."
        )
