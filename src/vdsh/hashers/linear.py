"""Linear hashing: places of documents in a graph, turned for signs, and their regression on words.

Kin to self-taught hashing (D. Zhang et al., SIGIR 2010), with the rotation of iterative
quantisation (Y. Gong and S. Lazebnik, CVPR 2011) and ridge regression in place of classifiers. It
is what `VDSH` starts from with 32 bits or more, and learns without torch. Words are regressed on
soft signs; see `soft_signs`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_ndtr

from vdsh.codes import Scores
from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress
from vdsh.hashers.vdsh.linear_map import MOST_TO_REGRESS, linear_map, soft_signs, turn
from vdsh.hashers.vdsh.neighbours import MOST_LISTED
from vdsh.hashers.vdsh.related import related
from vdsh.jit import one_thread_each
from vdsh.model.encoders import Regression
from vdsh.model.health import sample
from vdsh.text.counts import halves

_MOST_TO_CALIBRATE = 1_000  # documents
_DEVIATIONS = 2 ** np.linspace(-4, 4, 33, dtype=np.float32)  # to choose from; scores are about 1


@dataclass(eq=False, repr=False, kw_only=True)
class LinearHashing(Hasher):
    """Hash documents by a linear map from words to their place among others; needs no labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "damped-tfidf", "tf", "binary", "given"}
        What the map sees; "given" takes the values as they are. By default "damped-tfidf".
    threshold : {"median", "sign", "best"}, default="sign"
        Where scores are cut; see `VDSH`.
    random_state : int, RandomState or None
        Draws the rotation that turning begins with. The same number gives the same codes on the
        same machine, on any number of threads.

    Attributes
    ----------
    W_, b_ : ndarray of shape (n_terms, n_bits) and (n_bits,)
        The regression: scores have the mean 0 and the mean size 1 in training.
    sigma_ : ndarray of shape (n_bits,)
        How far a score is to be trusted: the standard deviation with which one half of a held-out
        document (without any: of a training document) best foretells the bits of the other half.
    """

    taught: ClassVar[bool] = True
    encoder = Regression

    weighting: str = "damped-tfidf"
    threshold: str = "sign"

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with one_thread_each():  # sums of more threads would be others
            joined = sample(train.counts.shape[0], MOST_LISTED)
            vectors = None if train.vectors is None else train.vectors[joined]
            others = related(train.counts[joined], 0, vectors, progress=progress)
            rows = others.rows[sample(len(others.rows), MOST_TO_REGRESS)]
            aims = soft_signs(turn(others.places[rows], self.n_bits, seed))
            found = linear_map(train.inputs[joined[rows]], aims)
        self.W_, self.b_ = found.W, found.b
        self.sigma_ = np.ones(self.n_bits, np.float32)
        self.sigma_ = self._deviations((validation or train).counts)

    def _deviations(self, counts: csr_array) -> Scores:
        """Choose for each bit what makes the other halves of documents most likely: (n_bits,)."""
        one, two = halves(counts[sample(counts.shape[0], _MOST_TO_CALIBRATE)])
        if not one.shape[0]:
            return self.sigma_
        score, other = (self._scores(self._weigh(half)) for half in (one, two))
        right = np.where(other > 0, score, -score)  # (n_docs, n_bits)
        likely = [log_ndtr(right / sigma).mean(axis=0) for sigma in _DEVIATIONS]
        chosen: Scores = _DEVIATIONS[np.argmax(likely, axis=0)]
        return chosen
