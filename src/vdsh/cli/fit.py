"""`vdsh fit`: learn a model from documents."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vdsh.cli import options
from vdsh.cli.output import print_values

if TYPE_CHECKING:
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
    model: Annotated[str | None, typer.Option(help=f"{_MODELS}  [default: vdsh]")] = None,
    bits: Annotated[
        int | None, typer.Option(help="Length of the codes, a multiple of 8.  [default: 32]")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Learn on from this model, whose words and settings are kept; give old documents "
            "too, or it forgets them.",
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="With --from: say how many codes of this store would change.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="Learn from so many documents at random; words are counted in all."
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="Most memory to take, in GB: a sample that fits is learned from."),
    ] = None,
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
    embed: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE:MODEL",
            help="Make the vectors with model2vec:FOLDER or sentence-transformers:NAME; kept in "
            "the cache. With --both-ends or --no-text, queries and documents are embedded too.",
        ),
    ] = None,
    both_ends: Annotated[
        bool,
        typer.Option(
            "--both-ends",
            help="The model sees the vectors beside the words: better codes, and documents and "
            "queries come with vectors later, or are embedded.",
        ),
    ] = False,
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
    from vdsh.cli.fit_vectors import check_embedder, fit_vectors
    from vdsh.cli.learning import (
        Size,
        changes,
        check_documents,
        make_hasher,
        read_stored,
        read_taught,
    )
    from vdsh.codes import check_n_bits
    from vdsh.errors import InputError
    from vdsh.model import Model
    from vdsh.persistence import check_free
    from vdsh.scale.cluster import Machines
    from vdsh.scale.training import Lesson, fit_on_ray, launched

    options.check_engine(engine, address, workers)
    check_free(out, force=force)
    if embed is not None:
        check_embedder(embed, vectors, docs)
    if both_ends and (no_text or (vectors or embed) is None):
        raise InputError(
            "--both-ends is for words and vectors together: give vectors with --vectors FILE or "
            "--embed, and leave --no-text out."
        )
    if no_text:
        _check_no_text(vectors or embed, preset, validation, engine, start, sample or memory)
        settings = options.parse_settings(setting or []) | {"random_state": seed, "device": device}
        settings |= {} if epochs is None else {"epochs": epochs}
        fit_vectors(
            vectors or "",
            docs,
            reading,
            out,
            model or "vdsh",
            check_n_bits(32 if bits is None else bits),
            settings,
            embedder=embed,
            quiet=quiet,
            force=force,
            as_json=as_json,
        )
        return
    if docs is None:
        raise InputError(
            "Give documents to learn from; or vectors alone: --vectors FILE --no-text."
        )
    begin = None if start is None else Model.load(start)
    given: dict[str, Any] = {} if device == "auto" else {"device": device}
    given |= {} if epochs is None else {"epochs": epochs}
    given |= options.parse_settings(setting or [])
    hasher = make_hasher(begin, model, bits, preset, seed, given)
    stored = read_stored(store, begin)

    with launched(hasher.model, docs) as first:
        quiet = quiet or not first
        size = Size(sample, memory)
        chosen = size.read(docs, reading, hasher, validation, seed, quiet=quiet)
        check_documents(chosen.documents, hasher, reading)
        source = "standard input" if docs == "-" else docs
        taught, seen = read_taught(vectors, embed, chosen, held_out=both_ends, quiet=quiet)
        lesson = Lesson(
            hasher,
            options.texts_and_labels(chosen.documents),
            options.texts_and_labels(chosen.held_out) if chosen.held_out else None,
            source,
            taught,
            embed or vectors or "",
            begin,
            chosen.words,
            seen,
            (embed or "") if both_ends else "",
            both_ends,
        )
        total = chosen.total
        del chosen  # texts are enough
        machines = Machines(address, workers) if engine == "ray" else None
        hasher = fit_on_ray(lesson, machines) if machines else lesson.fit(progress=not quiet)
    if not first:
        return
    fitted = hasher.model_
    facts: dict[str, Any] = {"quality": _judge(hasher, lesson, quiet=quiet)}
    facts |= {} if lesson.words is None else {"sampled_from": total}
    if begin is not None:
        facts["started"] = changes(begin, fitted, stored or lesson.train[0], store)
    fitted.training = {**fitted.training, **facts}
    hasher.save(out, force=force)
    _print_result(fitted, out, as_json=as_json)
    for warning in fitted.training["quality"]["warnings"]:
        typer.echo(f"Warning: {warning}", err=True)
    if fitted.learned.get("interrupted_"):
        raise typer.Exit(130)


def _check_no_text(
    vectors: str | None,
    preset: str,
    validation: str | None,
    engine: str,
    start: str | None,
    size: float | None,
) -> None:
    from vdsh.errors import InputError

    if vectors is None:
        raise InputError(
            "--no-text hashes vectors: give them with --vectors FILE, or make them with --embed."
        )
    others = (validation, start, size)
    if preset != "best" or engine != "local" or any(each is not None for each in others):
        raise InputError(
            "--preset, --validation, --engine, --from, --sample and --memory are for models of "
            "texts."
        )


def _judge(hasher: "TextHasher", lesson: "Lesson", *, quiet: bool) -> dict[str, Any]:
    """Measure the codes on the held-out documents, and say where they are not to be trusted."""
    from vdsh.evaluation import find_faults, measure_quality
    from vdsh.progress import progress_bar

    quality = None
    if lesson.validation is not None:
        with suppress(KeyboardInterrupt), progress_bar(enabled=not quiet) as bar:  # keeps the model
            bar.add_task("measuring", total=None)
            seen = (lesson.vectors, lesson.seen) if lesson.both_ends else (None, None)
            quality = measure_quality(hasher, lesson.train, lesson.validation, seen)
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
    if "started" in facts:
        typer.echo(_started(facts, out))
    more = "" if model.texts_suffice else " --vectors FILE"
    typer.echo(f"The model is in {out}. Next: vdsh index {out} DOCS{more} --store STORE")
    if model.name in ("vdsh-s", "vdsh-sp"):
        typer.echo("It sorts by class; to search by typed words, --model vdsh is better.")


def _started(facts: Mapping[str, Any], out: str) -> str:
    """Say how far it is from the model that it learned on from."""
    from vdsh.model.changes import Changes

    old, store = facts["started"], facts["started"]["store"]
    found = Changes(**old["changes"]).describe()
    next_step = f" To put it there: vdsh reindex {store} --model {out}" if store else ""
    return f"It has {facts['terms'] - old['terms']:,} new words; {found}.{next_step}"
