"""The trained encoder and decoder in numpy and numba, without torch.

A document's result does not depend on the documents around it, to the last bit, so that a text
gets the same code alone and in a batch. The sparse layer goes row by row, the dense ones by
`products`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.jit import available_threads, compiled, in_threads, one_thread_each
from vdsh.model.products import Floats, linear_layer, relu_layer
from vdsh.text.counts import Sparse

Places = NDArray[np.int32]  # of entries in sparse rows

_BLOCK = 512  # documents that a thread takes at a time: their hidden layers stay in the cache
_PLAIN = 1.5e-9  # seconds a product in numpy


def encode(
    inputs: Sparse,
    W1: Floats,
    b1: Floats,
    W2: Floats,
    b2: Floats,
    *heads: tuple[Floats, Floats],
) -> list[Floats]:
    """Run documents through two ReLU layers and some linear heads.

    Parameters
    ----------
    inputs : Counts or csr_array of shape (n_docs, n_terms)
    W1, b1, W2, b2 : ndarray
        The hidden layers, of shapes (n_terms, H), (H,), (H, H), (H,).
    heads : pairs of ndarray
        W of shape (H, n_out) and b of shape (n_out,).

    Returns
    -------
    list of ndarray of shape (n_docs, n_out), one per head
    """
    n_docs = inputs.shape[0]
    outputs = [np.empty((n_docs, len(b)), np.float32) for _, b in heads]

    def work(first: int) -> None:
        last = min(first + _BLOCK, n_docs)
        t2 = _hidden(inputs, first, last, W1, b1, W2, b2)
        for output, (W, b) in zip(outputs, heads, strict=True):
            output[first:last] = linear_layer(t2, W, b)

    if n_docs <= _BLOCK:
        work(0)
        return outputs
    with one_thread_each():
        in_threads(work, range(0, n_docs, _BLOCK), available_threads())
    return outputs


def _hidden(
    inputs: Sparse,
    first: int,
    last: int,
    W1: Floats,
    b1: Floats,
    W2: Floats,
    b2: Floats,
) -> Floats:
    t1 = np.tile(b1, (last - first, 1))  # (B, H)
    pointers = inputs.indptr[first : last + 1]
    if compiled(_PLAIN * (int(pointers[-1]) - int(pointers[0])) * len(b1)):
        from vdsh.model.network_kernels import sparse_relu

        sparse_relu(inputs.data, inputs.indices, pointers, W1, t1)
    else:
        _plain_relu(inputs.data, inputs.indices, pointers, W1, t1)
    return relu_layer(t1, W2, b2)


def _plain_relu(data: Floats, indices: Places, indptr: Places, W: Floats, out: Floats) -> None:
    """Do what `sparse_relu` does: the same sums in the same order, so the same bits."""
    for i, (begin, end) in enumerate(pairwise(indptr.tolist())):
        row = out[i]
        whole = end - (end - begin) % 4
        for j in range(begin, whole, 4):
            a = data[j : j + 4, None] * W[indices[j : j + 4]]
            row += (a[0] + a[1]) + (a[2] + a[3])
        for j in range(whole, end):
            row += data[j] * W[indices[j]]
        np.maximum(row, np.float32(0), out=row)


@dataclass(frozen=True)
class Decoder:
    """Words and, for supervised models, labels from latent vectors."""

    G: Floats  # (n_bits or D, n_terms)
    b_words: Floats  # (n_terms,)
    # (n_bits, D) and (D,): over tanh(s), where there is one.
    hidden_layer: tuple[Floats, Floats] | None
    label_layer: tuple[Floats, Floats] | None  # (n_bits, n_labels) and (n_labels,)
    labels: list[str]

    @classmethod
    def of(cls, learned: Mapping[str, Any]) -> "Decoder | None":
        """Take a decoder from what a hasher learned; None where it learned none."""
        if "G_" not in learned:
            return None
        return cls(
            learned["G_"],
            learned["b_words_"],
            (learned["D_"], learned["b_decoder_"]) if "D_" in learned else None,
            (learned["U_"], learned["b_labels_"]) if "U_" in learned else None,
            list(learned.get("classes_", ())),
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
