"""`JointModel`: one code of two parts, the topic of a text and the vector of it."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, check_n_bits
from vdsh.embed import embed
from vdsh.errors import InputError, VdshError
from vdsh.model.model import SECOND, Model, as_model
from vdsh.model.vectors import check_vectors
from vdsh.persistence import Folder


class NoEmbedderWarning(UserWarning):
    """The embedding model of a store does not load: texts are answered without their vectors."""


class JointModel(Model):
    """A model of texts and one of their vectors: a code is the topic's bits, then the vector's.

    What it knows of words is the topic's. Where an embedding model makes the vectors, texts are
    enough; otherwise documents come with vectors, and a query may do without.

    Parameters
    ----------
    topic : TextHasher or Model
    second : VectorHasher or Model
        Of vectors, such as ITQ of 256 bits.

    Examples
    --------
    >>> from vdsh import TextHasher, VectorHasher
    >>> topic = TextHasher("lsh", 8, min_df=1, random_state=0).fit(8 * ["red sun", "blue sea"])
    >>> second = VectorHasher(16, random_state=0).fit(np.random.RandomState(0).normal(size=(20, 2)))
    >>> JointModel(topic, second).encode(["red sea"], [[1.0, 1.0]]).shape
    (1, 3)
    """

    second: Model

    def __init__(self, topic: Any, second: Any) -> None:
        self._topic, self.second = topic, second = as_model(topic), as_model(second)
        if topic.takes_vectors or topic.second is not None or not second.takes_vectors:
            raise InputError("JointModel takes a model of texts, then a model of vectors.")
        parts = ("settings", "text_settings", "given", "training", "profile")
        others = {name: getattr(topic, name) for name in parts}
        super().__init__(topic.name, topic.words, topic.learned, **others)
        self.n_bits = check_n_bits(topic.n_bits + second.n_bits)
        self._embeds = bool(second.embedder)

    @property
    def topic(self) -> Model:
        """The part of texts."""
        return self._topic

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the fingerprints of both parts."""
        import hashlib

        both = self.topic.fingerprint + self.second.fingerprint
        return hashlib.sha256(both.encode()).hexdigest()

    def encode(self, texts: Sequence[str], vectors: Any = None) -> Codes:
        """Hash texts with their vectors, which are made of the texts where they are not given."""
        return self.encode_and_count(texts, vectors)[0]

    def encode_and_count(self, texts: Sequence[str], vectors: Any = None) -> tuple[Codes, int]:
        """Hash texts with their vectors, and count the texts without any known word."""
        if vectors is None and not self.embedder:
            raise InputError(
                f"This model hashes texts with vectors of {self.second.n_inputs:,} dimensions, and "
                "no embedding model makes them. Give the vectors of the texts."
            )
        codes, n_empty = self.topic.encode_and_count(texts)
        if vectors is None:
            others = self.second.encode(texts)
        else:
            others = self.second.encode_vectors(check_vectors(vectors, len(texts)))
        return np.hstack([codes, others]), n_empty

    def embed_queries(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """Embed queries; None for those that there is nothing to embed with, or that are zero.

        An embedding model that does not load is told of once, and not tried again.
        """
        if not self._embeds or not texts:
            return [None] * len(texts)
        try:
            found = embed(texts, self.embedder)
            check_vectors(found, n_dimensions=self.second.n_inputs, zeros=True)
            return [vector if vector.any() else None for vector in found]
        except VdshError as error:
            self._embeds = False
            told = f"Texts are answered by words and topic, without their vectors: {error}"
            warnings.warn(told, NoEmbedderWarning, stacklevel=2)
            return [None] * len(texts)

    def _folder(self) -> Folder:
        manifest, weights, words = self.topic._folder()
        second = self.second._folder()
        arrays = {SECOND + name: array for name, array in second.weights.items()}
        return Folder(manifest | {"second": second.manifest}, weights | arrays, words)


def restore_joint(folder: Folder) -> JointModel:
    """Divide what a `JointModel` wrote, and check either part."""
    manifest, weights, words = folder
    arrays = {name: weights.pop(name) for name in [*weights] if name.startswith(SECOND)}
    arrays = {name.removeprefix(SECOND): array for name, array in arrays.items()}
    second = Folder(manifest.pop("second"), arrays, None)
    return JointModel(Model._restore(Folder(manifest, weights, words)), Model._restore(second))
