"""Copy the documents of one store into another, whatever engines they are on.

Codes are copied too, so nothing is encoded. Documents go over in the order of their ids. A copy
that was interrupted goes on where the target's ids end, since all below are there already.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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
    source: Store,
    target: Store,
    *,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Copied:
    """Copy all documents and codes; the same id replaces.

    Parameters
    ----------
    source, target : Store
        Made with the same model. What else the target holds stays.
    again : bool, default=False
        Write everything, also what an earlier run has written; by default a run goes on where
        the ids of the target end, if the target holds just the beginning of the source.
    progress : callable, optional
        Called with the number of documents that are over, those of earlier runs included.

    Returns
    -------
    Copied
        It raises `EngineError` where target and source are not the same at the end.
    """
    _check_models(source, target)
    n_documents = source.count()
    done, last = (0, "") if again else _beginning(source, target)
    report, written = progress or (lambda _: None), 0
    report(done)
    for documents, codes in source.entries(last, BATCH):
        written += target.upsert(documents, codes)
        report(done + written)
    checked = _check(source, target, n_documents)
    return Copied(written, target.count(), checked)


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


def _beginning(source: Store, target: Store) -> tuple[int, str]:
    """Return how many documents are over and the last id of them; none where it is not plain."""
    n_there = target.count()
    if not n_there or n_there > source.count():
        return 0, ""
    last, n_seen = "", 0
    pairs = zip(source.codes(), target.codes(), strict=False)
    for (source_ids, source_codes), (target_ids, target_codes) in pairs:
        n = min(len(source_ids), len(target_ids))
        same = source_ids[:n] == target_ids[:n]
        if not same or not np.array_equal(source_codes[:n], target_codes[:n]):
            return 0, ""
        n_seen, last = n_seen + n, target_ids[n - 1]
    return (n_seen, last) if n_seen == n_there else (0, "")


def _check(source: Store, target: Store, n_documents: int) -> int:
    """Compare counts, and content and codes of a sample spread over all ids."""
    if target.count() < n_documents:
        raise EngineError(
            f"The target holds {target.count():,} documents, the source {n_documents:,}. "
            "Run the copy again: it resumes where it ended."
        )
    chosen: list[str] = []
    step, n_seen = max(1, n_documents // SAMPLE), 0
    for ids, _ in source.codes():
        chosen += ids[-n_seen % step :: step]
        n_seen += len(ids)
    for id in chosen:
        ours, theirs = source.find(id), target.find(id)
        if ours is not None and ours != theirs:
            raise EngineError(
                f"Document '{id}' is not the same in both stores. Was it changed meanwhile? "
                "Run the copy again, with --again (again=True)."
            )
    return len(chosen)
