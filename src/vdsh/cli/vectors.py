"""Vectors of `--vectors`: a file of them, or a field of the documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdsh.errors import InputError, missing_package

if TYPE_CHECKING:
    from vdsh.documents import Document


def read_vectors(given: str, documents: "Sequence[Document]", rows: Sequence[int], n: int) -> Any:
    """Read the vectors of the documents to learn from.

    Parameters
    ----------
    given : str
        A file that ends in .npy or .parquet, with a vector for each of the `n` documents that
        were read, in order; else the name of a field that holds them.
    documents : sequence of Document
        Those to learn from.
    rows : sequence of int
        Their numbers among all that were read.
    n : int
        How many were read.
    """
    if not given.endswith((".npy", ".parquet")):
        return _of_field(given, documents)
    if not Path(given).is_file():
        raise InputError(f"There is no file '{given}'. Give one, or a field of the documents.")
    found = _of_array(given) if given.endswith(".npy") else _of_parquet(given)
    if len(found) != n:
        raise InputError(
            f"Got {n:,} documents but {len(found):,} vectors in '{given}'. Give one per document, "
            "in order."
        )
    return found[list(rows)]


def _of_field(name: str, documents: "Sequence[Document]") -> list[Any]:
    for document in documents:
        if not isinstance(document.metadata.get(name), list):
            raise InputError(
                f"Document '{document.id}' has no list of numbers in '{name}'. --vectors takes a "
                "file that ends in .npy or .parquet, or a field that every document has."
            )
    return [document.metadata[name] for document in documents]


def _of_array(path: str) -> Any:
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"'{path}' is no whole array of numbers, or was cut short ({error}). Write it again "
            "with numpy.save."
        ) from None
    if not found.ndim:
        raise InputError(f"'{path}' holds one number. Give an array with a row a document.")
    return found


def _of_parquet(path: str) -> Any:
    """Read the only column of lists."""
    import numpy as np

    try:
        from pyarrow import ArrowException, types
        from pyarrow.parquet import read_table
    except ImportError as error:
        raise missing_package("Parquet", "pyarrow", "parquet") from error
    try:
        table = read_table(path)
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"'{path}' is no whole Parquet file ({reason}). Write it again.") from None
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    columns = [each.name for each in table.schema if any(kind(each.type) for kind in kinds)]
    if len(columns) != 1:
        names = ", ".join(f"'{name}'" for name in columns) or "none"
        raise InputError(f"'{path}' must have one column of lists of numbers. Got {names}.")
    values = table[columns[0]].to_pylist()
    try:
        return np.array(values, np.float32)
    except (TypeError, ValueError):
        raise InputError(
            f"The lists of '{columns[0]}' in '{path}' must be numbers, and all of one length."
        ) from None
