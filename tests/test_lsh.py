"""Random hyperplanes."""

import numpy as np
import pytest

from vdsh.hashers import LSH


def test_bits_agree_as_often_as_the_angle_says():
    """Charikar's theorem: the probability of a collision is 1 - angle / pi."""
    X = np.random.default_rng(0).gamma(0.5, size=(30, 12)).astype(np.float32)
    bits = np.hstack(
        [
            LSH(1024, weighting="given", threshold="sign", random_state=seed)
            .fit(np.tile(X, (35, 1)))
            .transform(X)
            for seed in range(10)
        ]
    )
    agreement = (bits[:, None] == bits[None]).mean(axis=2)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    angles = np.arccos(np.clip(unit @ unit.T, -1, 1))
    np.testing.assert_allclose(agreement, 1 - angles / np.pi, atol=0.025)  # five sigmas


def test_a_longer_document_of_the_same_words_gets_the_same_code():
    X = np.random.default_rng(0).poisson(1.0, (40, 12))
    hasher = LSH(32, random_state=0).fit(X)
    assert (hasher.encode(3 * X) == hasher.encode(X)).all()


@pytest.mark.parametrize("threshold", ["median", "sign"])
def test_labels_change_nothing(threshold):
    X = np.random.default_rng(0).poisson(1.0, (40, 12))
    hashers = [LSH(16, threshold=threshold, random_state=0).fit(X, y) for y in (None, ["a"] * 40)]
    assert (hashers[0].encode(X) == hashers[1].encode(X)).all()
