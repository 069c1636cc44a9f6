"""A model by itself: the same codes as ever, with and without kernels, without scikit-learn."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdsh import TextHasher
from vdsh.codes import unpack
from vdsh.errors import InputError
from vdsh.hashers import HASHERS
from vdsh.hashers.vector_hasher import METHODS
from vdsh.model import Model, as_model
from vdsh.model.encoders import ENCODERS
from vdsh.text.tokenizer import find_tokens, tokenize

DATA = Path(__file__).parent / "data"
# Documents and bits whose score is the threshold, but for a digit that BLAS rounded until 0.2.
ROUNDED = {"vdsh-s": [[81, 2], [81, 15]], "vdsh-sp": [[122, 10]]}
SAVED = json.loads((DATA / "codes.json").read_text(encoding="utf-8"))


@pytest.fixture(params=HASHERS)
def model(request):
    return Model.load(DATA / "models" / request.param)


@pytest.fixture
def without_kernels(monkeypatch):
    for place in ("vdsh.model.network", "vdsh.text.word_counter"):
        monkeypatch.setattr(f"{place}.compiled", lambda seconds: False)


def check_saved(model):
    """Codes are those that were saved, but for bits whose score is the threshold to six digits.

    A median threshold is the score of a training document. The codes were made on an x86-64, by
    version 0.1, and the matrix products of other processors, and ours since, round the last digit
    of a float their own way.
    """
    codes = model.encode(SAVED["texts"])
    saved = np.frombuffer(bytes.fromhex(SAVED["codes"][model.name]), np.uint8).reshape(codes.shape)
    scores = model.scores(SAVED["texts"])
    near = np.isclose(scores, model.thresholds, rtol=1e-6, atol=1e-6 * np.abs(scores).max())
    others = unpack(codes) != unpack(saved)
    assert not (others & ~near).any()
    assert near.mean() < 0.02
    if model.has_posterior:  # our own kernels, in one order everywhere
        assert np.argwhere(others).tolist() == ROUNDED.get(model.name, [])


def test_codes_are_those_of_the_version_that_trained_the_model(model):
    """The folders were written, and the codes made, by version 0.1 before the house was rebuilt."""
    check_saved(model)


@pytest.mark.usefixtures("without_kernels")
def test_codes_are_the_same_without_kernels(model):
    check_saved(model)
    assert model.encode([]).shape == (0, 2)


@pytest.mark.parametrize("name", HASHERS)
def test_scores_are_the_same_without_kernels(name, monkeypatch):
    model = Model.load(DATA / "models" / name)
    scores = model.scores(SAVED["texts"])
    monkeypatch.setattr("vdsh.model.network.compiled", lambda seconds: False)
    assert model.scores(SAVED["texts"]).tobytes() == scores.tobytes()


def test_every_method_has_the_encoder_that_serves_it():
    kinds = HASHERS | METHODS
    assert {name: kind.encoder for name, kind in kinds.items()} == ENCODERS


def test_a_loaded_estimator_serves_and_learns_as_its_model():
    hasher = TextHasher.load(DATA / "models" / "vdsh")
    texts = [text for text in SAVED["texts"] if not hasher.model_.counts([text]).n_empty]
    assert as_model(hasher) is hasher.model_
    assert hasher.encode(texts).tobytes() == hasher.model_.encode(texts).tobytes()
    counts = hasher.vectorizer_.transform(texts)
    np.testing.assert_array_equal(hasher.hasher_.encode(counts), hasher.encode(texts))


def test_what_a_model_can_do_is_declared():
    capabilities = {}
    for name in HASHERS:
        model = Model.load(DATA / "models" / name)
        decoder = model.decoder
        labels = decoder is not None and decoder.U is not None
        capabilities[name] = (model.has_posterior, decoder is not None, labels, model.has_private)
    assert capabilities.pop("vdsh") == (True, True, False, False)
    assert capabilities.pop("vdsh-s") == (True, True, True, False)
    assert capabilities.pop("vdsh-sp") == (True, True, True, True)
    assert capabilities.pop("linear") == (True, False, False, False)
    assert set(capabilities.values()) == {(False, False, False, False)}


def test_a_model_without_a_posterior_says_so():
    model = Model.load(DATA / "models" / "lsh")
    with pytest.raises(InputError, match="'lsh' has no posterior"):
        model.bit_probabilities(["a text"])


def test_unknown_words_are_neither_counted_nor_stop_words():
    model = Model.load(DATA / "models" / "vdsh")
    assert "store" in model.words
    assert model.unknown_words("The store of Zebras, and zebras") == ["zebras"]
    assert model.unknown_words("") == []


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match="has not learned anything yet"):
        as_model(TextHasher())


def test_serving_a_text_loads_numpy_alone():
    heavy = "numba scipy sklearn pandas torch"
    code = f"""
import sys
from vdsh.model import Model
model = Model.load({str(DATA / "models" / "vdsh")!r})
model.encode(["a store of documents"]), model.bit_probabilities(["a store"]), model.fingerprint
print([name for name in {heavy.split()} if name in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def kernel_tokens(text):
    tokens = find_tokens([text])
    data = tokens.data.tobytes()
    return [data[i:j].decode() for i, j in zip(tokens.starts, tokens.stops, strict=True)]


tricky = st.sampled_from(
    "as's'\u2019 \u4e2d\u6587\u0301\U0001f600-\u0e01\u0e02\u0e34\u0e30\u0e01\u0e34"
)


@settings(deadline=None)
@given(st.text(st.one_of(tricky, st.characters())))
def test_one_text_has_the_tokens_that_the_kernel_finds(text):
    assert tokenize(text) == kernel_tokens(text)


def test_long_words_are_dropped_either_way():
    for length in (99, 100, 101):
        assert tokenize("a" * length + " bc") == kernel_tokens("a" * length + " bc")
