"""`vdsh fit --no-text`: learn a model from vectors."""

import json
from typing import TYPE_CHECKING

import typer

from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.cli.options import Reading


def fit_model(
    vectors: str | None,
    docs: str | None,
    reading: "Reading",
    out: str,
    model: str | None,
    bits: int,
    seed: int,
    *,
    embedder: str | None,
    quiet: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Learn from vectors of a file, of a field of documents, or made of their texts."""
    from vdsh.cli.vectors import embed_with_bar, read_file, vectors_of
    from vdsh.fitting import fit_vectors
    from vdsh.hashers import VectorHasher
    from vdsh.model.vectors import check_vectors

    model = model or "itq"
    VectorHasher(bits, model=model).check_model()  # before anything is read
    if embedder is not None:
        texts = [each.text for each in reading.documents(docs or "", quiet=quiet)]
        found = embed_with_bar(texts, embedder, quiet=quiet)
    elif docs is None:
        found = check_vectors(read_file(vectors or ""))
    else:
        found = vectors_of(vectors or "", reading.documents(docs, quiet=quiet))
    hasher = fit_vectors(
        found,
        bits,
        model=model,
        random_state=seed,
        embedder=embedder or "",
        source=embedder or vectors or "",
        progress=not quiet,
    )
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
