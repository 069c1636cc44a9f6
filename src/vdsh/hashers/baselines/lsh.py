"""LSH: random hyperplanes, the method that learns nothing.

M. S. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002, section 3:
two documents at the angle t fall on the same side of a random hyperplane with probability
1 - t / pi. The family for p-stable distributions, which the VDSH paper cites, draws the same
Gaussian projections: M. Datar, N. Immorlica, P. Indyk and V. S. Mirrokni, "Locality-Sensitive
Hashing Scheme Based on p-Stable Distributions", SoCG 2004.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress
from vdsh.model.encoders import Hyperplanes


@dataclass(eq=False, repr=False, kw_only=True)
class LSH(Hasher):
    """Hash a document by the side of random hyperplanes that it falls on; needs no labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
        What is projected; "given" takes the values as they are,
        which may be vectors; "tf" scales vectors to unit length.
    threshold : {"median", "sign"}, default="median"
        "sign" puts the hyperplanes through the origin, as the papers do. No count is negative, so
        that leaves many bits nearly always 0 or 1; "median" shifts each hyperplane to halve the
        training documents.
    random_state : int, RandomState or None
        The same number gives the same codes.

    Attributes
    ----------
    hyperplanes_ : ndarray of shape (n_terms, n_bits)
        Their normal vectors.
    """

    signed: ClassVar[bool] = True
    encoder = Hyperplanes

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        rng = check_random_state(self.random_state)
        shape = train.inputs.shape[1], self.n_bits
        self.hyperplanes_ = rng.normal(size=shape).astype(np.float32)
