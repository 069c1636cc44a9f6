"""Learn a model and measure it: from texts or a store's, or from vectors."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from vdsh.codes import check_n_bits
from vdsh.documents import Document
from vdsh.documents.document import MOST_LEARNED
from vdsh.embed import Vectors
from vdsh.embed import embed as embed_texts
from vdsh.errors import InputError
from vdsh.evaluation import find_faults, measure_quality
from vdsh.evaluation.quality import Texts
from vdsh.hashers import HASHERS, VectorHasher, default_method
from vdsh.hashers.vdsh.lsa import are_short
from vdsh.model import Model
from vdsh.model.health import sample
from vdsh.model.joint import JointModel
from vdsh.model.profile import hold_out
from vdsh.pipeline import TextHasher
from vdsh.progress import progress_bar, show_progress, training_bar
from vdsh.store import Store
from vdsh.text import BagOfWords

__all__ = ["WITHOUT_TORCH", "fit_store", "fit_texts", "fit_vectors"]

WITHOUT_TORCH = (
    "This is the linear method, because torch is not installed; with it (pip install "
    "'vdsh[train]') a network trains on from here, which improves short codes most."
)
LONG = 64  # bits
SHORTEST_OF_SHORT = 16  # bits
# Bits of a store's codes, and of how many different documents they are learned, at least. Of fewer
# than 50 words say more; a bit more than a document has nothing to learn from.
MOST_BITS = 128
LEAST_LEARNED = {128: 128, 64: 64, 32: 50}
MOST_EMBEDDED = 10_000  # texts whose vectors a rotation is learned from; the rest only get codes
VECTOR_BITS = 256


def fit_texts(
    hasher: TextHasher,
    train: Texts,
    validation: Texts | None = None,
    *,
    sampled_from: int | None = None,
    progress: bool = True,
    **given: Any,
) -> TextHasher:
    """Learn a model from texts, and measure its codes on the held-out ones for the model card.

    `sampled_from` is how many documents there are, where the texts are a sample of them; what else
    is `given` goes to `TextHasher.fit`.
    """
    # What there is was chosen before: nothing more is drawn.
    hasher.fit(*train, validation=validation, sample=None, progress=progress, **given)
    facts: dict[str, Any] = {"quality": _measure(hasher, train, validation, progress=progress)}
    facts |= {} if sampled_from is None else {"sampled_from": sampled_from}
    hasher.model_.training = {**hasher.model_.training, **facts}
    return hasher


def fit_store(
    store: Store,
    n_bits: int | None = None,
    *,
    labels: bool = False,
    method: str | None = None,
    random_state: int = 0,
    embed: str | None = None,
    progress: bool = True,
) -> Model:
    """Learn a model from the documents of a store, which stays as it is; see `Store.learn`."""
    if embed is not None:
        embed_texts(["a text"], embed)  # or say that it does not load, before anything is learned
    n_documents = store.count()
    documents = store.sample(MOST_LEARNED)
    n_bits = choose_bits(n_bits, len({one.text for one in documents}), n_documents)
    if method is None:
        method = "vdsh-s" if labels else choose_method(n_bits, [one.text for one in documents])
    hasher = TextHasher(method, n_bits, random_state=random_state)
    hasher.check_settings()
    if HASHERS[hasher.model].supervised and all(one.labels is None for one in documents):
        raise InputError("No document of the store has labels to learn from. Leave out labels.")
    train, held_out = hold_out(len(documents), random_state)
    if len(train) < n_bits:  # all are needed to learn from
        train, held_out = list(range(len(documents))), []
    sampled_from = None if n_documents <= len(documents) else n_documents
    model = fit_texts(
        hasher,
        texts_and_labels([documents[i] for i in train]),
        texts_and_labels([documents[i] for i in held_out]) if held_out else None,
        source="documents of the store",
        sampled_from=sampled_from,
        progress=progress,
    ).model_
    if model.learned.get("interrupted_"):
        raise KeyboardInterrupt
    if sampled_from and model.profile is not None:  # the other documents are no newer
        model.profile = model.profile.with_seen(one.text for one in store)
    if embed is None:
        return model
    some = [documents[i].text for i in sample(len(documents), MOST_EMBEDDED)]
    vectors = embed_with_bar(some, embed, progress=progress)
    vectors = vectors[vectors.any(axis=1)]
    n_bits = max(8, min(VECTOR_BITS, len(vectors) // 8 * 8))  # ITQ takes a document a bit
    how: dict[str, Any] = {"embedder": embed, "source": embed, "progress": progress}
    return JointModel(model, fit_vectors(vectors, n_bits, random_state=random_state, **how))


def choose_bits(n_bits: int | None, n_different: int, n_documents: int) -> int:
    """Return how long the codes of a store are: as long as was asked for, or as documents allow.

    >>> [choose_bits(None, n, n) for n in (50, 63, 64, 127, 128, 9000)]
    [32, 32, 64, 64, 128, 128]
    """
    if n_bits is not None:
        check_n_bits(n_bits)
    there = f"the store holds {n_different:,}"
    if n_documents > n_different:
        there += f" (and {n_documents - n_different:,} copies)"
    if n_different < min(LEAST_LEARNED.values()):
        raise InputError(
            f"Codes are learned from {min(LEAST_LEARNED.values())} different documents or more, "
            f"and {there}. It answers as before."
        )
    if n_bits is None:
        return max(bits for bits, least in LEAST_LEARNED.items() if least <= n_different)
    if n_bits > n_different:
        fitting = choose_bits(None, n_different, n_documents)
        raise InputError(
            f"{n_bits} bits need at least {n_bits} different documents to learn from, and {there}. "
            f"Leave the number of bits out, which takes {fitting}. It answers as before."
        )
    return n_bits


def choose_method(n_bits: int, texts: Sequence[str]) -> str:
    """Choose the method to learn texts without labels with: the network only where it is better.

    Of long codes it improves little and takes minutes; short texts it learns no better from 16 bits
    on. Measured in docs/results.md, "Where the network wins".
    """
    if n_bits >= LONG:
        return "linear"
    if n_bits >= SHORTEST_OF_SHORT and _are_short(texts):
        return "linear"
    return default_method()


def _are_short(texts: Sequence[str]) -> bool:
    """Tell whether texts have few different words; a thousand of them say so."""
    some = [texts[i] for i in sample(len(texts), 1_000)]
    try:
        return are_short(BagOfWords().fit_transform(some))
    except InputError:  # no word is left to count, which learning will say
        return False


def embed_with_bar(texts: Sequence[str], model: str, *, progress: bool) -> Vectors:
    """Embed texts, with a bar; what was embedded before is taken from the cache."""
    with show_progress("embedding", len(texts), enabled=progress) as show:
        return embed_texts(texts, model, progress=show)


def texts_and_labels(documents: Sequence[Document]) -> Texts:
    """Divide documents; the labels are None where no document has any."""
    labels = [document.labels for document in documents]
    known = any(label is not None for label in labels)
    return [document.text for document in documents], labels if known else None


def fit_vectors(
    vectors: Any,
    n_bits: int = 64,
    *,
    model: str = "itq",
    random_state: int | None = None,
    embedder: str = "",
    source: str = "",
    progress: bool = True,
) -> VectorHasher:
    """Learn a model from vectors; see `VectorHasher`."""
    hasher = VectorHasher(n_bits, model=model, random_state=random_state)
    with training_bar(enabled=progress) as report:
        return hasher.fit(vectors, embedder=embedder, progress=report, source=source)


def _measure(
    hasher: TextHasher, train: Texts, validation: Texts | None, *, progress: bool
) -> dict[str, Any]:
    """Measure the codes on the held-out documents, and say where they are not to be trusted."""
    quality = None
    if validation is not None:
        with suppress(KeyboardInterrupt), progress_bar(enabled=progress) as bar:  # keeps the model
            bar.add_task("measuring", total=None)
            quality = measure_quality(hasher, train, validation)
    found = {} if quality is None else quality._asdict()
    if quality is not None:
        found["values"] = {name: round(value, 4) for name, value in quality.values.items()}
    return found | {"warnings": find_faults(hasher, quality)}
