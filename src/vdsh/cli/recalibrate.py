"""`vdsh recalibrate`: learn new thresholds for a trained model, without training it again."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options

if TYPE_CHECKING:
    from vdsh.model import Model

EXAMPLE = (
    "Example: vdsh research recalibrate news-model news.jsonl --threshold best --out news-model-2"
)


@options.reads_documents
def command(
    model: Annotated[str, typer.Argument(help="Folder of the model.", show_default=False)],
    docs: options.Docs,
    out: Annotated[str, typer.Option(help="Folder to write the new model to.", show_default=False)],
    threshold: Annotated[
        str,
        typer.Option(
            help="median (balanced bits), sign, or best: chosen for precision on held-out "
            "documents, which needs labels."
        ),
    ] = "best",
    validation: Annotated[
        str | None,
        typer.Option(help="File of held-out documents; by default a tenth of DOCS."),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the choice of held-out documents; use that of `vdsh fit` to hold out "
            "the documents that the model was not trained on."
        ),
    ] = 0,
    reading: options.Reading = options.BY_DEFAULT,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn new thresholds for a trained model and write it as another model."""
    from vdsh.codes import check_threshold
    from vdsh.persistence import check_free
    from vdsh.pipeline import TextHasher

    check_threshold(threshold)
    check_free(out, force=force)
    hasher = TextHasher.load(model)
    documents, held_out = reading.to_learn_from(docs, validation, seed, quiet=quiet)
    texts, labels = options.texts_and_labels(documents)
    hasher.recalibrate(
        texts,
        labels,
        threshold=threshold,
        validation=None if held_out is None else options.texts_and_labels(held_out),
        source="standard input" if docs == "-" else docs,
    )
    hasher.save(out, force=force)
    _print_result(hasher.model_, model, out, as_json=as_json)


def _print_result(fitted: "Model", model: str, out: str, *, as_json: bool) -> None:
    facts: dict[str, Any] = fitted.training["recalibrated"]
    measured, threshold = fitted.learned["calibration_"], fitted.settings["threshold"]
    if as_json:
        precision = {f"precision_{name}": value for name, value in measured.items()}
        typer.echo(json.dumps({"model": out, "threshold": threshold} | precision | facts))
        return
    typer.echo(f"Learned {threshold} thresholds from {facts['documents']:,} documents.")
    if measured:
        chosen = " (which chose the thresholds)" if threshold == "best" else ""
        typer.echo(
            f"Precision at 100 on held-out documents{chosen}: "
            f"{measured['before']:.3f} before, {measured['after']:.3f} now"
        )
    typer.echo(
        f"The model is in {out}. Its codes differ from those of {model}; to use it in a store: "
        f"vdsh reindex STORE --model {out}"
    )
