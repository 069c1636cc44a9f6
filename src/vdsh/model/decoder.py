"""The trained decoders in numpy: latent vectors to words and labels, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.model.network import Floats

_LEAST_KL = 0.01


@dataclass(frozen=True)
class Decoder:
    """Words and, for supervised models, labels from latent vectors.

    Attributes
    ----------
    G, b_words : ndarray of shape (n_bits or D, n_terms) and (n_terms,)
    hidden_layer : pair of ndarray of shape (n_bits, D) and (D,), or None
        Over tanh(s), where there is one.
    label_layer : pair of ndarray of shape (n_bits, n_labels) and (n_labels,), or None
    labels : list of str
    label_power : float
        How much more than the divergence the labels weighed in training.
    """

    G: Floats
    b_words: Floats
    hidden_layer: tuple[Floats, Floats] | None
    label_layer: tuple[Floats, Floats] | None
    labels: list[str]
    label_power: float

    @classmethod
    def of(cls, learned: Mapping[str, Any], settings: Mapping[str, Any]) -> "Decoder | None":
        """Take a decoder from what a hasher learned; None where it learned none."""
        if "G_" not in learned:
            return None
        return cls(
            learned["G_"],
            learned["b_words_"],
            (learned["D_"], learned["b_decoder_"]) if settings["decoder_size"] else None,
            (learned["U_"], learned["b_labels_"]) if "U_" in learned else None,
            list(learned.get("classes_", ())),
            settings.get("label_weight", 0.0) / max(learned["kl_weight_"], _LEAST_KL),
        )

    def hidden(self, s: NDArray[Any]) -> NDArray[Any]:
        """Compute what the last layer of the word decoder sees, of shape (n, n_bits or D)."""
        if self.hidden_layer is None:
            return s
        W, b = self.hidden_layer
        layer: NDArray[Any] = np.maximum(np.tanh(s) @ W + b, 0)
        return layer

    def word_log_probabilities(self, s: Scores) -> Scores:
        """Decode latent vectors of shape (n, n_bits) to log P(w | s) of shape (n, n_terms).

        For VDSH-SP give s + v.
        """
        from scipy.special import log_softmax

        log_p: Scores = log_softmax(self.hidden(s) @ self.G + self.b_words, axis=1)
        return log_p

    def label_logits(self, s: NDArray[Any]) -> NDArray[Any]:
        """Decode latent vectors to the log-odds of each label, of shape (n, n_labels)."""
        assert self.label_layer is not None, "the model has learned no labels"
        W, b = self.label_layer
        logits: NDArray[Any] = (s if self.hidden_layer is None else np.tanh(s)) @ W + b
        return logits
