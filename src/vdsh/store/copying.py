"""Copy the documents of one store into another, whatever engines they are on.

Codes are copied too, so nothing is encoded. What the target has already is left as it is, so a copy
that was interrupted goes on, and one that is made again writes what has changed since.
"""

from collections.abc import Callable
from typing import NamedTuple

from vdsh.documents.document import BATCH
from vdsh.errors import EngineError, InputError
from vdsh.store.store import Store

SAMPLE = 100  # documents compared at the end


class Copied(NamedTuple):
    """What a copy did.

    Attributes
    ----------
    written : int
        Documents written in this run.
    documents : int
        Documents in the target at the end.
    checked : int
        Documents whose content and code were compared at the end.
    """

    written: int
    documents: int
    checked: int


def copy_store(
    source: Store, target: Store, *, progress: Callable[[int], None] | None = None
) -> Copied:
    """Copy all documents and codes; the same id replaces.

    Parameters
    ----------
    source, target : Store
        Made with the same model. What else the target holds stays.
    progress : callable, optional
        Called with the number of documents that are over, those that were there included.

    Returns
    -------
    Copied
        It raises `EngineError` where target and source are not the same at the end.
    """
    _check_models(source, target)
    n_documents, was_empty = source.count(), not target.count()
    step, n_over, n_written = max(1, n_documents // SAMPLE), 0, 0
    compared: list[str] = []
    for documents, codes in source.entries(batch_size=BATCH):
        ids = [document.id for document in documents]
        compared += ids[-n_over % step :: step]
        known = [] if was_empty else target._look_up(ids)
        there = {one.document.id: (one.document, one.code) for one in known}
        pairs = enumerate(zip(documents, map(bytes, codes), strict=True))
        new = [i for i, pair in pairs if there.get(ids[i]) != pair]
        n_written += target.upsert([documents[i] for i in new], codes[new])
        n_over += len(ids)
        if progress is not None:
            progress(n_over)
    _check(source, target, n_documents, compared)
    return Copied(n_written, target.count(), len(compared))


def _check_models(source: Store, target: Store) -> None:
    ours, theirs = source.info(), target.info()
    if ours["model"]["fingerprint"] != theirs["model"]["fingerprint"]:
        raise InputError(
            f"'{theirs['path']}' was made with another model "
            f"({theirs['bits']} bits, {theirs['model']['fingerprint'][:12]}) than '{ours['path']}' "
            f"({ours['bits']} bits, {ours['model']['fingerprint'][:12]}). Copy into a new store."
        )
    if ours["path"] == theirs["path"]:
        raise InputError(f"'{ours['path']}' cannot be copied into itself.")


def _check(source: Store, target: Store, n_documents: int, ids: list[str]) -> None:
    """Compare counts, and content and codes of some documents."""
    if target.count() < n_documents:
        raise EngineError(
            f"The target holds {target.count():,} documents, the source {n_documents:,}. "
            "Run the copy again: it writes what is missing."
        )
    for id in ids:
        ours, theirs = source.find(id), target.find(id)
        if ours is not None and ours != theirs:
            raise EngineError(
                f"Document '{id}' is not the same in both stores. Was it changed meanwhile? "
                "Run the copy again."
            )
