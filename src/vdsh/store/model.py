"""The model of a store: its fingerprint, where it is, loaded when a text needs it."""

import hashlib
import json
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vdsh.codes import Codes, Scores
from vdsh.errors import FolderError, InputError

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def fingerprint(hasher: "TextHasher") -> str:
    """Return the SHA-256 of all that decides which code a text gets.

    That is the vocabulary, the fitted arrays and the settings used in encoding; two models with
    one fingerprint give the same codes.
    """
    inner = _fitted(hasher).hasher_
    settings = {"model": hasher.model, "n_bits": int(inner.n_bits), "weighting": inner.weighting}
    digest = hashlib.sha256(json.dumps(settings).encode())
    for term in hasher.vectorizer_.vocabulary_:
        digest.update(f"{term}\n".encode("utf-8", "surrogatepass"))
    for name, value in sorted(vars(inner).items()):
        if name.endswith("_") and isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
            digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()


def load_hasher(hasher: Any) -> "TextHasher":
    """Return a fitted `TextHasher`, read from disk where a path was given."""
    from vdsh.pipeline import TextHasher  # imports scikit-learn, which a code query never needs

    if isinstance(hasher, str | os.PathLike):
        return TextHasher.load(hasher)
    if not isinstance(hasher, TextHasher):
        raise InputError(
            "hasher must be a TextHasher or the path of a model folder. "
            f"Got {type(hasher).__name__}."
        )
    return _fitted(hasher)


class StoreModel:
    """The model that made a store's codes.

    Parameters
    ----------
    n_bits : int
    fingerprint : str
    folder : path
        Where it is kept, for people and for `load`.
    hasher : TextHasher, optional
        The model itself, where it is in memory already.
    load : callable, optional
        How it is loaded from its place; by default as a model folder.
    """

    def __init__(
        self,
        n_bits: int,
        fingerprint: str,
        folder: str | os.PathLike[str],
        hasher: "TextHasher | None" = None,
        *,
        load: "Callable[[Any], TextHasher]" = load_hasher,
    ) -> None:
        self.n_bits = n_bits
        self.fingerprint = fingerprint
        self.folder = folder
        self._given = hasher
        self._load = load
        self.n_empty = 0  # texts without a known word, since the last warning

    @cached_property
    def hasher(self) -> "TextHasher":
        """The model, loaded when first used."""
        if self._given is not None:
            return self._given
        hasher = self._load(self.folder)
        if fingerprint(hasher) != self.fingerprint:
            raise FolderError(
                f"The model in '{self.folder}' is not the one this store was made with "
                f"({self.fingerprint[:12]}). Put that one back, or index the documents anew."
            )
        return hasher

    def encode(self, texts: list[str]) -> Codes:
        """Hash texts; those without a known word get the code of an empty document."""
        codes, n_empty = self.hasher.encode_and_count(texts)
        self.n_empty += n_empty
        return codes

    def warn_of_empty(self, n_documents: int) -> None:
        """Warn of the texts without a known word, and start counting anew."""
        if self.n_empty:
            from vdsh.pipeline import warn_of_empty

            warn_of_empty(self.n_empty, n_documents)
            self.n_empty = 0

    def bit_probabilities(self, text: str) -> Scores:
        """Return for each bit how likely it is 1 under the posterior Q(s | d) of a text."""
        inner = self.hasher.hasher_
        if not hasattr(inner, "bit_probabilities"):
            raise InputError(
                f"The model '{self.hasher.model}' does not say how sure it is of a bit. "
                'Use rank="distance", or a vdsh model.'
            )
        counts = self.hasher.vectorizer_.transform([text])
        chances: Scores = inner.bit_probabilities(counts)[0]
        return chances


def _fitted(hasher: "TextHasher") -> "TextHasher":
    if not hasattr(hasher, "hasher_"):
        raise InputError("This TextHasher has not learned anything yet. Call fit first.")
    return hasher
