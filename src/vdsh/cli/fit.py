"""`vdsh fit`: learn a model from documents."""

import json
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import print_values

if TYPE_CHECKING:
    from vdsh.documents import Document
    from vdsh.model import Model
    from vdsh.pipeline import TextHasher
    from vdsh.scale.training import Lesson

EXAMPLE = "Example: vdsh fit news.jsonl --model vdsh-s --bits 32 --out news-model"
_MODELS = (
    "vdsh, vdsh-s (learns from labels), vdsh-sp; or a baseline: "
    "lsh, sph, sth, rbm, itq, ksh, shttm."
)


@options.reads_documents
def command(
    out: Annotated[str, typer.Option(help="Folder to write the model to.", show_default=False)],
    docs: options.OptionalDocs = None,
    model: Annotated[str, typer.Option(help=_MODELS)] = "vdsh",
    bits: Annotated[int, typer.Option(help="Length of the codes, a multiple of 8.")] = 32,
    preset: Annotated[
        str, typer.Option(help="`best` measured settings, or those of the `paper`.")
    ] = "best",
    epochs: Annotated[int | None, typer.Option(help="Passes over the documents.")] = None,
    validation: Annotated[
        str | None,
        typer.Option(help="File of held-out documents; by default a tenth of the others."),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FIELD",
            help="Vectors of the documents that teach which are alike: a .npy or .parquet file, or "
            "a field. The model needs none later.",
        ),
    ] = None,
    no_text: Annotated[
        bool,
        typer.Option(
            "--no-text",
            help="Hash the vectors themselves (models vdsh, itq, sph, lsh). Texts, where there are "
            "documents, only explain bits.",
        ),
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, see the docs."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same codes.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
    reading: options.Reading = options.BY_DEFAULT,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a model from documents and write it to a folder."""
    from vdsh.cli.fit_vectors import fit_vectors
    from vdsh.codes import check_n_bits
    from vdsh.errors import InputError
    from vdsh.persistence import check_free
    from vdsh.scale.cluster import Machines
    from vdsh.scale.training import Lesson, fit_on_ray, launched

    check_n_bits(bits)
    options.check_engine(engine, address, workers)
    check_free(out, force=force)
    if no_text:
        _check_no_text(vectors, preset, validation, engine)
        settings = options.parse_settings(setting or []) | {"random_state": seed, "device": device}
        settings |= {} if epochs is None else {"epochs": epochs}
        fit_vectors(
            vectors or "",
            docs,
            reading,
            out,
            model,
            bits,
            settings,
            quiet=quiet,
            force=force,
            as_json=as_json,
        )
        return
    if docs is None:
        raise InputError(
            "Give documents to learn from; or vectors alone: --vectors FILE --no-text."
        )
    hasher = _make(model, bits, preset, epochs, setting or [], seed, device)

    with launched(model, docs) as first:
        quiet = quiet or not first
        documents, held_out = reading.to_learn_from(docs, validation, seed, quiet=quiet)
        _check_documents(documents, hasher, reading)
        source = "standard input" if docs == "-" else docs
        lesson = Lesson(
            hasher,
            options.texts_and_labels(documents),
            None if held_out is None else options.texts_and_labels(held_out),
            source,
            *(_taught(vectors, documents, held_out if validation is None else None, seed)),
        )
        machines = Machines(address, workers) if engine == "ray" else None
        hasher = fit_on_ray(lesson, machines) if machines else lesson.fit(progress=not quiet)
    if not first:
        return
    fitted = hasher.model_
    fitted.training = {**fitted.training, "quality": _judge(hasher, lesson, quiet=quiet)}
    hasher.save(out, force=force)
    _print_result(fitted, out, as_json=as_json)
    for warning in fitted.training["quality"]["warnings"]:
        typer.echo(f"Warning: {warning}", err=True)
    if fitted.learned.get("interrupted_"):
        raise typer.Exit(130)


def _check_no_text(vectors: str | None, preset: str, validation: str | None, engine: str) -> None:
    from vdsh.errors import InputError

    if vectors is None:
        raise InputError("--no-text hashes vectors: give them with --vectors FILE.")
    if preset != "best" or validation is not None or engine != "local":
        raise InputError("--preset, --validation and --engine are for models of texts.")


def _check_documents(
    documents: "list[Document]", hasher: "TextHasher", reading: options.Reading
) -> None:
    """Raise where labels are needed and there are none; warn of texts that look like HTML."""
    from vdsh.documents.html import looks_like_html
    from vdsh.errors import InputError
    from vdsh.hashers import HASHERS

    if HASHERS[hasher.model].supervised and all(each.labels is None for each in documents):
        others = sorted({name for document in documents[:1000] for name in document.metadata})
        there = "Other fields are " + ", ".join(f"'{name}'" for name in others)
        there = there if others else "There is no other field"
        raise InputError(
            f"The model '{hasher.model}' learns from labels, and no document has any in "
            f"'{reading.labels_field}'. {there}: name the one that holds them with "
            "--labels-field, or choose an unsupervised model (vdsh)."
        )
    n_pages = 0 if reading.html else sum(looks_like_html(each.text) for each in documents)
    if 2 * n_pages > len(documents):
        warnings.warn(
            f"{n_pages:,} of {len(documents):,} documents look like HTML, whose tags count as "
            "words. Leave them out with --html, here and in `vdsh index`.",
            stacklevel=2,
        )


def _taught(
    vectors: str | None, documents: "list[Document]", held_out: "list[Document] | None", seed: int
) -> tuple[Any, str]:
    """Read the vectors of the documents to learn from, and say where they come from."""
    from vdsh.cli.vectors import read_vectors
    from vdsh.model.vectors import check_vectors

    if vectors is None:
        return None, ""
    n = len(documents) + len(held_out or ())
    rows = options.hold_out(n, seed)[0] if held_out else list(range(n))
    found = read_vectors(vectors, documents, rows, n)
    return check_vectors(found, len(documents)), vectors


def _make(
    model: str,
    bits: int,
    preset: str,
    epochs: int | None,
    pairs: list[str],
    seed: int,
    device: str,
) -> "TextHasher":
    from vdsh.errors import InputError
    from vdsh.paper.settings import paper_settings
    from vdsh.pipeline import TextHasher

    if preset not in ("best", "paper"):
        raise InputError(f"--preset must be best or paper. Got '{preset}'.")
    settings: dict[str, Any] = paper_settings(model) if preset == "paper" else {}
    settings |= {} if device == "auto" else {"device": device}
    settings |= {} if epochs is None else {"epochs": epochs}
    hasher = TextHasher(
        model, bits, random_state=seed, **(settings | options.parse_settings(pairs))
    )
    hasher.check_settings()
    return hasher


def _judge(hasher: "TextHasher", lesson: "Lesson", *, quiet: bool) -> dict[str, Any]:
    """Measure the codes on the held-out documents, and say where they are not to be trusted."""
    from vdsh.evaluation import find_faults, measure_quality
    from vdsh.progress import progress_bar

    quality = None
    if lesson.validation is not None:
        with suppress(KeyboardInterrupt), progress_bar(enabled=not quiet) as bar:  # keeps the model
            bar.add_task("measuring", total=None)
            quality = measure_quality(hasher, lesson.train, lesson.validation)
    found = {} if quality is None else quality._asdict()
    if quality is not None:
        found["values"] = {name: round(value, 4) for name, value in quality.values.items()}
    return found | {"warnings": find_faults(hasher, quality)}


def _print_result(model: "Model", out: str, *, as_json: bool) -> None:
    from vdsh.model.card import describe_measure

    facts, learned = model.training, model.learned
    best, n_epochs = learned.get("best_epoch_"), len(learned.get("history_", ()))
    if as_json:
        epochs = {}
        if best is not None:
            told = {name: learned[f"{name}_"] for name in ("interrupted", "selected_on")}
            epochs = {"best_epoch": best, "epochs": n_epochs} | told | learned["history_"][best - 1]
        typer.echo(json.dumps({"model": out, **epochs, **facts}))
        return
    kept = "" if best is None else f"; kept epoch {best} of {n_epochs}"
    typer.echo(
        f"Learned {model.n_bits}-bit codes from {facts['documents']:,} documents and "
        f"{facts['terms']:,} terms{kept}."
    )
    quality = facts["quality"]
    if "values" in quality:
        typer.echo(f"{describe_measure(quality)}:")
        print_values(quality["values"], model.n_bits)
    typer.echo(f"The model is in {out}. Next: vdsh index {out} DOCS --store STORE")
    if model.name in ("vdsh-s", "vdsh-sp"):
        typer.echo("It sorts by class; to search by typed words, --model vdsh is better.")
