"""VDSH-V: the variational autoencoder of the family over vectors; `VectorHasher` makes it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Hasher, Progress, trainer
from vdsh.model.encoders import Network
from vdsh.text.weighting import inverse_document_frequency


@dataclass(eq=False, repr=False, kw_only=True)
class VDSH_V(Hasher):
    """Hash vectors so that near ones get similar codes.

    Parameters as in `VectorHasher`; `weighting` "tf" scales vectors to unit length.

    Attributes
    ----------
    W1_, b1_, W2_, b2_, W3_, b3_, W4_, b4_ : ndarray
        The encoder, as in `VDSH`.
    D_, b_decoder_, G_, b_words_, idf_ : ndarray
        The decoder of words, and their inverse document frequencies, where words were given.
    history_ : list of dict
        Loss and divergence of each epoch.
    """

    signed: ClassVar[bool] = True
    encoder = Network

    weighting: str = "tf"
    threshold: str = "sign"
    hidden_size: int = 1000
    decoder_size: int = 200
    epochs: int | None = None
    batch_size: int = 200
    learning_rate: float = 1e-3
    device: str = "auto"

    def fit(self, X: Any, y: Any = None, *, words: csr_array | None = None, **given: Any) -> Self:
        """Learn from vectors, and from the word counts of the same documents where given."""
        self._words = words
        try:
            return super().fit(X, y, **given)
        finally:
            del self._words

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        for name in ("hidden_size", "decoder_size", "epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1. Got {value!r}.")
        n_docs = train.inputs.shape[0]
        self.epochs_ = int(self.epochs or _epochs(n_docs))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        vectors = train.inputs.toarray()
        trained = trainer("vectors.training").train(self, vectors, self._words, seed, progress)
        for name, array in trained.weights.items():
            setattr(self, f"{name}_", array)
        if self._words is not None:
            self.idf_ = inverse_document_frequency(self._words)
        self.history_ = trained.history


def _epochs(n_docs: int) -> int:
    """900 over the root of the number of vectors, from 4 to 12.

    >>> [_epochs(n) for n in (1_000, 15_000, 50_000)]
    [12, 7, 4]
    """
    return min(max(4, int(900 / n_docs**0.5)), 12)
