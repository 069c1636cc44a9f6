"""Warm start: the weights of a trained model, laid out for a vocabulary that has grown."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import InputError
from vdsh.model import Model

Floats = NDArray[np.float32]

SHAPE = ("n_bits", "weighting", "hidden_size", "decoder_size", "log_variance")
_FEW = 1e-12  # a sum of weights that is none


class WarmStart(NamedTuple):
    """A trained model to learn on from."""

    learned: Mapping[str, Any]  # what its hasher learned, by attribute name
    settings: Mapping[str, Any]  # all settings of its hasher
    columns: NDArray[np.intp]  # (n_terms,): of each new term in the old vocabulary, -1 for none

    @property
    def hidden_size(self) -> int:
        """Nodes of a hidden layer."""
        return len(self.learned["b1_"])

    @classmethod
    def of(cls, model: Model, words: Sequence[str]) -> "WarmStart":
        """Take a model, to learn on with this vocabulary."""
        old = {word: column for column, word in enumerate(model.words)}
        columns = np.array([old.get(word, -1) for word in words], np.intp)
        return cls(model.learned, model.settings, columns)


def check_shape(start: WarmStart, settings: Mapping[str, Any]) -> None:
    """Raise unless a network of these settings has the shape of the trained one."""
    before = {**start.settings, "hidden_size": start.hidden_size}
    for name in SHAPE:
        if before[name] != settings[name]:
            raise InputError(
                f"The model to start from has {name}={before[name]!r}, but this one has "
                f"{settings[name]!r}. Use the same settings, or learn from nothing."
            )


def grown_weights(
    start: WarmStart, inputs: csr_array, classes: Sequence[str] = ()
) -> dict[str, Floats]:
    """Lay the weights out for the new terms and labels, by their names in the network.

    A new word's row is the mean of the rows of words that it occurs with, weighted as the encoder
    sees them; so it starts as the words around it are. What has no old weight at all is not a
    number, and stays as a fresh network has it. `inputs` and `classes` are the new model's.
    """
    weights = {
        name.removesuffix("_"): value
        for name, value in start.learned.items()
        if isinstance(value, np.ndarray) and name.removesuffix("_") in _NETWORK
    }
    company = _company(inputs, start.columns)
    weights["W1"] = _rows(weights["W1"], start.columns, company)
    weights["G"] = np.ascontiguousarray(_rows(weights["G"].T, start.columns, company).T)
    weights["b_words"] = _take(weights["b_words"], start.columns)
    if "U" in weights:
        old = {label: column for column, label in enumerate(start.learned["classes_"])}
        labels = np.array([old.get(label, -1) for label in classes], np.intp)
        weights["U"] = np.ascontiguousarray(_take(weights["U"].T, labels).T)
        weights["b_labels"] = _take(weights["b_labels"], labels)
    return weights


_NETWORK = "W1 b1 W2 b2 W3 b3 W4 b4 W5 b5 W6 b6 D b_decoder G b_words U b_labels".split()


def _take(rows: Floats, columns: NDArray[np.intp]) -> Floats:
    """Give each new place what its old one has, or no number."""
    taken = rows[columns]
    taken[columns < 0] = np.nan
    return taken


def _rows(rows: Floats, columns: NDArray[np.intp], company: csr_array) -> Floats:
    """Give old words their rows, and new ones the mean of their company's."""
    taken = _take(rows, columns)
    is_new = columns < 0
    known = np.where(is_new[:, None], np.float32(0), taken)
    means = (company @ known).astype(np.float32)
    means[np.diff(company.indptr) == 0] = np.nan
    taken[is_new] = means
    return taken


def _company(inputs: csr_array, columns: NDArray[np.intp]) -> csr_array:
    """Weigh, for each new word, the old words that documents have beside it; rows sum to 1."""
    is_new = columns < 0
    seen = csr_array(inputs[:, is_new])
    seen.data = np.ones_like(seen.data)
    old = csr_array(inputs * (~is_new).astype(np.float32)[None, :])
    old.eliminate_zeros()
    together = csr_array(seen.T @ old)
    sums = np.asarray(together.sum(axis=1)).ravel()
    scale = np.repeat(1 / np.maximum(sums, _FEW), np.diff(together.indptr))
    together.data = (together.data * scale).astype(np.float32)
    return together
