"""`Model`: what a model folder holds, and all that serving needs, without scikit-learn or torch."""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from vdsh import __version__
from vdsh.codes import Codes, Scores, binarize, pack, unpack
from vdsh.embed import embed
from vdsh.errors import InputError
from vdsh.model.card import model_card
from vdsh.model.encoders import ENCODERS, Encoder, Network, Posterior, Probabilistic, normal_cdf
from vdsh.model.learned import check_learned
from vdsh.model.network import Decoder
from vdsh.model.profile import PREFIX, Profile, read_profile
from vdsh.model.vectors import as_rows, check_vectors
from vdsh.persistence import (
    Folder,
    check_free,
    from_files,
    from_json,
    jsonable,
    read_folder,
    reading,
    to_files,
    write_folder,
)
from vdsh.text.counts import Counts, Sparse, weights
from vdsh.text.stopwords import stop_words
from vdsh.text.word_counter import WordCounter, check_texts

_OF_VECTORS = "VectorHasher"
SECOND = "second."  # begins the names of the arrays of a `JointModel`'s second part
_BLOCK = 10_000  # vectors at a time: some megabytes


class EmptyDocumentWarning(UserWarning):
    """Some documents have no known word; all of them get the same code."""


def warn_of_empty(n_empty: int, n_documents: int) -> None:
    """Warn where some documents have no known word."""
    if n_empty:
        warnings.warn(
            f"{n_empty} of {n_documents} documents have no known word; "
            "they get the code of an empty document.",
            EmptyDocumentWarning,
            stacklevel=3,
        )


@dataclass(eq=False, repr=False)
class Model:
    """A trained model: texts in, or vectors, and codes out.

    `TextHasher` learns one, `VectorHasher` one of vectors; stores, the service and the command
    line use it.

    Parameters
    ----------
    name : str
        The method, such as "vdsh".
    words : sequence of str
        The vocabulary, in column order; none for a model of vectors.
    learned : mapping
        What the hasher learned, by attribute name: arrays and plain values.
    settings : mapping
        All settings of the hasher.
    text_settings : mapping
        All settings of the vocabulary.
    given : mapping
        The settings that a person gave, from which `TextHasher` can learn again.
    training : mapping
        What it was trained on, for the model card.
    profile : Profile, optional
        What held-out documents looked like to it when it learned; see `vdsh.model.drift`.
    takes_vectors : bool
        Whether it hashes vectors, and no texts.

    Attributes
    ----------
    n_bits : int
    n_inputs : int
        Columns of what it hashes: words of the vocabulary, or dimensions of vectors.
    thresholds : ndarray of shape (n_bits,)
    decoder : Decoder or None
        Words from latent vectors; None where the method only encodes.
    """

    second = cast("Model | None", None)  # of a `JointModel`, the part of vectors; no parameter

    name: str
    words: Sequence[str]
    learned: Mapping[str, Any]
    _: KW_ONLY
    settings: Mapping[str, Any]
    text_settings: Mapping[str, Any]
    given: Mapping[str, Any]
    training: Mapping[str, Any]
    profile: Profile | None = None
    takes_vectors: bool = False

    def __post_init__(self) -> None:
        learned = self.learned
        self.n_inputs = int(learned["n_features_in_"])
        self.n_bits = int(self.settings["n_bits"])
        self.thresholds: Scores = learned["thresholds_"]
        self.encoder: Encoder = ENCODERS[self.name].of(learned, self.settings)
        self.decoder = Decoder.of(learned, {}) if "G_" in learned else None
        self._counter = WordCounter(self.words, stop_words(self.text_settings.get("stop_words")))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Read a model folder."""
        return cls._checked(read_folder(path), path)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], shown: str) -> "Model":
        """Read the files of a model folder from memory, as a database keeps them."""
        return cls._checked(from_files(files, shown), shown)

    @classmethod
    def _checked(cls, folder: Folder, shown: str | os.PathLike[str]) -> "Model":
        with reading(shown):
            model = cls._restore(folder)
            model_card(model)  # has all that it tells
        return model

    @classmethod
    def _restore(cls, folder: Folder) -> "Model":
        manifest = folder.manifest
        if "second" in manifest:
            from vdsh.model.joint import restore_joint  # which is made of two models

            return restore_joint(folder)
        parts = ("params", "hasher", "vectorizer", "fitted")
        given, settings, text_settings, values = (from_json(manifest[part]) for part in parts)
        words, name = folder.vocabulary or [], given["model"]
        takes_vectors = manifest["class"] == _OF_VECTORS
        kept = {key: folder.weights.pop(key) for key in [*folder.weights] if key.startswith(PREFIX)}
        check_learned(name, settings, folder.weights, values)
        fits = len(words) == (0 if takes_vectors else values["n_features_in_"])
        if not fits or given["n_bits"] != settings["n_bits"]:
            raise ValueError("vocabulary, settings and weights do not belong together")
        return cls(
            name,
            words,
            values | folder.weights,
            settings=settings,
            text_settings=text_settings,
            given=given,
            training=manifest["training"],
            profile=read_profile(kept, settings["n_bits"]),
            takes_vectors=takes_vectors,
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a model folder; `force` replaces an older one."""
        check_free(path, force=force)
        write_folder(path, self._folder(), model_card(self), force=force)

    def to_files(self) -> dict[str, bytes]:
        """Give the files of its folder by name, for a database to keep."""
        return to_files(self._folder(), model_card(self))

    def _folder(self) -> Folder:
        arrays = {k: v for k, v in self.learned.items() if isinstance(v, np.ndarray)}
        manifest = {
            "class": _OF_VECTORS if self.takes_vectors else "TextHasher",
            "vdsh": __version__,
            "params": jsonable(self.given),
            "hasher": jsonable(self.settings),
            "vectorizer": jsonable(self.text_settings),
            "fitted": jsonable({k: v for k, v in self.learned.items() if k not in arrays}),
            "training": self.training,
        }
        kept = {} if self.profile is None else self.profile.to_arrays()
        return Folder(manifest, arrays | kept, list(self.words))

    def __repr__(self) -> str:
        kind = "dimensions" if self.takes_vectors else "words"
        return f"<Model '{self.name}', {self.n_bits} bits, {self.n_inputs:,} {kind}>"

    @property
    def topic(self) -> "Model":
        """The part that hashes texts; another than itself for a `JointModel`."""
        return self

    @property
    def embedder(self) -> str:
        """The embedding model that makes vectors of texts, where it learned from such."""
        return str((self.second or self).training.get("embedder", ""))

    @property
    def texts_suffice(self) -> bool:
        """Whether it makes the code of a document of its text, without vectors from elsewhere."""
        return bool(self.embedder) or not (self.takes_vectors or self.second)

    @property
    def has_posterior(self) -> bool:
        """Whether it has a posterior Q(s | d), which says how sure it is of a bit."""
        return isinstance(self.encoder, Probabilistic)

    @property
    def has_private(self) -> bool:
        """Whether it has a private latent vector beside the one of the code: VDSH-SP."""
        return isinstance(self.encoder, Network) and self.encoder.W5 is not None

    @property
    def weighting(self) -> str:
        """How terms are weighed; see `weigh`."""
        return str(self.settings["weighting"])

    @property
    def idf(self) -> Scores | None:
        """The inverse document frequency of each word, of shape (n_terms,), where it is used."""
        return self.learned.get("idf_")

    @property
    def labels(self) -> list[str]:
        """The labels it has learned, none for an unsupervised model."""
        return list(self.learned.get("classes_", ()))

    def counts(self, texts: Sequence[str], vectors: Any = None) -> Counts:
        """Count the known words of texts; embed them, where the model hashes vectors.

        Parameters
        ----------
        texts : sequence of str
        vectors : array of shape (n_texts, n_dimensions), optional
            Those of the texts, for a model of vectors.
        """
        if vectors is not None:
            return self.rows(vectors, len(texts))
        if not self.takes_vectors:
            return self._counter.count(check_texts(texts))
        if not self.embedder:
            raise InputError(
                f"This model hashes vectors of {self.n_inputs:,} dimensions, and no texts. Give "
                "the vectors of the texts."
            )
        vectors = embed(check_texts(texts), self.embedder)
        return as_rows(check_vectors(vectors, n_dimensions=self.n_inputs, zeros=True))

    def rows(self, vectors: Any, n_docs: int | None = None) -> Counts:
        """Check vectors, and write them down as the rows that methods ending in `_of` take."""
        if not self.takes_vectors:
            raise InputError(
                f"This model hashes texts, and no vectors: it knows {self.n_inputs:,} words. Give "
                "texts, or learn a model of vectors (VectorHasher), or of both (JointModel)."
            )
        return as_rows(check_vectors(vectors, n_docs, self.n_inputs))

    def encode_vectors(self, vectors: Any) -> Codes:
        """Hash vectors of shape (n, n_dimensions) to packed codes of shape (n, n_bits // 8)."""
        starts = range(_BLOCK, len(vectors), _BLOCK)
        blocks = [vectors[first : first + _BLOCK] for first in (0, *starts)]
        return np.vstack([self.encode_counts(self.rows(block)) for block in blocks])

    def codes_and_weights(self, rows: Counts) -> tuple[Codes, Scores]:
        """Hash vectors, and give each bit a chance of being 1 by how large its score is.

        A query may stay a vector: its scores say more than its bits. A normal distribution
        function makes chances of them, scaled by twice their mean size (`docs/vectors.md`). A
        model of texts has the chances of its posterior.
        """
        if not self.takes_vectors:
            return self.codes_and_chances(rows)
        scores = self.scores_of(rows)
        apart = scores - self.thresholds
        size = np.maximum(np.abs(apart).mean(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return pack(binarize(scores, self.thresholds)), normal_cdf(apart / (2 * size))

    def unknown_words(self, text: str) -> list[str]:
        """List the words of a text that the model does not know, in order, each once.

        They have no part in its code. Stop words have none either, but are not listed.
        """
        return self._counter.unknown(text)

    def unknown_shares(self, texts: Sequence[str]) -> Scores:
        """Return the share of each text's words, stop words left out, that it does not know."""
        return self._counter.unknown_shares(check_texts(texts))

    def scores(self, texts: Sequence[str]) -> Scores:
        """Compute the numbers that thresholds turn into bits, of shape (n_texts, n_bits)."""
        return self.scores_of(self.counts(texts))

    def encode(self, texts: Sequence[str], vectors: Any = None) -> Codes:
        """Hash texts to packed codes of shape (n_texts, n_bits // 8); see `counts`."""
        return self.encode_counts(self.counts(texts, vectors))

    def encode_and_count(self, texts: Sequence[str], vectors: Any = None) -> tuple[Codes, int]:
        """Hash texts and count those without any known word."""
        counts = self.counts(texts, vectors)
        return self.encode_counts(counts), counts.n_empty

    def bit_probabilities(self, texts: Sequence[str]) -> Scores:
        """Return for each text and bit the probability under Q(s | d) that the bit is 1."""
        mu, sigma = self.posterior_of(self.counts(texts))
        return normal_cdf((mu - self.thresholds) / sigma)

    def scores_of(self, counts: Sparse) -> Scores:
        """Compute the scores of documents that are counted already."""
        return self.encoder.scores(self.weigh(counts))

    def encode_counts(self, counts: Sparse) -> Codes:
        """Hash documents that are counted already."""
        if not counts.shape[0]:
            return np.zeros((0, self.n_bits // 8), np.uint8)
        return pack(binarize(self.scores_of(counts), self.thresholds))

    def check_posterior(self) -> Probabilistic:
        """Return the encoder; raise where it has no posterior."""
        if not isinstance(self.encoder, Probabilistic):
            raise InputError(
                f"The model '{self.name}' has no posterior: it does not say how sure it is of a "
                "bit. Use linear or a vdsh model."
            )
        return self.encoder

    def codes_and_chances(self, counts: Sparse) -> tuple[Codes, Scores]:
        """Hash counted documents, and give the probability of each bit being 1.

        A method without a posterior is sure.
        """
        if not self.has_posterior:
            codes = self.encode_counts(counts)
            return codes, unpack(codes).astype(np.float64)
        mu, sigma = self.posterior_of(counts)
        codes = pack(binarize(mu, self.thresholds))
        return codes, normal_cdf((mu - self.thresholds) / sigma)

    def posterior_of(self, counts: Sparse) -> Posterior:
        """Return mean and deviation of Q(s | d) for documents that are counted already."""
        return self.check_posterior().posterior(self.weigh(counts))

    def private_posterior_of(self, counts: Sparse) -> Posterior | None:
        """Return mean and deviation of Q(v | d); None for a model without a private vector."""
        if not isinstance(self.encoder, Network):
            return None
        return self.encoder.private_posterior(self.weigh(counts))

    def weigh(self, counts: Sparse) -> Counts:
        """Weigh the terms of counted documents as the encoder wants them."""
        values = weights(counts, self.weighting, self.idf)
        return Counts(values, counts.indices, counts.indptr, counts.shape)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of all that decides which code a text gets.

        That is the vocabulary, the fitted arrays and the settings used in encoding; two models
        with one fingerprint give the same codes.
        """
        import hashlib  # loads OpenSSL, which a search by words does without

        settings = {"model": self.name, "n_bits": self.n_bits, "weighting": self.weighting}
        digest = hashlib.sha256(json.dumps(settings).encode())
        lines = "".join(f"{word}\n" for word in self.words)
        digest.update(lines.encode("utf-8", "surrogatepass"))
        for name, value in sorted(self.learned.items()):
            if isinstance(value, np.ndarray):
                digest.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
                digest.update(np.ascontiguousarray(value).data)
        return digest.hexdigest()


def as_model(hasher: Any) -> Model:
    """Return the model of a fitted `TextHasher`, or the model that was given."""
    if isinstance(hasher, Model):
        return hasher
    model = getattr(hasher, "model_", None)
    if isinstance(model, Model):
        return model
    if isinstance(getattr(hasher, "model", None), str):
        raise InputError("This TextHasher has not learned anything yet. Call fit first.")
    raise InputError(
        "hasher must be a TextHasher, a Model or the path of a model folder. "
        f"Got {type(hasher).__name__}."
    )
