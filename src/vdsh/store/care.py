"""Whether the documents of a store have drifted away from its model."""

from collections.abc import Collection, Sequence

import numpy as np

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.model.drift import HELD_OUT, LEAST, Drift, compare, too_few
from vdsh.model.profile import AMONG, make_profile
from vdsh.store.engine import Engine
from vdsh.store.model import StoreModel

RECENT = 1_000  # documents that were written last
MOST_DRAWN = 10_000  # of those that were given: more tell nothing that these do not
OLDEST = "oldest documents of the store (the model kept none from when it learned)"


def measure_drift(
    engine: Engine, model: StoreModel, documents: Sequence[Document] | None, n: int
) -> Drift:
    """Hold documents, or the n that were written last, against those from when it learned.

    Half of the store is recent at most. A model that kept nothing from then is held against the
    oldest documents of the store.
    """
    n_stored = engine.count(None)
    recent = documents
    if recent is None:
        recent = [found.document for found in engine.written(min(n, n_stored // 2), last=True)]
    known, ids = model.model.profile, {document.id for document in recent}
    against: str = HELD_OUT
    old: list[Document] = []
    if known is None:
        against, oldest = OLDEST, engine.written(min(n, n_stored // 2), last=False)
        old = [found.document for found in oldest if found.document.id not in ids]
    n_old = len(old) if known is None else known.documents
    if min(len(recent), n_old) < LEAST:
        return too_few(len(recent), n_old, against)
    ids |= {document.id for document in old}
    others = _others(engine, ids, AMONG if known is None else known.among, model.n_bits)
    if known is None:
        known = make_profile(model.model, [document.text for document in old], others)
    now = make_profile(model.model, [document.text for document in recent], others)
    return compare(known, now, against)


def _others(engine: Engine, ids: Collection[str], n: int, n_bits: int) -> Codes | None:
    """Return the codes of n stored documents that are none of these; None where there are fewer."""
    found = [code for id, code in engine.some_codes(n + len(ids)) if id not in ids][:n]
    if len(found) < n:
        return None
    return np.frombuffer(b"".join(found), np.uint8).reshape(n, n_bits // 8)
