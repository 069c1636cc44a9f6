"""`vdsh fit`: learn a model from documents."""

from collections.abc import Collection
from typing import Any

import typer
from typer.core import TyperCommand

import vdsh
from vdsh.cli import options
from vdsh.cli.options import option
from vdsh.cli.output import print_values, say
from vdsh.errors import InputError

EXAMPLE = "Example: vdsh fit news.jsonl --model vdsh-s --bits 32 --out news-model"
_MODELS = (
    "vdsh, vdsh-s (learns from labels), vdsh-sp, linear (seconds, without torch); or a baseline: "
    "lsh, sph, sth, rbm, itq, ksh, shttm.  [default: vdsh; linear without torch]"
)
_PANELS: dict[str, Collection[str]] = {  # of the help; other options come last
    "Arguments": ["docs"],
    "Model": "model bits preset epochs setting seed device".split(),
    "What it learns from": ["validation", "sample"],
    "Vectors": "vectors embed no_text vector_bits".split(),
    "Reading documents": options.Reading._fields[:-1],
}


class CLASS(TyperCommand):
    """A command whose help shows options in their panels, without rich."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel, what has none last."""
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in (*_PANELS, "Options")}
        for param in self.get_params(ctx):
            panel = next((name for name, own in _PANELS.items() if param.name in own), "Options")
            if record := param.get_help_record(ctx):
                panels[panel].append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)


@options.reads_documents
def command(
    out: str = option(..., "Folder to write the model to."),
    docs: str | None = options.OPTIONAL_DOCS,
    model: str | None = option(None, _MODELS),
    bits: int = option(32, "Length of the codes, a multiple of 8."),
    preset: str = option("best", "`best` measured settings, or those of the `paper`."),
    epochs: int | None = option(None, "Passes over the documents."),
    setting: list[str] | None = option(
        None, "Any other setting, see the docs.", "--set", metavar="NAME=VALUE"
    ),
    seed: int = option(0, "The same seed gives the same codes."),
    device: str = option("auto", "auto, cpu or cuda."),
    validation: str | None = option(
        None, "File of held-out documents; by default a tenth of DOCS."
    ),
    sample: int | None = option(
        None,
        "Learn from a random sample of this size, if there are more.  [default: 100,000 "
        "documents, or 200 million characters]",
        min=1,
    ),
    vectors: str | None = option(
        None,
        "Vectors that teach which documents are similar: a .npy file, or a field. Only training "
        "needs them.",
        metavar="FILE|FIELD",
    ),
    embed: str | None = option(
        None,
        "Make the vectors with model2vec:FOLDER or sentence-transformers:NAME; kept in the "
        "cache. With --no-text, queries and documents are embedded too.",
        metavar="PACKAGE:MODEL",
    ),
    no_text: bool = option(
        False, "Hash the vectors themselves (models itq, lsh, sph; itq by default).", "--no-text"
    ),
    vector_bits: int | None = option(
        None, "Append so many bits of the vectors, instead of teaching."
    ),
    reading: options.Reading = options.BY_DEFAULT,
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Learn a model from documents and write it to a folder."""
    from vdsh.cli.learning import check_documents, choose, make_hasher, read_vectors
    from vdsh.codes import check_n_bits
    from vdsh.embed import embed as embed_texts
    from vdsh.fitting import WITHOUT_TORCH, fit_texts, fit_vectors, texts_and_labels
    from vdsh.model.joint import JointModel
    from vdsh.persistence import check_free

    check_free(out, force=force)
    if embed is not None:
        if vectors is not None:
            raise InputError("Give --vectors, or --embed to make them; not both.")
        if docs is None:
            raise InputError("--embed makes vectors of documents. Give some.")
        embed_texts(["a text"], embed)  # or say that it cannot
    if vector_bits is not None and (vectors or embed) is None:
        raise InputError("--vector-bits hashes vectors. Give --vectors or --embed.")
    how: dict[str, Any] = {"random_state": seed, "progress": not reading.quiet}
    how |= {"embedder": embed or "", "source": embed or vectors or ""}
    if no_text:
        others = (epochs, setting, validation, sample, vector_bits)
        _check_no_text(vectors or embed, preset, device, others)
        n_bits = check_n_bits(bits)
        vdsh.VectorHasher(n_bits, model=model or "itq").check_model()  # before anything is read
        every = None if docs is None else reading.documents(docs)
        found = read_vectors(vectors, embed, every, quiet=reading.quiet)
        fitted = fit_vectors(found, n_bits, model=model or "itq", **how).model_
        fitted.save(out, force=force)
        return _print_result(fitted, out, as_json=as_json)
    if docs is None:
        raise InputError(
            "Give documents to learn from; or vectors alone: --vectors FILE --no-text."
        )
    given: dict[str, Any] = {} if device == "auto" else {"device": device}
    given |= {} if epochs is None else {"epochs": epochs}
    given |= options.parse_settings(setting or [])
    hasher = make_hasher(model, bits, preset, seed, given)
    chosen = choose(docs, reading, validation, seed, sample=sample)
    check_documents(chosen.documents, hasher, reading)
    which = (chosen.documents, chosen.rows, chosen.total)
    found = read_vectors(vectors, embed, *which, quiet=reading.quiet)
    if embed is not None:
        found[~found.any(axis=1)] = 1.0  # texts without a word that it knows: alike
    second = None if vector_bits is None else fit_vectors(found, vector_bits, **how)
    train = texts_and_labels(chosen.documents)
    held_out = texts_and_labels(chosen.held_out) if chosen.held_out else None
    how = {"sampled_from": chosen.sampled_from, "progress": not reading.quiet}
    how["source"] = "standard input" if docs == "-" else docs
    if second is None:
        how |= {"vectors": found, "vectors_source": embed or vectors or ""}
    del chosen, which  # texts are enough
    fit_texts(hasher, train, held_out, **how)
    fitted = hasher.model_ if second is None else JointModel(hasher, second)
    fitted.save(out, force=force)
    _print_result(fitted, out, as_json=as_json)
    if fitted.name == "linear" and model is None:
        typer.echo(WITHOUT_TORCH, err=True)
    for warning in fitted.training["quality"]["warnings"]:
        typer.echo(f"Warning: {warning}", err=True)
    if fitted.learned.get("interrupted_"):
        raise typer.Exit(130)


def _check_no_text(vectors: str | None, preset: str, device: str, others: tuple[Any, ...]) -> None:
    if vectors is None:
        raise InputError(
            "--no-text hashes vectors: give them with --vectors FILE, or make them with --embed."
        )
    if (preset, device) != ("best", "auto") or any(each is not None for each in others):
        raise InputError(
            "--preset, --epochs, --set, --device, --validation, --sample and --vector-bits "
            "are for models of texts. Leave them out, or leave out --no-text."
        )


def _print_result(model: "vdsh.Model", out: str, *, as_json: bool) -> None:
    from vdsh.model.card import describe_measure, describe_sample

    facts, learned = model.training, model.learned
    best, n_epochs = learned.get("best_epoch_"), len(learned.get("history_", ())) - 1
    if as_json:
        epochs = {}
        if best is not None:
            more = {name: learned[f"{name}_"] for name in ("interrupted", "selected_on")}
            epochs = {"best_epoch": best, "epochs": n_epochs} | more | learned["history_"][best]
        say({"model": out, **epochs, **facts}, as_json=True)
        return
    kept = "" if best is None else f"; kept epoch {best} of {n_epochs}"
    if model.takes_vectors:
        given = f"vectors of {facts['dimensions']:,} dimensions"
    else:
        given = f"documents{describe_sample(facts)} and {facts['terms']:,} terms{kept}"
    typer.echo(f"Learned {model.n_bits}-bit codes from {facts['documents']:,} {given}.")
    if "values" in (quality := facts.get("quality", {})):
        typer.echo(f"{describe_measure(quality)}:")
        print_values(quality["values"], model.n_bits)
    vectors = "" if model.texts_suffice else " --vectors FILE"
    typer.echo(f"The model is in {out}. Next: vdsh index {out} DOCS{vectors} --store STORE")
    if model.name in ("vdsh-s", "vdsh-sp"):
        typer.echo("It sorts by class; to search by typed words, --model vdsh is better.")
