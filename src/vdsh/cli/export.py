"""`vdsh export`: codes and models for other programs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from vdsh.cli import options
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh research export news-store --to faiss --out news.faiss"


def command(
    source: Annotated[str, typer.Argument(metavar="MODEL|STORE", help="Model folder, or store.")],
    to: Annotated[
        str,
        typer.Option(
            help="faiss, npy, parquet or hex for codes; model or onnx.", show_default=False
        ),
    ],
    out: Annotated[
        str, typer.Option(help="File to write; a folder for a model.", show_default=False)
    ],
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the codes or the model of a store, or the encoder of a model, for other programs.

    Bits are packed as numpy.packbits does, the first bit highest.
    """
    from vdsh.persistence import MANIFEST

    if to in ("model", "onnx"):
        _export_model(source, to, out, force=force, as_json=as_json)
    elif Path(source, MANIFEST).is_file():
        raise InputError(
            f"'{source}' is a model, which holds no codes. Give a store, or --to onnx."
        )
    else:
        _export_codes(source, to, out, force=force, as_json=as_json, quiet=quiet)


def _export_model(source: str, to: str, out: str, *, force: bool, as_json: bool) -> None:
    from vdsh.export import export_encoder
    from vdsh.model import Model
    from vdsh.persistence import MANIFEST
    from vdsh.store import open_store

    if Path(source, MANIFEST).is_file():
        model = Model.load(source)
    else:
        with open_store(source) as store:
            model = store.model
    if to == "model":
        model.save(out, force=force)
    else:
        export_encoder(model, out, force=force)
    n_terms, n_bits = model.n_inputs, model.n_bits
    if as_json:
        typer.echo(json.dumps({"path": out, "terms": n_terms, "bits": n_bits}))
    else:
        kind = "vectors of {:,} dimensions" if model.takes_vectors else "counts of {:,} words"
        typer.echo(f"Wrote {out}: {kind.format(n_terms)} in, codes of {n_bits} bits out.")


def _export_codes(
    source: str, to: str, out: str, *, force: bool, as_json: bool, quiet: bool
) -> None:
    from vdsh.export import FORMATS, export_codes
    from vdsh.progress import counting_bar
    from vdsh.store import open_store

    if to not in FORMATS:
        raise InputError(
            f"--to must be one of {', '.join([*FORMATS, 'model', 'onnx'])}. Got '{to}'."
        )
    with (
        open_store(source) as store,
        counting_bar("exporting", store.count(), enabled=not quiet) as bar,
    ):
        task = bar.task_ids[0]
        done = export_codes(
            store, to, out, force=force, progress=lambda n: bar.update(task, completed=n)
        )
    if as_json:
        typer.echo(json.dumps(done._asdict()))
    else:
        beside = f", their ids in {done.ids}" if done.ids else ""
        typer.echo(f"Wrote {done.documents:,} codes to {done.path}{beside}.")
