"""How a store gets another model."""

from vdsh.errors import InputError
from vdsh.model import Model
from vdsh.store.engine import Engine
from vdsh.store.reindex import PREVIOUS, Report, check_previous, check_takes_texts

CHANGES_MODEL = "Another process is learning codes for, encoding or compacting"


def embedder_to_learn_with(model: Model, given: str | None, shown: str) -> str | None:
    """Name the embedding model to learn with: the given one, or the one that a store has.

    `given` is "none" to learn without one.
    """
    has_vectors = model.second is not None
    if given is None and has_vectors and not model.embedder:
        raise InputError(
            f"'{shown}' has codes of vectors that were given, which it does not keep. Name an "
            'embedding model with embed, or learn without vectors: embed="none".'
        )
    if given == "none":
        return None
    return given or (model.embedder if has_vectors else None)


def encode_with(engine: Engine, model: Model | None, *, restart: bool, report: Report) -> Model:
    """Encode all documents of a store with another model, and make it the store's own.

    Without a model it is the one that the store had before. Returns the model.
    """
    facts = engine.meta()
    if model is None:
        model = engine.models.load(check_previous(engine.shown, facts.get(PREVIOUS)))
    check_takes_texts(engine.shown, model)
    engine.models.begin(model, restart=restart)
    engine.models.encode_all(model, lambda: engine.count(None), report)
    return model
