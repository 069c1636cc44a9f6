"""Unused and duplicated bits are noticed, told and kept in the model card."""

import warnings

import numpy as np
import pytest

from conftest import quick, toy_corpus
from vdsh import TextHasher
from vdsh.codes import binarize, thresholds
from vdsh.hashers import LSH
from vdsh.model.health import BitHealthWarning, bit_health, describe, entropy


def scores(n_docs=2000, n_bits=16):
    return np.random.default_rng(0).normal(size=(n_docs, n_bits)).astype(np.float32)


def health(scores, **options):
    return bit_health(scores, binarize(scores, thresholds(scores, "median")), **options)


def test_independent_bits_are_healthy():
    found = health(scores())
    assert (found.unused, found.duplicated) == ([], [])
    assert np.allclose(found.balance, 0.5)
    assert np.allclose(entropy(found.balance), 1)


def test_a_copy_and_an_opposite_are_duplicates_of_the_first():
    s = scores()
    s[:, 4], s[:, 9] = 2 * s[:, 1] + 3, -s[:, 1]
    s[:, 11] = s[:, 2] + 0.05 * s[:, 11]
    assert health(s).duplicated == [[4, 1], [9, 1], [11, 2]]


def test_merely_related_bits_are_no_duplicates():
    s = scores()
    s[:, 4] = s[:, 1] + 0.7 * s[:, 4]
    assert health(s).duplicated == []


def test_a_constant_bit_is_unused_and_no_duplicate():
    s = scores()
    s[:, [3, 7]] = 1.5
    found = health(s)
    assert found.unused == [3, 7]
    assert found.duplicated == []
    assert entropy(found.balance)[3] == 0


def test_a_bit_that_is_nearly_always_1_is_unused():
    s = scores()
    bits = binarize(s, np.where(np.arange(16) == 5, -3.5, 0).astype(np.float32))
    assert bit_health(s, bits).unused == [5]


def test_a_collapsed_dimension_is_unused_though_its_bit_is_balanced():
    s = scores()
    s[:, 6] *= 0.02
    assert health(s).unused == [6]
    assert health(s).balance[6] == 0.5


def test_the_noise_of_a_variational_model_decides_what_is_collapsed():
    s = scores()
    s[:, 6] *= 0.2
    assert health(s, noise=np.ones(16, np.float32)).unused == []
    assert health(s, noise=np.full(16, 9, np.float32)).unused == [6]
    assert len(health(s, noise=np.full(16, 1e4, np.float32)).unused) == 16


@pytest.mark.parametrize(
    ("unused", "duplicated", "sentence"),
    [
        ([2], [], "1 of 32 bits tells no documents apart (2)"),
        ([2, 5], [[4, 1]], "2 of 32 bits tell no documents apart (2, 5), 1 repeats another (4)"),
        ([], [[4, 1], [5, 1]], "2 of 32 bits repeat another (4, 5)"),
        (list(range(9)), [], "9 of 32 bits tell no documents apart (0, 1, 2, 3, 4, 5, 6, 7, ...)"),
    ],
)
def test_health_is_a_sentence(unused, duplicated, sentence):
    assert describe(32, unused, duplicated) == sentence


@pytest.fixture
def wasteful(monkeypatch):
    """Let LSH make a bit twice and one that says nothing."""
    real = LSH._scores

    def made(self, inputs):
        found = real(self, inputs)
        found[:, 3], found[:, 5] = found[:, 0], 1
        return found

    monkeypatch.setattr(LSH, "_scores", made)


def test_fit_warns_of_wasted_bits_and_the_card_names_them(wasteful, tmp_path):
    texts = [f"{text} w{i % 97} v{i % 89}" for i, text in enumerate(toy_corpus(1000)[0])]
    hasher = TextHasher("lsh", 8, random_state=0)
    with pytest.warns(BitHealthWarning, match="Bits are wasted: 1 of 8 bits tells no documents "
                      r"apart \(5\), 1 repeats another \(3\). .* take fewer bits"):  # fmt: skip
        hasher.fit(texts, validation=None)
    hasher.save(tmp_path / "m")
    assert "1 repeats another (3)" in (tmp_path / "m" / "README.md").read_text()
    loaded = TextHasher.load(tmp_path / "m").hasher_
    assert (loaded.unused_bits_, loaded.duplicated_bits_) == ([5], [[3, 0]])


def test_few_documents_are_no_reason_to_warn(wasteful):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hasher = TextHasher("lsh", 8, random_state=0).fit(toy_corpus(998)[0])
    assert [3, 0] in hasher.hasher_.duplicated_bits_


def test_a_network_whose_dimensions_collapse_is_noticed():
    settings = quick("vdsh", kl_weight=100.0, kl_warmup=1, start="random")
    collapsed = TextHasher("vdsh", 16, random_state=0, **settings).fit(toy_corpus()[0])
    assert len(collapsed.hasher_.unused_bits_) == 16
