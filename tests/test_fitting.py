"""The ways to learn a model, as the command line uses them (#32)."""

import numpy as np
import pytest

from conftest import QUICK, toy_corpus
from vdsh import TextHasher
from vdsh.fitting import fit_texts, fit_vectors

TEXTS, LABELS = toy_corpus(120)
TRAIN, HELD_OUT = (TEXTS[:80], LABELS[:80]), (TEXTS[80:], LABELS[80:])


def fit(**how):
    hasher = TextHasher("vdsh", n_bits=8, random_state=0, **QUICK)
    return fit_texts(hasher, TRAIN, HELD_OUT, source="a drawer", progress=False, **how)


@pytest.fixture(scope="module")
def fitted():
    return fit(sampled_from=500)


def test_a_model_of_texts_is_measured_for_its_card(fitted):
    facts = fitted.model_.training
    assert facts["source"] == "a drawer" and facts["sampled_from"] == 500
    assert facts["quality"]["measure"] == "labels"
    assert facts["quality"]["values"].keys() == {"random", "exact tf-idf cosine", "codes"}


def test_a_model_of_vectors_remembers_what_embedded_its_documents():
    vectors = np.random.RandomState(0).normal(size=(40, 6))
    hasher = fit_vectors(vectors, 8, random_state=0, embedder="model2vec:potion", progress=False)
    assert hasher.model == "itq" and hasher.model_.embedder == "model2vec:potion"
    assert hasher.encode(vectors).shape == (40, 1)
