"""Copy the documents of one store into another, whatever engines they are on.

Codes are copied too, so nothing is encoded. What the target has already is left as it is, so a copy
that was interrupted goes on, and one that is made again writes what has changed since.
"""

from collections.abc import Callable

from vdsh.documents.document import BATCH
from vdsh.errors import InputError
from vdsh.store.store import Store


def copy_store(
    source: Store, target: Store, *, progress: Callable[[int], None] | None = None
) -> int:
    """Copy all documents and codes; the same id replaces.

    Parameters
    ----------
    source, target : Store
        Made with the same model. What else the target holds stays.
    progress : callable, optional
        Called with the number of documents that are over, those that were there included.

    Returns
    -------
    int
        How many documents were written; 0 where the target had all of them as they are.
    """
    _check_models(source, target)
    was_empty, n_over, n_written = not target.count(), 0, 0
    for documents, codes in source.entries(batch_size=BATCH):
        known = [] if was_empty else target._look_up([document.id for document in documents])
        there = {document.id: (document, code) for document, code in known}
        pairs = enumerate(zip(documents, map(bytes, codes), strict=True))
        new = [i for i, pair in pairs if there.get(pair[0].id) != pair]
        n_written += target.upsert([documents[i] for i in new], codes[new])
        n_over += len(documents)
        if progress is not None:
            progress(n_over)
    return n_written


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
