"""SHTTM: latent vectors that explain tags and keep to the topics of the documents.

Q. Wang, D. Zhang and L. Si, "Semantic Hashing Using Tags and Topic Modeling", SIGIR 2013.
With tags T, documents' vectors y_i, tags' vectors u_j and topics theta_i the objective is

    sum_ij C_ij (T_ij - u_j' y_i)^2 + gamma sum_i |y_i - theta_i|^2 + alpha sum_j |u_j|^2

where C_ij says how far to trust a tag's presence or absence. Both updates are closed-form; a
linear map from terms to y hashes documents that have no tags.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.errors import needing
from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, Report
from vdsh.labels import Labels
from vdsh.model.encoders import Linear

Vectors = NDArray[np.float64]

_BATCH = 1024  # documents between two updates of the topics
_INNER = 20  # updates of one document's topics, at most


@dataclass(eq=False, repr=False, kw_only=True)
class SHTTM(Hasher):
    """Hash documents by vectors that predict their labels and stay near their topics.

    Documents whose labels are None count with their topics alone.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8; also the number of topics.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
        What the hash function sees; topics are learned from the counts.
    threshold : {"median", "sign"}, default="median"
        What turns a score into a bit; "median" is the paper's.
    topic_weight : float, default=0.001
        gamma, the pull of the topics.
    absent_weight : float, default=0.001
        C_ij for a label that a document does not have; it is 1 for one that it has.
    label_ridge : float, default=1.0
        alpha, which keeps the labels' vectors short.
    ridge : float, default=1.0
        The same for the hash function.
    steps : int, default=10
        Rounds of the two updates.
    passes : int, default=5
        Passes of the topic model over the training documents.
    random_state : int, RandomState or None
        Starts the topic model.

    Attributes
    ----------
    classes_ : list of str
        The labels.
    label_vectors_ : ndarray of shape (n_labels, n_bits)
        U, of which labels are predicted.
    W_, b_ : ndarray of shape (n_terms, n_bits) and (n_bits,)
        The hash function.
    history_ : list of dict
        The objective after each round.
    """

    supervised: ClassVar[bool] = True
    encoder = Linear

    topic_weight: float = 0.001
    absent_weight: float = 0.001
    label_ridge: float = 1.0
    ridge: float = 1.0
    steps: int = 10
    passes: int = 5

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        self._require("at least 1", lambda n: n >= 1, "steps", "passes")
        self._require("above 0", lambda x: x > 0, "topic_weight", "label_ridge", "ridge")
        self._require("from 0 to 1", lambda x: 0 <= x <= 1, "absent_weight")
        assert train.labels is not None
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        theta = topics(train.counts, self.n_bits, self.passes, seed)
        tags = Tags.of(train.labels, self.absent_weight)
        Y, self.history_ = theta, []
        for step in range(1, self.steps + 1):
            U = update_labels(tags, Y, self.label_ridge)
            Y = update_documents(tags, U, theta, self.topic_weight)
            cost = objective(tags, U, Y, theta, self.topic_weight, self.label_ridge)
            self.history_.append({"loss": cost})
            if progress:
                progress(Report(step, self.steps, 1.0, cost / len(Y), unit="step"))
        self.label_vectors_ = U.astype(np.float32)
        self._learn_function(train.inputs, Y)

    def _learn_function(self, inputs: csr_array, Y: Vectors) -> None:
        """Fit Y by ridge regression on the terms; conjugate gradients leave the terms sparse."""
        from sklearn.linear_model import Ridge  # here, since encoding does without

        model = Ridge(alpha=self.ridge, solver="sparse_cg", tol=1e-4, max_iter=200)
        model.fit(inputs.astype(np.float64), Y)
        self.W_ = np.ascontiguousarray(model.coef_.T, np.float32)
        self.b_ = np.asarray(model.intercept_, np.float32)


def topics(counts: csr_array, n_topics: int, passes: int, seed: int) -> Vectors:
    """Return each document's share of topics, by latent Dirichlet allocation."""
    with needing("SHTTM", "scikit-learn", "train"):
        from sklearn.decomposition import LatentDirichletAllocation  # it loads slowly
    model = LatentDirichletAllocation(
        n_topics,
        batch_size=_BATCH,
        total_samples=counts.shape[0],
        max_doc_update_iter=_INNER,
        random_state=seed,
    )
    for _ in range(passes):
        model.partial_fit(counts)  # not `fit`, which computes a perplexity that may overflow
    return np.asarray(model.transform(counts), np.float64)


class Tags(NamedTuple):
    """Labels by sets: documents with the same set of labels have the same row of C and of T."""

    matrix: NDArray[np.float64]  # T of known documents, (n_known, n_labels)
    known: NDArray[np.intp]  # their rows
    sets: NDArray[np.float64]  # (n_sets, n_labels)
    which: NDArray[np.intp]  # each known document's set, (n_known,)
    absent: float

    @classmethod
    def of(cls, labels: Labels, absent: float) -> "Tags":
        """Group the documents whose labels are known."""
        known = np.flatnonzero(labels.known)
        matrix = labels.take(known).matrix.astype(np.float64)
        sets, which = np.unique(matrix, axis=0, return_inverse=True)
        return cls(matrix, known, sets, which.reshape(-1), absent)


def update_labels(tags: Tags, Y: Vectors, alpha: float) -> Vectors:
    """Solve for U, of shape (n_labels, n_bits), with Y fixed."""
    Y = Y[tags.known]
    everyone = tags.absent * (Y.T @ Y) + alpha * np.eye(Y.shape[1])
    U = np.empty((tags.matrix.shape[1], Y.shape[1]))
    for j, column in enumerate(tags.matrix.T):
        having = Y[column > 0]
        moments = everyone + (1 - tags.absent) * (having.T @ having)
        U[j] = np.linalg.solve(moments, having.sum(axis=0))
    return U


def update_documents(tags: Tags, U: Vectors, theta: Vectors, gamma: float) -> Vectors:
    """Solve for Y, of shape (n_docs, n_bits), with U fixed; unlabelled documents keep theta."""
    Y = theta.copy()
    everyone = tags.absent * (U.T @ U) + gamma * np.eye(U.shape[1])
    for s, row in enumerate(tags.sets):
        members = tags.known[tags.which == s]
        having = U[row > 0]
        moments = everyone + (1 - tags.absent) * (having.T @ having)
        wanted = having.sum(axis=0) + gamma * theta[members]  # (n_members, n_bits)
        Y[members] = np.linalg.solve(moments, wanted.T).T
    return Y


def objective(
    tags: Tags, U: Vectors, Y: Vectors, theta: Vectors, gamma: float, alpha: float
) -> float:
    """Compute what the updates make smaller."""
    trust = np.where(tags.matrix > 0, 1.0, tags.absent)
    misfit = (trust * np.square(tags.matrix - Y[tags.known] @ U.T)).sum()
    return float(misfit + gamma * np.square(Y - theta).sum() + alpha * np.square(U).sum())
