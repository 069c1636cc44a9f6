"""The trained encoder and decoder in numpy and numba, without torch.

A document's result does not depend on the documents around it, to the last bit, so that a text
gets the same code alone and in a batch. BLAS adds up in other orders for other shapes, on other
processors, and even for other rows of one product. So each row is multiplied by itself: its terms
that are not zero in order, four at a time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.jit import available_threads, compiled, in_threads
from vdsh.text.counts import Counts, Sparse

Floats = NDArray[np.float32]
Places = NDArray[np.integer[Any]]  # of entries in sparse rows

_BLOCK = 512  # documents that a thread takes at a time: their hidden layers stay in the cache
_PLAIN = 1.5e-9  # seconds a product in numpy


def layer(a: Floats, W: Floats, b: Floats, least: float = -math.inf) -> Floats:
    """Compute `max(least, a @ W + b)`."""
    out = np.tile(b, (len(a), 1))
    if compiled(_PLAIN * a.size * len(b)):
        from vdsh.model.network_kernels import add_dense

        add_dense(a, W, out, least)
        return out
    rows, terms = np.nonzero(a)
    pointers = np.searchsorted(rows, np.arange(len(a) + 1))
    return _plain_add(a[rows, terms], terms, pointers, W, out, least)


def sparse_layer(inputs: Sparse, W: Floats, b: Floats, least: float = -math.inf) -> Floats:
    """Compute `max(least, inputs @ W + b)`, without the time to load scipy.

    The pointers may be those of some rows among others.
    """
    parts = inputs.data, inputs.indices, inputs.indptr, W
    out = np.tile(b, (len(inputs.indptr) - 1, 1))
    if compiled(_PLAIN * (int(inputs.indptr[-1]) - int(inputs.indptr[0])) * len(b)):
        from vdsh.model.network_kernels import add_sparse

        add_sparse(*parts, out, least)
        return out
    return _plain_add(*parts, out, least)


def _plain_add(
    data: Floats, indices: Places, indptr: Places, W: Floats, out: Floats, least: float
) -> Floats:
    """Do what the kernels do: the same sums in the same order, so the same bits."""
    for i, (begin, end) in enumerate(pairwise(indptr.tolist())):
        row = out[i]
        whole = end - (end - begin) % 4
        for j in range(begin, whole, 4):
            a = data[j : j + 4, None] * W[indices[j : j + 4]]
            row += (a[0] + a[1]) + (a[2] + a[3])
        for j in range(whole, end):
            row += data[j] * W[indices[j]]
    return np.maximum(out, np.float32(least), out=out)


def encode(
    inputs: Sparse, W1: Floats, b1: Floats, W2: Floats, b2: Floats, *heads: tuple[Floats, Floats]
) -> list[Floats]:
    """Run documents through two ReLU layers of H nodes and some linear heads.

    A head is W of shape (H, n_out) and b of shape (n_out,); each gives an array (n_docs, n_out).
    """
    n_docs = inputs.shape[0]
    outputs = [np.empty((n_docs, len(b)), np.float32) for _, b in heads]

    def work(first: int) -> None:
        pointers = inputs.indptr[first : first + _BLOCK + 1]
        some = Counts(inputs.data, inputs.indices, pointers, (len(pointers) - 1, len(W1)))
        t1 = sparse_layer(some, W1, b1, 0.0)  # (B, H)
        t2 = layer(t1, W2, b2, 0.0)
        for output, (W, b) in zip(outputs, heads, strict=True):
            output[first : first + _BLOCK] = layer(t2, W, b)

    if n_docs <= _BLOCK:
        work(0)
        return outputs
    in_threads(work, range(0, n_docs, _BLOCK), available_threads())
    return outputs


@dataclass(frozen=True)
class Learned:
    """Arrays that a hasher learned, and settings; the type of an array also names its shape.

    Sizes have names: "bits", "terms". A number type may follow; otherwise it is float32.
    """

    @classmethod
    def of(cls, learned: Mapping[str, Any], settings: Mapping[str, Any]) -> Self:
        """Take the fields from what a hasher learned (`W_` is the field `W`) and its settings."""
        known = {**settings, **{name.removesuffix("_"): learned[name] for name in learned}}
        return cls(
            **{field.name: known[field.name] for field in fields(cls) if field.name in known}
        )

    @classmethod
    def shapes(cls) -> dict[str, str]:
        """Give the shape of each array by the name under which a hasher has it."""
        marks = {f"{each.name}_": getattr(each.type, "__metadata__", ()) for each in fields(cls)}
        return {name: mark[0] for name, mark in marks.items() if mark}


@dataclass(frozen=True)
class Decoder(Learned):
    """Words from latent vectors; of supervised models the weights for labels too."""

    G: Annotated[Floats, "decoder terms"]
    b_words: Annotated[Floats, "terms"]
    D: Annotated[Any, "bits decoder"] = None  # a layer over tanh(s), where there is one
    b_decoder: Annotated[Any, "decoder"] = None
    U: Annotated[Any, "bits labels"] = None
    b_labels: Annotated[Any, "labels"] = None

    def hidden(self, s: NDArray[Any]) -> NDArray[Any]:
        """Compute what the last layer of the word decoder sees, of shape (n, n_bits or D)."""
        if self.D is None:
            return s
        layer: NDArray[Any] = np.maximum(np.tanh(s) @ self.D + self.b_decoder, 0)
        return layer

    def word_log_probabilities(self, s: Scores) -> Scores:
        """Decode latent vectors of shape (n, n_bits) to log P(w | s) of shape (n, n_terms).

        For VDSH-SP give s + v.
        """
        from scipy.special import log_softmax

        log_p: Scores = log_softmax(self.hidden(s) @ self.G + self.b_words, axis=1)
        return log_p
