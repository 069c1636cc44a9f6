"""STH: codes for the training documents from a graph of neighbours, then classifiers for the rest.

D. Zhang, J. Wang, D. Cai and J. Lu, "Self-Taught Hashing for Fast Similarity Search", SIGIR 2010.
Stage 1 (section 3.2) is a Laplacian Eigenmap cut at its medians, stage 2 (section 3.3) one linear
support vector machine per bit that learns to tell those bits from a document's words.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from vdsh.codes import Bits
from vdsh.errors import needing
from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, Report
from vdsh.hashers.vdsh.neighbours import nearest
from vdsh.jit import one_thread_each
from vdsh.model.encoders import Linear

Doubles = NDArray[np.float64]

_SMALL = 4  # with fewer than so many documents per eigenvector a full solver is the faster one
_ROUNDING = 1e-8  # of a vector's largest entry
_LEAST_SHARE = 0.1  # of the documents, on the smaller side of a cut


@dataclass(eq=False, repr=False, kw_only=True)
class SelfTaughtHashing(Hasher):
    """Hash documents by predicting how a graph of similar documents is cut; needs no labels.

    A document without a word in common with any other takes no part in learning. An eigenvector
    that only sets a small part of the graph off from the rest is passed over; when fewer are left
    than there are bits, they are used again from the first on.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
        What the cosines and the classifiers see; "given" takes the values as they are.
    threshold : {"median", "sign"}, default="sign"
        "sign" takes the classifiers' word, as the paper does; "median" halves the training
        documents at each bit.
    n_neighbors : int, default=25
        k, the most similar documents that each one is joined with.
    C : float, default=1.0
        How much an error costs in the support vector machines; less gives flatter ones.
    random_state : int, RandomState or None
        The starting point of the solver; codes hardly depend on it.

    Attributes
    ----------
    W_, b_ : ndarray of shape (n_terms, n_bits) and (n_bits,)
        The support vector machines.
    agreement_ : ndarray of shape (n_bits,)
        The share of the training documents whose bit from the graph they reproduce.
    """

    encoder = Linear

    threshold: str = "sign"
    n_neighbors: int = 25
    C: float = 1.0

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        with needing("STH", "scikit-learn", "train"):  # said before the work
            import sklearn.svm  # noqa: F401
        self._require("at least 1", lambda n: n >= 1, "n_neighbors")
        self._require("above 0", lambda x: x > 0, "C")
        rng = check_random_state(self.random_state)
        graph = neighbour_graph(train.inputs, self.n_neighbors)
        joined = np.flatnonzero(np.diff(graph.indptr))
        graph = graph[joined][:, joined]
        n_parts, _ = connected_components(graph, directed=False)
        spare = min(n_parts - 1, self.n_bits)  # for vectors that only set a small part off
        bits = median_cuts(eigenmap(graph, self.n_bits + spare, rng))
        self._learn(train.inputs[joined], bits[:, : self.n_bits], progress)

    def _learn(self, inputs: csr_array, bits: Bits, progress: Progress | None) -> None:
        """Train a classifier for each cut of the graph."""
        n_cuts = bits.shape[1]
        self.W_ = np.zeros((inputs.shape[1], self.n_bits), np.float32)
        self.b_ = np.zeros(self.n_bits, np.float32)
        self.agreement_ = np.zeros(self.n_bits, np.float32)
        for i in range(n_cuts):
            svm = support_vectors(inputs, bits[:, i], self.C)
            self.W_[:, i::n_cuts] = svm.coef_.T
            self.b_[i::n_cuts] = svm.intercept_
            self.agreement_[i::n_cuts] = svm.score(inputs, bits[:, i])
            if progress:
                progress(Report(i + 1, n_cuts, 1.0, unit="bit"))


def neighbour_graph(inputs: csr_array, n_neighbors: int) -> csr_array:
    """Join each document with those of the most similar direction; edges weigh the cosine.

    Two are joined when either is among so many nearest of the other (section 3.2), never those at a
    right angle. The graph is symmetric, with nothing on the diagonal.
    """
    n_docs = inputs.shape[0]
    ids, cosines = nearest(inputs, n_neighbors)
    places = np.arange(0, ids.size + 1, ids.shape[1])
    graph = csr_array((cosines.ravel(), ids.ravel(), places), shape=(n_docs, n_docs))
    graph.eliminate_zeros()
    return csr_array(graph.maximum(graph.T))


def eigenmap(graph: csr_array, n_vectors: int, rng: np.random.RandomState) -> Doubles:
    """Solve L v = lambda D v for the smallest eigenvalues but the trivial one.

    With D^(1/2) v = u the equation is N u = (1 - lambda) u for N = D^(-1/2) W D^(-1/2), of which
    the largest eigenvalues are wanted. The constant v is moved to the other end, so of several
    connected components only the vectors that tell them apart are left.

    In W, the graph, each document has an edge. Returned are (n_docs, n_vectors), or one less than
    there are documents, the smallest eigenvalue first.
    """
    W = graph.astype(np.float64)
    degrees = np.asarray(W.sum(axis=0)).ravel()
    n_docs, scale = len(degrees), 1 / np.sqrt(degrees)
    trivial = np.sqrt(degrees / degrees.sum())
    N = csr_array(W * scale[:, None] * scale)
    n_vectors = max(0, min(n_vectors, n_docs - 1))
    deflated = LinearOperator(
        N.shape,
        matvec=lambda u: N @ u.ravel() - 2 * (trivial @ u.ravel()) * trivial,
        dtype=np.float64,
    )
    with one_thread_each():  # more threads are no faster here, on a busy machine far slower
        if _SMALL * n_vectors < n_docs:
            start = rng.uniform(-1, 1, n_docs)
            values, vectors = eigsh(deflated, n_vectors, which="LA", v0=start)
        else:
            values, vectors = eigh(N.toarray() - 2 * np.outer(trivial, trivial))
    order = np.argsort(-values, kind="stable")[:n_vectors]
    return vectors[:, order] * scale[:, None]


def median_cuts(vectors: Doubles) -> Bits:
    """Cut each vector at its median and keep those with enough documents on both sides."""
    if not vectors.size:
        return np.zeros(vectors.shape, np.uint8)
    # a vector is constant on connected components it does not cut, but for rounding
    grid = _ROUNDING * np.abs(vectors).max(axis=0, initial=0)
    vectors = np.round(vectors / np.where(grid > 0, grid, 1))
    medians = np.median(vectors, axis=0)
    above, not_below = vectors > medians, vectors >= medians
    # they differ where many documents share the median: one of them halves better
    bits = np.where(above.mean(axis=0) + not_below.mean(axis=0) >= 1, above, not_below)
    balance = bits.mean(axis=0)
    kept = np.minimum(balance, 1 - balance) >= _LEAST_SHARE
    return bits[:, kept].astype(np.uint8)


def support_vectors(inputs: csr_array, bit: NDArray[np.uint8], C: float) -> Any:
    """Train a linear classifier, with the solver that is fast for so many terms."""
    from sklearn.exceptions import ConvergenceWarning  # a tenth of a second that others spare
    from sklearn.svm import LinearSVC

    n_docs, n_terms = inputs.shape
    svm = LinearSVC(C=C, dual=10 * n_terms > n_docs, random_state=0)
    with warnings.catch_warnings():
        # cuts deep in the spectrum are noise to the words; nearly solved is good enough there
        warnings.simplefilter("ignore", ConvergenceWarning)
        return svm.fit(inputs, bit)
