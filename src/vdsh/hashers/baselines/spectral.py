"""SpH: bits from the analytical eigenfunctions of a uniform distribution in a box.

Y. Weiss, A. Torralba and R. Fergus, "Spectral Hashing", NIPS 2008, section 3: fit a box to the
documents along their principal components, take the eigenfunctions of the Laplacian with the
smallest eigenvalues, and cut them at zero.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress
from vdsh.hashers.baselines.itq import principal_components
from vdsh.model.encoders import Waves

Axes = NDArray[np.int64]


def smallest_modes(sides: NDArray[np.floating[Any]], n_modes: int) -> tuple[Axes, Axes]:
    """Find the eigenfunctions with the smallest eigenvalues in a box: axes, and numbers from 1.

    The eigenvalue of mode k along a side of length b - a is 1 - exp(-(e k pi / (b - a))^2 / 2),
    so whatever e, the order is that of k / (b - a). The constant one, k = 0, tells nothing apart
    and is left out. Equal eigenvalues are taken in the order of the sides.

    Along a side of length 5 two half waves come before the first of a side of length 2:

    >>> axes, numbers = smallest_modes(np.array([5.0, 2.0]), 4)
    >>> axes.tolist(), numbers.tolist()
    ([0, 0, 1, 0], [1, 2, 1, 3])
    """
    frequencies = np.arange(1, n_modes + 1) / sides[:, None]  # (n_components, n_modes)
    order = np.argsort(frequencies, axis=None, kind="stable")[:n_modes]
    axes, numbers = np.unravel_index(order, frequencies.shape)
    return axes, numbers + 1


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralHashing(Hasher):
    """Hash documents by waves along their principal components; needs no labels.

    With more bits than the documents have dimensions, all further bits are shorter waves.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="tfidf"
        What the components are of; "given" takes the values as they are,
        which may be vectors; "tf" scales vectors to unit length.
    threshold : {"median", "sign"}, default="sign"
        Where the waves are cut; "sign" is the paper's, "median" finds more on most corpora of
        text, whose documents lie far from evenly in the box.
    n_components : int or None, default=None
        Sides of the box, at most; None takes n_bits of them, as the authors' code does.
    random_state : int, RandomState or None
        The starting point of the solver; codes hardly depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (n_terms, n_components)
        The principal components.
    corner_ : ndarray of shape (n_components,)
        The box's lower corner `a`, in coordinates that are not centred.
    axes_ : ndarray of shape (n_bits,)
        The component of each bit.
    frequencies_ : ndarray of shape (n_bits,)
        k pi / (b - a) of each bit.
    """

    signed: ClassVar[bool] = True
    encoder = Waves

    threshold: str = "sign"
    n_components: int | None = None

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        self._require("at least 1", lambda n: n >= 1, "n_components")
        n_components = self.n_components or self.n_bits
        rng = check_random_state(self.random_state)
        found = principal_components(train.inputs, n_components, rng)
        self.components_ = found.axes.astype(np.float32)
        coordinates = train.inputs @ self.components_
        self.corner_ = coordinates.min(axis=0)
        sides = coordinates.max(axis=0) - self.corner_
        sides[sides == 0] = 1  # documents that are all the same
        self.axes_, numbers = smallest_modes(sides, self.n_bits)
        self.frequencies_ = (np.pi * numbers / sides[self.axes_]).astype(np.float32)
