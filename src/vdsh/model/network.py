"""The trained encoder and decoder in numpy and numba, without torch.

A document's result does not depend on the documents around it, to the last bit, so that a text
gets the same code alone and in a batch. The sparse layer goes row by row. In dense layers BLAS
takes other paths for other shapes, so it always gets tiles of `TILE` rows: every product has one
shape. For a few documents that is many rows too many. OpenBLAS adds up the products of a row in
order, each in one rounding, in one or two runs; a kernel that does the same, and passes over zeros,
takes a tenth of the time. It is used where it was seen to give the very bits of BLAS here, for a
layer of that shape.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Scores
from vdsh.jit import available_threads, compiled, in_threads, one_thread_each
from vdsh.text.counts import Sparse, to_csr

Floats = NDArray[np.float32]
Places = NDArray[np.int32]  # of entries in sparse rows

TILE = 256  # rows that BLAS multiplies at a time
FEW = 16  # documents that the kernel multiplies
_UNROLL = 16  # terms that OpenBLAS takes at a time
_BLOCK = 512  # documents that a thread takes at a time: their hidden layers stay in the cache
_PLAIN, _SPARSE = 1e-10, 1.5e-9  # seconds a product in numpy, of dense and of sparse rows
_NOTHING = np.zeros(0, np.float32)
_runs: dict[tuple[int, int], int] = {}  # how long a run is, by the shape of a layer; 0 is unknown


def tiled_product(a: Floats, W: Floats) -> Floats:
    """Compute `a @ W`, tile by tile."""
    short = -len(a) % TILE
    padded = np.pad(a, ((0, short), (0, 0))) if short else a
    tiles = padded.reshape(-1, TILE, a.shape[1])
    return (tiles @ W).reshape(-1, W.shape[1])[: len(a)]


def layer(a: Floats, W: Floats, b: Floats, least: float = -math.inf) -> Floats:
    """Compute `max(least, a @ W + b)`."""
    if _are_few(a, W):
        return _multiply(a, W, _runs[W.shape], b, least)
    out = tiled_product(a, W)
    out += b
    return np.maximum(out, least, out=out)


def _are_few(a: Floats, W: Floats) -> bool:
    if not 0 < len(a) <= FEW or not compiled(_PLAIN * TILE * W.size):
        return False
    if not (a.dtype == W.dtype == np.float32 and W.flags.c_contiguous):
        return False
    if W.shape not in _runs:
        _runs[W.shape] = _run_length(W)
    return _runs[W.shape] > 0


def _run_length(W: Floats) -> int:
    """Try how BLAS adds up the products of a row; 0 where it is none of the ways known here."""
    n_in = int(W.shape[0])
    a = np.random.default_rng(0).normal(size=(TILE, n_in)).astype(np.float32)
    a[:, ::3] = 0
    wanted = (a @ W).tobytes()
    for length in (n_in, -(-n_in // 2 // _UNROLL) * _UNROLL, -(-n_in // 2)):
        if length and _multiply(a, W, length).tobytes() == wanted:
            return length
    return 0


def _multiply(
    a: Floats, W: Floats, length: int, b: Floats = _NOTHING, least: float = -math.inf
) -> Floats:
    from vdsh.model.network_kernels import multiply_rows

    out = np.empty((len(a), W.shape[1]), np.float32)
    multiply_rows(a, W, length, out, np.empty(W.shape[1], np.float32), b, least)
    return out


def sparse_product(inputs: Sparse, W: Floats) -> Floats:
    """Compute `inputs @ W`, adding up in the order of terms, without the time to load scipy."""
    if not inputs.data.dtype == W.dtype == np.float32:
        return to_csr(inputs) @ W
    out = np.zeros((inputs.shape[0], W.shape[1]), np.float32)
    if compiled(_SPARSE * inputs.data.size * W.shape[1]):
        from vdsh.model.network_kernels import add_rows

        add_rows(inputs.data, inputs.indices, inputs.indptr, W, out)
        return out
    for row, (begin, end) in zip(out, pairwise(inputs.indptr.tolist()), strict=True):
        for j in range(begin, end):
            row += inputs.data[j] * W[inputs.indices[j]]
    return out


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
        t1 = np.tile(b1, (len(pointers) - 1, 1))  # (B, H)
        relu = _plain_relu
        if compiled(_SPARSE * (int(pointers[-1]) - int(pointers[0])) * len(b1)):
            from vdsh.model.network_kernels import sparse_relu as relu
        relu(inputs.data, inputs.indices, pointers, W1, t1)
        t2 = layer(t1, W2, b2, 0.0)
        for output, (W, b) in zip(outputs, heads, strict=True):
            output[first : first + _BLOCK] = layer(t2, W, b)

    if n_docs <= _BLOCK:
        work(0)
        return outputs
    with one_thread_each():
        in_threads(work, range(0, n_docs, _BLOCK), available_threads())
    return outputs


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
