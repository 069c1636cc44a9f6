"""`vdsh fit --no-text`: learn a model from vectors."""

import json
from typing import TYPE_CHECKING, Any

import typer

from vdsh.errors import InputError, suggest

if TYPE_CHECKING:
    from vdsh.cli.options import Reading
    from vdsh.hashers import VectorHasher


def fit_vectors(
    vectors: str,
    docs: str | None,
    reading: "Reading",
    out: str,
    model: str,
    bits: int,
    settings: dict[str, Any],
    *,
    embedder: str | None = None,
    quiet: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Learn from vectors, with the texts of documents beside them where there are any."""
    from vdsh.cli.vectors import embed_with_bar, read_file, vectors_of
    from vdsh.model.vectors import check_vectors
    from vdsh.progress import training_bar

    hasher = _make(model, bits, settings)
    texts = None
    if embedder is not None:
        texts = [each.text for each in reading.documents(docs or "", quiet=quiet)]
        found = embed_with_bar(texts, embedder, quiet=quiet)
    elif docs is None:
        found = check_vectors(read_file(vectors))
    else:
        documents = reading.documents(docs, quiet=quiet)
        found, texts = vectors_of(vectors, documents), [each.text for each in documents]
    with training_bar(enabled=not quiet) as report:
        hasher.fit(found, texts=texts, progress=report, source=embedder or vectors)
    if embedder is not None:  # texts can be hashed and searched for with it
        hasher.model_.training = {**hasher.model_.training, "embedder": embedder}
    hasher.save(out, force=force)
    facts = hasher.model_.training
    if as_json:
        typer.echo(json.dumps({"model": out, **facts}))
        return
    typer.echo(
        f"Learned {bits}-bit codes from {facts['documents']:,} vectors of "
        f"{facts['dimensions']:,} dimensions."
    )
    more = "" if embedder else " --vectors FILE"
    typer.echo(f"The model is in {out}. Next: vdsh index {out} DOCS{more} --store STORE")


def check_embedder(embedder: str, vectors: str | None, docs: str | None) -> None:
    """Raise where texts cannot be embedded, before any are read."""
    from vdsh.embed import embed

    if vectors is not None:
        raise InputError("Give --vectors, or --embed to make them; not both.")
    if docs is None:
        raise InputError("--embed makes vectors of documents. Give some.")
    embed(["a text"], embedder)


def _make(model: str, bits: int, settings: dict[str, Any]) -> "VectorHasher":
    from vdsh.hashers import VectorHasher

    known = sorted(VectorHasher().get_params())
    for name in settings:
        if name not in known:
            raise InputError(f"A model of vectors has no setting '{name}'. {suggest(name, known)}")
    hasher = VectorHasher(bits, model="vdsh-v" if model == "vdsh" else model, **settings)
    hasher.check_model()
    return hasher
