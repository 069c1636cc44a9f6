"""What a store says about itself, and whether its codes are those of its model."""

from collections.abc import Mapping, Sequence
from typing import Any

from vdsh.errors import FolderError
from vdsh.store.engine import Engine
from vdsh.store.found import pages
from vdsh.store.model import StoreModel
from vdsh.store.rows import read_codes

MANY = 10_000  # codes that are read at a time


def describe(engine: Engine, meta: Mapping[str, str], model: StoreModel) -> dict[str, Any]:
    """Describe a store: how it searches, documents, bits, model, fields, labels, bytes."""
    facts = engine.facts()
    return {
        "path": engine.shown,
        **{name: facts[name] for name in ("engine", "search", "words") if name in facts},
        "documents": engine.count(None),
        "bits": model.n_bits,
        "model": {
            "fingerprint": model.fingerprint,
            "kept": meta["keep_model"],
            "path": model.place,
        },
        "fields": sorted(engine.fields()),
        "labels": len(engine.labels()),
        "bytes": facts["bytes"],
        "format": int(meta["format"]),
        "read_only": engine.read_only,
    }


def find_problems(engine: Engine, model: StoreModel, sample: int) -> list[str]:
    """Say what is wrong with a store and what to do: nothing where all is well."""
    found = list(engine.problems())
    try:
        ids: list[str] = []
        for page in pages(lambda last: engine.code_page(last, MANY), ""):
            ids += read_codes(page, model.n_bits // 8)[0]
        found += _wrong_codes(engine, model, ids, sample)
        engine.code_page("", 1)  # raises where the store has got another model meanwhile
    except FolderError as error:
        found.append(str(error))
    return found


def _wrong_codes(engine: Engine, model: StoreModel, ids: Sequence[str], sample: int) -> list[str]:
    """Encode some documents from all over again; complain where the store has other codes.

    Of vectors a store keeps nothing but codes.
    """
    if not model.model.texts_suffice:
        return []
    chosen = engine.look_up(ids[:: max(1, len(ids) // sample)][:sample])
    codes = model.model.encode([found.document.text for found in chosen])
    n_wrong = sum(one.code != code.tobytes() for one, code in zip(chosen, codes, strict=True))
    if not n_wrong:
        return []
    return [
        f"The codes of {n_wrong:,} of {len(chosen):,} documents are not those of the model. "
        "Index the documents into a new store."
    ]
