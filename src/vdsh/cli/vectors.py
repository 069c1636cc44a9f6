"""Vectors of `--vectors`, a file of them or a field of the documents; and models of vectors."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vdsh.cli.options import option
from vdsh.cli.output import say
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.cli.options import Reading
    from vdsh.documents import Document

Vectors = Annotated[
    str | None,
    option(
        "For a model of vectors: those of the documents, a .npy file with one row a document, "
        "or a field.",
        metavar="FILE|FIELD",
    ),
]
_ENDING = ".npy"


QueryVector = Annotated[
    str | None,
    option(
        "A vector to look for, with words or alone, where the store has a model of vectors: a "
        ".npy file, or a list of numbers.",
        "--vector",
        metavar="FILE|[…]",
    ),
]


def read_query_vector(given: str) -> Any:
    """Read one vector: of a file, or a list as JSON has it."""
    if not given.lstrip().startswith("["):
        found = read_file(given)
        return found[0] if len(found) == 1 and found[0].ndim else found
    try:
        return json.loads(given)
    except ValueError:
        raise InputError(
            f"--vector takes a .npy file, or a list of numbers such as [0.5, 2]. Got '{given}'."
        ) from None


def embed_with_bar(texts: "Sequence[str]", model: str, *, quiet: bool) -> Any:
    """Embed texts, with a bar; what was embedded before is taken from the cache."""
    from vdsh.embed import embed
    from vdsh.progress import show_progress

    with show_progress("embedding", len(texts), enabled=not quiet) as show:
        return embed(texts, model, progress=show)


def read_file(given: str) -> Any:
    """Read all vectors of a file."""
    if not given.endswith(_ENDING):
        raise InputError(
            f"'{given}' is not a file of vectors: give one that ends in {_ENDING}, or the "
            "documents whose field it is."
        )
    if not Path(given).is_file():
        raise InputError(f"There is no file '{given}'. Give one, or a field of the documents.")
    return _of_array(given)


def vectors_of(given: str, documents: "Sequence[Document]") -> Any:
    """Read and check the vectors of all documents that were read."""
    from vdsh.model.vectors import check_vectors

    n = len(documents)
    if not n:
        raise InputError(f"There are no documents for the vectors of '{given}'. Give some.")
    return check_vectors(read_vectors(given, documents, range(n), n), n)


def without_field(documents: "Iterable[Document]", given: str) -> "list[Document]":
    """Leave out the field that holds vectors: a store has no use for it."""
    if given.endswith(_ENDING):
        return list(documents)
    return [
        replace(each, metadata={n: v for n, v in each.metadata.items() if n != given})
        for each in documents
    ]


def read_vectors(given: str, documents: "Sequence[Document]", rows: Sequence[int], n: int) -> Any:
    """Read the vectors of the documents to learn from, which have numbers among `n` that were read.

    A file has a vector for each of the `n`, in order; else a field of the documents holds them.
    """
    if not given.endswith(_ENDING):
        return _of_field(given, documents)
    found = read_file(given)
    if len(found) != n:
        raise InputError(
            f"Got {n:,} documents but {len(found):,} vectors in '{given}'. Give one per document, "
            "in order."
        )
    return found if len(rows) == n else found[list(rows)]


def _of_field(name: str, documents: "Sequence[Document]") -> list[Any]:
    for document in documents:
        if not isinstance(document.metadata.get(name), list):
            raise InputError(
                f"Document '{document.id}' has no list of numbers in '{name}'. --vectors takes a "
                f"file that ends in {_ENDING}, or a field that every document has."
            )
    return [document.metadata[name] for document in documents]


def _of_array(path: str) -> Any:
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"'{path}' is not a complete array of numbers ({error}). Write it again "
            "with numpy.save."
        ) from None
    if not found.ndim:
        raise InputError(f"'{path}' holds one number. Give an array with a row a document.")
    return found


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
    more = "" if embedder else " --vectors FILE"
    say(
        {"model": out, **facts},
        f"Learned {bits}-bit codes from {facts['documents']:,} vectors of "
        f"{facts['dimensions']:,} dimensions.",
        f"The model is in {out}. Next: vdsh index {out} DOCS{more} --store STORE",
        as_json=as_json,
    )


def check_embedder(embedder: str, vectors: str | None, docs: str | None) -> None:
    """Raise where texts cannot be embedded, before any are read."""
    from vdsh.embed import embed

    if vectors is not None:
        raise InputError("Give --vectors, or --embed to make them; not both.")
    if docs is None:
        raise InputError("--embed makes vectors of documents. Give some.")
    embed(["a text"], embedder)
