"""Latent semantic analysis (LSA) and word vectors of the training documents.

Both spaces are learned from the documents themselves. In the space of LSA a document is the sum of
its words as the whole of the corpus has them. In the second it is the sum of word vectors, which
are learned from the words that each word occurs with. Documents of ten words share few words even
where they are about one topic, and say too little for LSA.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from vdsh.hashers.vdsh.neighbours import Floats, parts
from vdsh.jit import available_threads, in_threads
from vdsh.model.health import sample

_TOPICS, _WORD_VECTORS, _GIVEN = 56, 32, 64  # dimensions at most; the last of vectors
_MOST_TO_LEARN = 50_000  # documents
_TERMS, _MOST_TERMS = 5_000, 10_000  # that have vectors, and that may have one
_DEPENDABLE = 20  # documents that a term beyond the first 5,000 needs for a vector
# Different words a document, in the mean, below which texts are short. Their word vectors are
# nearly all that tells topics (LSA counts little), and are cheap: all terms have one, from more
# steps. Validation, 32 bits: 0.445 to 0.463 on paper titles (8 words), 0.858 to 0.859 on web
# snippets (11 words); with 12 steps snippets lose.
_SHORT = 15
_STEPS, _STEPS_OF_SHORT = 5, 9  # of the iteration that finds word vectors
_MORE = 10  # axes that are looked for, so that those taken are exact
_PASSES = 4  # over the documents, to find the axes of LSA
_BLOCK, _ROWS = 500, 512  # terms, and rows of a matrix, that are a task


def document_vectors(words: csr_array) -> Floats:
    """Place documents by LSA and by the vectors of their words.

    The inner product of two documents is the sum of two cosines. That of LSA counts fully from 40
    different words a document on, in the mean, and not at all up to 10. Rows of `words` have unit
    length; from them come 88 dimensions at most.
    """
    weight = np.sqrt(lsa_weight(words))
    return np.hstack([weight * _lsa(words), unit(words @ _word_vectors(words))])


def lsa_weight(words: csr_array) -> np.float32:
    """Say how much LSA counts for documents as long as these: 0 to 1."""
    length = words.nnz / max(words.shape[0], 1)
    return np.float32(min(max((length - 10) / 30, 0), 1))


def are_short(counts: csr_array) -> bool:
    """Tell whether the documents that have words have few different ones, in the mean."""
    n_filled = np.count_nonzero(np.diff(counts.indptr))
    return bool(counts.nnz < _SHORT * n_filled)


def reduce(vectors: Floats) -> Floats:
    """Bring vectors to 64 dimensions at most and unit length; their cosines hardly change."""
    if vectors.shape[1] <= _GIVEN:
        return unit(vectors)
    vectors = unit(vectors)
    some = vectors[sample(len(vectors), _MOST_TO_LEARN)]
    return unit(vectors @ _axes(some, min(_GIVEN, len(some))))


def unit(rows: NDArray[np.floating]) -> Floats:
    """Scale rows to unit length, but those that are zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _lsa(words: csr_array) -> Floats:
    """Place documents in latent semantic space (S. Deerwester et al., JASIS 1990)."""
    some = words[sample(words.shape[0], _MOST_TO_LEARN)]
    return unit(words @ _axes(some, _dimensions(some, _TOPICS)))


def _word_vectors(words: csr_array) -> Floats:
    """Learn a vector for each term from the terms in the same documents: (n_terms, d).

    The axes are those of the positive pointwise mutual information of terms (O. Levy and
    Y. Goldberg, "Neural word embedding as implicit matrix factorization", NIPS 2014), of the
    5,000 most frequent, and up to 10,000 that 20 documents have; a rarer term has the vector 0. In
    short texts every term has one.
    """
    some = words[sample(words.shape[0], _MOST_TO_LEARN)]
    frequency = np.bincount(some.indices, minlength=words.shape[1])
    short = are_short(words)
    n = min(max(_TERMS, np.count_nonzero(frequency >= _DEPENDABLE)), _MOST_TERMS)
    if short:
        n = max(n, np.count_nonzero(frequency))
    steps = _STEPS_OF_SHORT if short else _STEPS
    terms = np.sort(np.argsort(-frequency, kind="stable")[:n])
    together = _information(csr_array(some[:, terms]))
    vectors = np.zeros((words.shape[1], _dimensions(some, _WORD_VECTORS)), np.float32)
    values, axes = top_eigenvectors(together, vectors.shape[1] + _MORE, steps=steps, every=1)
    vectors[terms] = axes[:, np.argsort(-np.abs(values))[: vectors.shape[1]]]
    return vectors


def _information(words: csr_array) -> csr_array:
    """Compute how much more often two terms share a document than by chance, as a logarithm.

    Each document gives each of its terms the same weight, however long it is.
    """
    others = np.maximum(np.diff(words.indptr) - 1, 1)
    share = np.repeat(1 / np.sqrt(others), np.diff(words.indptr)).astype(np.float32)
    shares = csr_array((share, words.indices, words.indptr), shape=words.shape)
    per_term = csr_array(shares.T)
    totals = per_term @ (shares.sum(axis=1)) - per_term.multiply(per_term).sum(axis=1)
    inverse = np.where(totals > 1e-6, 1 / np.maximum(totals, 1e-6), 0).astype(np.float32)
    total = np.float32(totals.sum())

    def block(first: int) -> csr_array:
        found = csr_array(per_term[first : first + _BLOCK] @ shares)
        rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)) + first
        ratio = found.data * inverse[rows] * inverse[found.indices] * total
        found.data = np.log(np.maximum(ratio, 1)) * (rows != found.indices)
        found.eliminate_zeros()
        return found

    blocks = in_threads(block, range(0, words.shape[1], _BLOCK), available_threads())
    return csr_array(vstack(blocks, format="csr"))


def _axes(rows: csr_array | Floats, n: int) -> Floats:
    """Find about the n directions that rows vary most in, from the origin: (n_columns, n)."""
    times, across = multiplier(rows), multiplier(rows.T)
    V = np.random.RandomState(0).normal(size=(rows.shape[1], n + _MORE)).astype(np.float32)
    for _ in range(_PASSES):
        V, _ = np.linalg.qr(across(times(V)))
    values, turn = np.linalg.eigh(V.T @ across(times(V)))
    return np.ascontiguousarray((V @ turn)[:, ::-1][:, :n])


def _dimensions(some: csr_array, most: int) -> int:
    """Choose how many: few documents, few dimensions."""
    return min(most, int(some.shape[0] ** 0.5), some.shape[1])


def top_eigenvectors(matrix: csr_array, n: int, *, steps: int, every: int) -> tuple[Floats, Floats]:
    """Find about the n eigenvalues of a symmetric matrix that are largest, of either sign.

    A few random vectors are multiplied many times (subspace iteration), which equal eigenvalues
    and a matrix in pieces do not hurt: `steps` in all, made orthogonal after `every` so many. The
    smallest of the values, (n,), and vectors, (n_rows, n), is the first; some are rough, so ask
    for more than you take.
    """
    n_rows, multiply = matrix.shape[0], multiplier(matrix)
    V = np.random.RandomState(0).normal(size=(n_rows, min(n, n_rows))).astype(np.float32)
    for number in range(1, steps + 1):
        V = multiply(V)
        if number % every == 0:
            V, _ = np.linalg.qr(V)
    values, turn = np.linalg.eigh(V.T @ multiply(V))
    return values, V @ turn


def multiplier(matrix: Any) -> Callable[[Floats], Floats]:
    """Give the function that multiplies a matrix with a dense one, on all cores.

    Blocks are always the same, so the result does not depend on the number of threads.
    """
    from vdsh.hashers.vdsh.related_kernels import add_products

    if isinstance(matrix, np.ndarray):
        return lambda dense: matrix @ dense
    sparse, n_rows = csr_array(matrix).astype(np.float32), matrix.shape[0]

    def multiply(dense: Floats) -> Floats:
        dense = np.ascontiguousarray(dense, np.float32)
        out = np.zeros((n_rows, dense.shape[1]), np.float32)

        def block(first: int) -> None:
            rows = out[first : first + _ROWS]
            add_products(parts(sparse), dense, first, rows)

        in_threads(block, range(0, n_rows, _ROWS), available_threads())
        return out

    return multiply
