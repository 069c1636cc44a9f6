"""`VectorHasher`: vectors in, codes out."""

import os
import warnings
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from vdsh.codes import Bits, Codes, unpack
from vdsh.errors import InputError, suggest
from vdsh.estimator import Estimator, check_is_fitted, check_matrix
from vdsh.hashers.base import Hasher, Progress
from vdsh.hashers.baselines.itq import ITQ
from vdsh.hashers.baselines.lsh import LSH
from vdsh.hashers.baselines.spectral import SpectralHashing
from vdsh.model import Model
from vdsh.model.vectors import as_rows, check_vectors

METHODS: dict[str, type[Hasher]] = {"itq": ITQ, "lsh": LSH, "sph": SpectralHashing}


class ZeroVectorWarning(UserWarning):
    """Some vectors are zero; all of them get the same code."""


class VectorHasher(Estimator):
    """Learn binary codes from vectors, such as embeddings: near vectors get similar codes.

    Vectors are scaled to unit length first; near means a high cosine. A query may stay a vector:
    a store then ranks by the rotated values of ITQ, which say more than their signs.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the codes, a multiple of 8.
    model : {"itq", "lsh", "sph"}, default="itq"
        The method: iterative quantisation, random hyperplanes or spectral hashing.
    random_state : int, RandomState or None
        The same number gives the same codes on the same machine.

    Attributes
    ----------
    model_ : Model
        What was learned, ready to serve with numpy alone: all that `save` writes.
    n_features_in_ : int
        Dimensions of the vectors.

    Examples
    --------
    >>> vectors = np.random.RandomState(0).normal(size=(40, 5))
    >>> hasher = VectorHasher(8, random_state=0).fit(vectors)
    >>> hasher.encode(vectors).shape
    (40, 1)
    """

    def __init__(self, n_bits: int = 64, *, model: str = "itq", random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.model = model
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        embedder: str = "",
        progress: Progress | None = None,
        source: str = "",
    ) -> Self:
        """Learn from vectors.

        Parameters
        ----------
        X : array of shape (n_docs, n_dimensions)
            Finite numbers; you are warned of rows that are zero.
        y : ignored
            There for pipelines.
        embedder : str, optional
            What made the vectors, as "model2vec:FOLDER" or "sentence-transformers:NAME": the
            model then embeds texts itself.
        progress : callable, optional
            Called with a `Report` now and then.
        source : str
            Where the vectors come from, for the model card.
        """
        kind = self.check_model()
        vectors = self._check(X, reset=True)
        hasher = kind(n_bits=self.n_bits, weighting="tf", random_state=self.random_state)
        hasher.fit(as_rows(vectors).to_csr(), progress=progress)
        self.model_ = Model(
            self.model,
            [],
            hasher.learned(),
            settings=hasher.get_params(),
            text_settings={},
            given=self.get_params(),
            training={
                "source": source,
                "documents": len(vectors),
                "dimensions": vectors.shape[1],
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            | ({"embedder": embedder} if embedder else {}),
            takes_vectors=True,
        )
        return self

    def encode(self, X: Any) -> Codes:
        """Hash vectors to packed codes of shape (n_docs, n_bits // 8)."""
        check_is_fitted(self, "model_")
        return self.model_.encode_counts(as_rows(self._check(X, reset=False)))

    def transform(self, X: Any) -> Bits:
        """Hash vectors to 0/1 bits of shape (n_docs, n_bits)."""
        return unpack(self.encode(X))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a model folder; `force` replaces an older one."""
        check_is_fitted(self, "model_")
        self.model_.save(path, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model folder written by `save`."""
        model = Model.load(path)
        if not model.takes_vectors:
            raise InputError(f"The model in '{path}' hashes texts. Load it with TextHasher.")
        hasher = cls(**model.given)
        hasher.model_, hasher.n_features_in_ = model, model.n_inputs
        return hasher

    def check_model(self) -> type[Hasher]:
        """Return the class of the method, or raise where there is none."""
        if self.model not in METHODS:
            raise InputError(
                f"No model '{self.model}' of vectors. {suggest(str(self.model), list(METHODS))}"
            )
        return METHODS[self.model]

    def _check(self, X: Any, *, reset: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Settle what scikit-learn cares for, then what we do; it wants zeros to be taken."""
        vectors = check_vectors(check_matrix(self, X, reset=reset, negative=True), zeros=True)
        if n_zero := int((~vectors.any(axis=1)).sum()):
            warnings.warn(
                f"{n_zero:,} of {len(vectors):,} vectors are zero, which is near to nothing; they "
                "all get one code.",
                ZeroVectorWarning,
                stacklevel=3,
            )
        return vectors
