"""Vectors of `--vectors`, a file of them or a field of the documents; and models of vectors."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import vdsh
from vdsh.cli.options import option
from vdsh.errors import InputError

VECTORS = option(
    None,
    "For a model of vectors: those of the documents, a .npy file with one row a document, or a "
    "field.",
    metavar="FILE|FIELD",
)
_ENDING = ".npy"


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


def read_file(given: str) -> Any:
    """Read all vectors of a file."""
    import numpy as np

    if not given.endswith(_ENDING):
        raise InputError(
            f"'{given}' is not a file of vectors: give one that ends in {_ENDING}, or the "
            "documents whose field it is."
        )
    if not Path(given).is_file():
        raise InputError(f"There is no file '{given}'. Give one, or a field of the documents.")
    try:
        found = np.load(given, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"'{given}' is not a complete array of numbers ({error}). Write it again "
            "with numpy.save."
        ) from None
    if not found.ndim:
        raise InputError(f"'{given}' holds one number. Give an array with a row a document.")
    return found


def vectors_of(
    given: str,
    documents: "Sequence[vdsh.Document] | None",
    rows: Sequence[int] | None = None,
    total: int | None = None,
) -> Any:
    """Read and check the vectors of documents, of a field or of a file; or all of a file.

    A file has a vector for each document that was read; where these are a sample of them, `rows`
    says which, of how many.
    """
    from vdsh.model.vectors import check_vectors

    if documents is None:
        return check_vectors(read_file(given))
    if not documents:
        raise InputError(f"There are no documents for the vectors of '{given}'. Give some.")
    if not given.endswith(_ENDING):
        return check_vectors([_of_field(given, document) for document in documents])
    found, n = read_file(given), len(documents) if total is None else total
    if len(found) != n:
        raise InputError(
            f"Got {n:,} documents but {len(found):,} vectors in '{given}'. Give one per document, "
            "in order."
        )
    return check_vectors(found if rows is None or len(rows) == n else found[list(rows)])


def _of_field(name: str, document: "vdsh.Document") -> list[Any]:
    found = document.metadata.get(name)
    if not isinstance(found, list):
        raise InputError(
            f"Document '{document.id}' has no list of numbers in '{name}'. --vectors takes a "
            f"file that ends in {_ENDING}, or a field that every document has."
        )
    return found


def without_field(documents: "list[vdsh.Document]", given: str) -> "list[vdsh.Document]":
    """Leave out the field that holds vectors: a store has no use for it."""
    if given.endswith(_ENDING):
        return documents
    return [
        replace(each, metadata={n: v for n, v in each.metadata.items() if n != given})
        for each in documents
    ]
