"""`TextHasher`: texts in, codes out. What the README, the command line and the server use."""

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cached_property
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from vdsh.codes import Bits, Codes, unpack
from vdsh.documents.document import MOST_LEARNED, draw
from vdsh.errors import InputError, suggest
from vdsh.estimator import Estimator, check_is_fitted
from vdsh.hashers import HASHERS, Hasher, default_method
from vdsh.hashers.base import Progress
from vdsh.model import Model
from vdsh.model.drift import make_profile
from vdsh.model.health import warn_of_bits
from vdsh.model.model import EmptyDocumentWarning, warn_of_empty
from vdsh.model.profile import hold_out, take
from vdsh.model.vectors import check_vectors
from vdsh.persistence import jsonable
from vdsh.progress import training_bar
from vdsh.text import BagOfWords
from vdsh.text.word_counter import check_texts

__all__ = ["EmptyDocumentWarning", "TextHasher"]

_OWN = ("model", "n_bits", "random_state")


class TextHasher(Estimator):
    """Learn binary codes from texts.

    Parameters
    ----------
    model : str, optional
        The method: a name in `vdsh.hashers.HASHERS`. By default "vdsh"; "linear" where torch is
        not installed.
    n_bits : int, default=32
        Length of the codes.
    random_state : int, RandomState or None
        The same number gives the same codes on the same machine. Of a RandomState a saved model
        keeps nothing.
    **settings
        Any setting of `BagOfWords` (`vocabulary_size`, `min_df`, ...) or of the method
        (`epochs`, `weighting`, `threshold`, `device`, ...).

    Attributes
    ----------
    model_ : Model
        What was learned, ready to serve: all that `save` writes.
    vectorizer_ : BagOfWords
    hasher_ : Hasher

    Examples
    --------
    >>> texts = ["the shuttle orbit", "a rocket orbit"] * 8 + ["goal and match", "a match ball"] * 8
    >>> hasher = TextHasher("vdsh", n_bits=8, random_state=0, epochs=3, hidden_size=16)
    >>> hasher.fit(texts).encode(texts).shape
    (32, 1)
    """

    def __init__(
        self,
        model: str | None = None,
        n_bits: int = 32,
        *,
        random_state: Any = None,
        **settings: Any,
    ) -> None:
        self.model = default_method() if model is None else model
        self.n_bits = n_bits
        self.random_state = random_state
        self.settings = settings

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        if "model_" not in vars(self):
            return f"TextHasher({given})"
        facts = self.model_.training
        learned = f"{facts['documents']:,} documents and {facts['terms']:,} terms"
        return f"<TextHasher({given}), learned from {learned}>"

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[Any] | None = None,
        *,
        validation: tuple[Any, ...] | Sequence[str] | float | None = 0.1,
        vectors: Any = None,
        sample: int | None = MOST_LEARNED,
        progress: Progress | bool = True,
        source: str = "",
        vectors_source: str = "",
    ) -> Self:
        """Learn vocabulary, network and thresholds.

        Parameters
        ----------
        texts : sequence of str
        labels : sequence, optional
            Per text a label, a list of labels, or None where unknown. Unsupervised models use
            them only to measure precision on the validation texts.
        validation : (texts, labels), texts, or a share, default=0.1
            Held-out texts, which choose the best epoch and tell drift later. A share of the texts
            is drawn at random, where there are 100 at least; None holds none out.
        vectors : array of shape (n_texts, n_dimensions), optional
            A teacher: vectors of the texts, such as embeddings, that say in training which texts
            are alike. The trained model sees words alone.
        sample : int or None, default=100_000
            Learn from at most so many texts, and 200 million characters: of more, a random
            sample. None learns from all of them.
        progress : bool or callable, default=True
            True draws a bar on standard error, or writes a line every 10 s where that is no
            terminal; a callable gets each `Report`.
        source, vectors_source : str
            Where texts and vectors come from, for the model card.
        """
        vectorizer, hasher = self._parts()
        jsonable(self.get_params())  # what cannot be saved is refused before the work
        texts = check_texts(texts)
        n_given = len(texts)
        texts, labels, vectors = _draw(sample, texts, labels, vectors)
        sampled = {"sampled_from": n_given} if len(texts) < n_given else {}
        if isinstance(validation, float | int):
            kept, rest = hold_out(len(texts), self.random_state, validation)
            validation = None
            if rest and (labels is None or len(labels) == len(texts)):  # else the hasher complains
                vectors = None if vectors is None else check_vectors(vectors, len(texts))
                validation = take(texts, rest), take(labels, rest)
                texts, labels, vectors = (take(part, kept) for part in (texts, labels, vectors))
        bar = (
            training_bar(enabled=progress) if isinstance(progress, bool) else nullcontext(progress)
        )
        with bar as report:
            vectorizer.fit(texts)
            counts = vectorizer.transform(texts)
            n_empty = int((np.diff(counts.indptr) == 0).sum())
            warn_of_empty(n_empty, counts.shape[0])
            held_out = _held_out(vectorizer, validation)
            hasher.fit(counts, labels, validation=held_out, vectors=vectors, progress=report)
        self.vectorizer_, self.hasher_ = vectorizer, hasher
        facts: dict[str, Any] = {
            "source": source,
            "documents": counts.shape[0],
            "validation_documents": 0 if held_out is None else held_out[0].shape[0],
            "terms": counts.shape[1],
            "words_per_document": float(counts.sum() / counts.shape[0]),
            "documents_without_words": n_empty,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        } | sampled
        if vectors is not None:
            facts["vectors"] = {"source": vectors_source, "dimensions": len(vectors[0])}
        self.model_ = self._learned(facts)
        self.model_.profile = make_profile(self.model_, texts, validation)
        if hasher.n_distinct_codes_ == 1:
            warnings.warn(
                f"All {counts.shape[0]:,} documents have the same code: they have the same words, "
                "or too few. Give documents that differ.",
                stacklevel=2,
            )
        warn_of_bits(hasher.n_bits, hasher.unused_bits_, hasher.duplicated_bits_, counts.shape[0])
        return self

    def encode(self, texts: Sequence[str]) -> Codes:
        """Hash texts to packed codes: uint8 of shape (n_texts, n_bits // 8), big-endian bits.

        Texts without any known word all get the code of an empty document, with a warning.
        """
        check_is_fitted(self, "model_")
        codes, n_empty = self.model_.encode_and_count(texts)
        warn_of_empty(n_empty, len(codes))
        return codes

    def transform(self, texts: Sequence[str]) -> Bits:
        """Hash texts to 0/1 bits of shape (n_texts, n_bits)."""
        return unpack(self.encode(texts))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a model folder; `force` replaces an older one."""
        check_is_fitted(self, "model_")
        self.model_.save(path, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model folder written by `save`."""
        model = Model.load(path)
        if model.takes_vectors:
            raise InputError(f"The model in '{path}' hashes vectors. Load it with VectorHasher.")
        if model.second is not None:
            raise InputError(f"The model in '{path}' hashes vectors too. Load it with Model.load.")
        hasher = cls(**model.given)
        hasher.model_ = model
        return hasher

    @cached_property
    def vectorizer_(self) -> BagOfWords:
        """The vocabulary as an estimator."""
        check_is_fitted(self, "model_")
        return BagOfWords(**self.model_.text_settings).know(self.model_.words)

    @cached_property
    def hasher_(self) -> Hasher:
        """The method as an estimator, with what it learned."""
        check_is_fitted(self, "model_")
        hasher = HASHERS[self.model](**self.model_.settings)
        for name, value in self.model_.learned.items():
            setattr(hasher, name, value)
        return hasher

    def _learned(self, training: dict[str, Any]) -> Model:
        """Put what vectoriser and hasher learned together."""
        return Model(
            self.model,
            self.vectorizer_.vocabulary_.tolist(),
            self.hasher_.learned(),
            settings=self.hasher_.get_params(),
            text_settings=self.vectorizer_.get_params(),
            given=self.get_params(),
            training=training,
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings that were given."""
        return {name: getattr(self, name) for name in _OWN} | self.settings

    def set_params(self, **params: Any) -> Self:
        """Change settings."""
        for name, value in params.items():
            if name in _OWN:
                setattr(self, name, value)
            else:
                self.settings = {**self.settings, name: value}
        return self

    def check_settings(self) -> None:
        """Raise when the model or a setting does not exist; values are checked by `fit`."""
        self._parts()

    def _parts(self) -> tuple[BagOfWords, Hasher]:
        """Make vectoriser and hasher, each with its own settings."""
        if self.model not in HASHERS:
            raise InputError(f"No model '{self.model}'. {suggest(self.model, list(HASHERS))}")
        kind = HASHERS[self.model]
        of_text, of_hasher = (set(signature(one).parameters) for one in (BagOfWords, kind))
        of_hasher -= set(_OWN)
        for name in self.settings:
            if name not in of_text | of_hasher:
                known = sorted(of_text | of_hasher)
                raise InputError(
                    f"The model '{self.model}' has no setting '{name}'. {suggest(name, known)}"
                )
        text = {name: value for name, value in self.settings.items() if name in of_text}
        rest = {name: value for name, value in self.settings.items() if name in of_hasher}
        return BagOfWords(**text), kind(n_bits=self.n_bits, random_state=self.random_state, **rest)


def _draw(most: int | None, texts: Sequence[str], labels: Any, vectors: Any) -> tuple[Any, ...]:
    """Choose the texts to learn from, with what belongs to them."""
    others = [part for part in (labels, vectors) if part is not None]
    if most is None or any(len(part) != len(texts) for part in others):  # the hasher complains
        return texts, labels, vectors
    rows = draw(range(len(texts)), most, size=lambda i: len(texts[i]))
    if len(rows) == len(texts):
        return texts, labels, vectors
    return tuple(take(part, sorted(rows)) for part in (texts, labels, vectors))


def _held_out(vectorizer: BagOfWords, validation: Any) -> tuple[csr_array, Any] | None:
    """Count the validation texts; accept them with labels or alone."""
    if validation is None:
        return None
    texts, labels = validation if isinstance(validation, tuple) else (validation, None)
    return vectorizer.transform(texts), labels
