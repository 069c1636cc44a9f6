"""Another model under a store: new codes are made beside the old ones, and one step switches.

All engines share this loop. Each takes four short steps of it: `begin`, `unencoded` (the next
documents without a new code), `put_codes` and `switch`. What is written meanwhile has no new code,
so it is met like any other document; what comes at the very end is encoded by `switch`, while
others wait to write. Whoever starts again goes on where the last run stopped.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from vdsh.errors import InputError
from vdsh.model import Model

if TYPE_CHECKING:
    from vdsh.store.engine import Engine

BATCH = 2000  # documents
PASSES = 3  # at most, over what others have written meanwhile; then they have to wait
NEXT, PREVIOUS = "next", "previous"  # keys of the store's facts: fingerprints of other models


class Unencoded(NamedTuple):
    """A document without a code of the new model; `key` is what its engine knows it by."""

    key: Any
    text: str


def reindex(
    engine: "Engine", model: Model, *, restart: bool, progress: Callable[[int], None] | None
) -> None:
    """Encode all documents with another model, and switch to it."""
    check_takes_texts(engine.shown, model)
    report = progress or (lambda _: None)
    engine.begin_reindex(model, restart=restart)
    for _ in range(PASSES):
        if _one_pass(engine, model, report) < BATCH:
            break
    report(engine.switch(model))


def _one_pass(engine: "Engine", model: Model, report: Callable[[int], None]) -> int:
    """Go through all documents once; return how many had no new code."""
    after, done = None, 0
    most = engine.count(None)  # or it would run after those who write
    while done < most and (batch := engine.unencoded(model.fingerprint, after, BATCH)):
        codes = model.encode([one.text for one in batch])
        engine.put_codes(model.fingerprint, batch, codes)
        after, done = batch[-1].key, done + len(batch)
        report(len(batch))
        if len(batch) < BATCH:
            break
    return done


def check_takes_texts(shown: str, model: Model) -> None:
    """Raise where a model cannot encode texts, which is all that a store keeps."""
    if not model.texts_suffice:
        raise InputError(
            f"The new model takes vectors, but '{shown}' keeps texts. Index the documents with "
            "their vectors into a new store."
        )


def check_begun(shown: str, begun: str | None, fingerprint: str, *, restart: bool) -> None:
    """Raise where another model was begun and never finished, unless that is to be dropped."""
    if begun not in (None, fingerprint) and not restart:
        raise InputError(
            f"'{shown}' is being encoded with another model ({begun[:12]}) already. Finish "
            "that run, or discard it with --restart."
        )


def check_own(shown: str, begun: str | None, fingerprint: str) -> None:
    """Raise where somebody else has switched, begun anew with another model, or compacted."""
    if begun != fingerprint:
        raise InputError(
            f"Another process changed the model of '{shown}' meanwhile, or compacted it. Nothing "
            "was changed. Start again to put this model under it."
        )


def check_previous(shown: str, known: str | None) -> str:
    """Return the fingerprint of the model that the store had before."""
    if known is None:
        raise InputError(
            f"'{shown}' has no earlier model: it never had one, or was compacted since."
        )
    return known
