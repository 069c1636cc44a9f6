"""`VectorHasher`: vectors in, codes out."""

import os
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from vdsh.codes import Bits, Codes, unpack
from vdsh.errors import InputError, suggest
from vdsh.hashers.base import Hasher, Progress
from vdsh.hashers.baselines.itq import ITQ
from vdsh.hashers.baselines.lsh import LSH
from vdsh.hashers.baselines.spectral import SpectralHashing
from vdsh.hashers.vectors.vdsh_v import VDSH_V
from vdsh.model import Model
from vdsh.model.vectors import as_rows, check_vectors
from vdsh.text import BagOfWords

METHODS: dict[str, type[Hasher]] = {
    "vdsh-v": VDSH_V,
    "lsh": LSH,
    "sph": SpectralHashing,
    "itq": ITQ,
}


class ZeroVectorWarning(UserWarning):
    """Some vectors are zero; all of them get the same code."""


class VectorHasher(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn binary codes from vectors, such as embeddings: near vectors get similar codes.

    Vectors are scaled to unit length first; near means a high cosine. The model is a variational
    autoencoder of the VDSH family: the code has to tell the vector, and where among all others it
    lies over several hops.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the codes, a multiple of 8.
    model : {"vdsh-v", "itq", "sph", "lsh"}, default="vdsh-v"
        The method; the others are baselines, which have no setting here but `random_state`.
    hidden_size : int, default=1000
        Nodes in each of the two hidden layers. Twice the dimensions of the vectors, and some
        more, are best: the network then begins as the linear map that is nearest.
    epochs : int, optional
        Passes over the vectors, of which up to 50,000 are learned from. By default 900 over the
        root of their number, from 4 to 12.
    batch_size : int, default=200
    learning_rate : float, default=1e-3
        Step size of Adam at the beginning.
    random_state : int, RandomState or None
        The same number gives the same codes on the same machine.
    device : str, default="auto"
        Where to train: "cpu", "cuda", or a GPU if there is one.

    Attributes
    ----------
    model_ : Model
        What was learned, ready to serve with numpy alone: all that `save` writes.
    n_features_in_ : int
        Dimensions of the vectors.

    Examples
    --------
    >>> vectors = np.random.RandomState(0).normal(size=(40, 5))
    >>> hasher = VectorHasher(8, epochs=1, hidden_size=16, random_state=0).fit(vectors)
    >>> hasher.encode(vectors).shape
    (40, 1)
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        model: str = "vdsh-v",
        hidden_size: int = 1000,
        epochs: int | None = None,
        batch_size: int = 200,
        learning_rate: float = 1e-3,
        random_state: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_bits = n_bits
        self.model = model
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        texts: Sequence[str] | None = None,
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
        texts : sequence of str, optional
            What the vectors are of. The code then has to tell their words too, and
            `vdsh.explain` can say what its bits stand for. Hashing needs no texts.
        progress : callable, optional
            Called with a `Report` now and then.
        source : str
            Where the vectors come from, for the model card.
        """
        kind = self.check_model()
        vectors = self._check(X, reset=True)
        bag = BagOfWords()
        words = None if texts is None else bag.fit_transform(_check_number(texts, len(vectors)))
        settings = {"n_bits": self.n_bits, "weighting": "tf", "random_state": self.random_state}
        given: dict[str, Any] = {}
        if kind is VDSH_V:
            own = ("hidden_size", "epochs", "batch_size", "learning_rate", "device")
            settings |= {name: getattr(self, name) for name in own}
            given = {"words": words}
        hasher = kind(**settings).fit(as_rows(vectors).to_csr(), progress=progress, **given)
        has_words = kind is VDSH_V and words is not None
        self.model_ = Model(
            self.model,
            bag.vocabulary_.tolist() if has_words else [],
            hasher.learned(),
            settings=hasher.get_params(),
            text_settings=bag.get_params() if has_words else {},
            given=self.get_params(),
            training=_facts(vectors, words if has_words else None, source),
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
        kinds = [np.float32, np.float64]
        vectors = check_vectors(validate_data(self, X, dtype=kinds, reset=reset), zeros=True)
        if n_zero := int((~vectors.any(axis=1)).sum()):
            warnings.warn(
                f"{n_zero:,} of {len(vectors):,} vectors are zero, which is near to nothing; they "
                "all get one code.",
                ZeroVectorWarning,
                stacklevel=3,
            )
        return vectors

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_number(texts: Sequence[str], n_vectors: int) -> Sequence[str]:
    if len(texts) != n_vectors:
        raise InputError(
            f"Got {len(texts):,} texts but {n_vectors:,} vectors. Give one per vector, in order."
        )
    return texts


def _facts(vectors: Any, words: csr_array | None, source: str) -> dict[str, Any]:
    n_docs, n_dimensions = vectors.shape
    return {
        "source": source,
        "documents": n_docs,
        "dimensions": n_dimensions,
        "terms": 0 if words is None else words.shape[1],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
