"""The trained decoders in numpy: latent vectors to words and labels, without torch."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from vdsh.codes import Scores
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.hashers import Hasher
    from vdsh.pipeline import TextHasher


def has_decoder(hasher: "Hasher") -> bool:
    """Tell whether a model can produce words."""
    return hasattr(hasher, "G_") and hasattr(hasher, "b_words_")


def check_decoder(hasher: "TextHasher") -> Any:
    """Return the inner hasher, or raise where it cannot produce words."""
    if not has_decoder(hasher.hasher_):
        raise InputError(
            f"The model '{hasher.model}' only encodes: it has no decoder to draw words from. "
            "Use vdsh, vdsh-s or vdsh-sp."
        )
    return hasher.hasher_


def hidden(hasher: Any, s: Scores) -> Scores:
    """Compute what the last layer of the word decoder sees, of shape (n, n_bits or D)."""
    if not hasher.decoder_size:
        return s
    layer: Scores = np.maximum(np.tanh(s) @ hasher.D_ + hasher.b_decoder_, 0)
    return layer


def word_log_probabilities(hasher: Any, s: Scores) -> Scores:
    """Decode latent vectors of shape (n, n_bits) to log P(w | s) of shape (n, n_terms).

    For VDSH-SP give s + v.
    """
    logits = hidden(hasher, s) @ hasher.G_ + hasher.b_words_
    log_p: Scores = log_softmax(logits, axis=1)
    return log_p


def label_logits(hasher: Any, s: NDArray[Any]) -> NDArray[Any]:
    """Decode latent vectors to the log-odds of each label, of shape (n, n_labels)."""
    seen = np.tanh(s) if hasher.decoder_size else s
    logits: NDArray[Any] = seen @ hasher.U_ + hasher.b_labels_
    return logits
