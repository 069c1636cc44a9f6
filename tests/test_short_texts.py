"""Texts that say little: of one or two words, of unknown words, or many copies of one."""

import warnings

import numpy as np
import pytest

from conftest import toy_corpus
from vdsh import TextHasher
from vdsh.fitting import choose_method, fit_texts
from vdsh.hashers import LinearHashing, default_method
from vdsh.hashers.vdsh import related_kernels
from vdsh.hashers.vdsh.related import related
from vdsh.model.card import model_card
from vdsh.model.health import BitHealthWarning
from vdsh.model.model import EmptyDocumentWarning
from vdsh.text import BagOfWords

METHODS = ("linear", "vdsh")
SENTENCE = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


def made_words(n):
    return [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n)]


def few_words(n_docs, n_words, seed=0):
    """Make texts of one word to so many."""
    rng = np.random.default_rng(seed)
    words = made_words(100)
    return [" ".join(rng.choice(words, rng.integers(1, n_words + 1))) for _ in range(n_docs)]


def fit(method, texts, labels=None, **settings):
    """Learn 16 bits; pytest makes errors of all warnings but those that are meant for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BitHealthWarning)
        warnings.simplefilter("ignore", EmptyDocumentWarning)
        return TextHasher(method, 16, random_state=0, **settings).fit(texts, labels, progress=False)


@pytest.mark.parametrize("method", METHODS)
def test_texts_of_one_or_two_words_get_codes_that_tell_words_apart(method):
    texts = few_words(600, 2)
    hasher = fit(method, texts)
    codes = hasher.encode(texts)
    by_text = {text: bytes(code) for text, code in zip(texts, codes, strict=True)}
    assert len(set(by_text.values())) > len(by_text) / 2
    assert np.isfinite(hasher.model_.bit_probabilities(texts[:5])).all()


@pytest.mark.parametrize("method", METHODS)
def test_texts_of_unknown_words_get_the_code_of_an_empty_text_and_a_warning(method):
    hasher = fit(method, few_words(200, 4))
    with pytest.warns(EmptyDocumentWarning, match="3 of 3 documents have no known word"):
        codes = hasher.encode(["never seen before", "xylophone", ""])
    assert len({bytes(code) for code in codes}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_the_model_card_says_how_many_texts_say_nothing(method):
    texts = few_words(180, 4) + ["the of and"] * 40
    hasher = fit(method, texts)
    n_empty = hasher.model_.training["documents_without_words"]
    # A tenth is held out, so not all forty are learned from.
    assert 0 < n_empty <= 40
    assert f"{n_empty} of these documents have no known word" in model_card(hasher.model_)
    none_empty = fit(method, few_words(180, 4))
    assert "no known word" not in model_card(none_empty.model_)


@pytest.mark.parametrize("method", METHODS)
def test_only_copies_of_one_text_are_learned_and_said_to_have_one_code(method):
    with pytest.warns(UserWarning, match="All 270 documents have the same code"):
        hasher = fit(method, [SENTENCE] * 300)
    assert hasher.hasher_.n_distinct_codes_ == 1


@pytest.mark.parametrize("method", METHODS)
def test_copies_do_not_take_the_bits_of_other_texts(method):
    others = few_words(300, 6)
    hasher = fit(method, [SENTENCE] * 1_500 + others)
    codes = {bytes(code) for code in hasher.encode(others)}
    # Without a limit on copies in the graph they had less than a quarter as many codes as texts.
    assert len(codes) > len(set(others)) / 2


def work_of(monkeypatch, counts):
    """Count the entries of the inverted index that all documents look at."""
    looked_at = 0
    real = related_kernels.fill_nearest

    def counting(unit, lists, limit, first, ids, cosines):
        nonlocal looked_at
        lengths = np.diff(lists[0])
        rows = unit[1][unit[0][first] : unit[0][first + len(ids)]]
        looked_at += int(lengths[rows].sum())
        return real(unit, lists, limit, first, ids, cosines)

    monkeypatch.setattr(related_kernels, "fill_nearest", counting)
    related(counts, 10)
    return looked_at


def test_work_does_not_grow_with_the_square_of_copies(monkeypatch):
    work = []
    for n_copies in (2_000, 4_000):
        counts = BagOfWords().fit_transform([SENTENCE] * n_copies).astype(np.float32)
        work.append(work_of(monkeypatch, counts))
    assert 0 < work[1] <= 2 * work[0]


def test_copies_beyond_those_in_the_graph_have_the_place_of_the_first():
    texts = few_words(200, 6) + [SENTENCE] * 100
    counts = BagOfWords().fit_transform(texts).astype(np.float32)
    found = related(counts, 10)
    assert found.neighbours.shape == (300, 10)
    assert found.places.shape[0] == 300
    assert found.rows.tolist() == list(range(220))
    assert (found.places[220:] == found.places[200]).all()
    assert (found.neighbours[220:] == found.neighbours[200]).all()
    assert found.neighbours.max() < 220


def test_copies_with_vectors_of_their_own_are_no_copies():
    counts = BagOfWords().fit_transform([SENTENCE] * 60).astype(np.float32)
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    assert len(related(counts, 5, vectors).rows) == 60
    assert len(related(counts, 5, np.repeat(vectors[:1], 60, axis=0)).rows) == 20


@pytest.mark.parametrize("method", ["vdsh-s", "vdsh-sp"])
def test_labels_of_a_tenth_of_short_texts_are_learned_from(method):
    texts, labels = toy_corpus(300)
    known = [label if i % 20 < 2 else None for i, label in enumerate(labels)]
    hasher = fit(method, texts, known, epochs=5, hidden_size=32, batch_size=16, device="cpu")
    codes = hasher.encode(texts)
    distances = np.unpackbits(codes[:, None] ^ codes[None], axis=2).sum(axis=2)
    same = np.array(labels)[:, None] == np.array(labels)[None]
    assert distances[~same].mean() > distances[same].mean() + 3


def test_learn_takes_the_network_only_where_it_is_better():
    short = few_words(200, 6)
    long = [" ".join(made_words(300)[i : i + 60]) for i in range(200)]
    assert [choose_method(n_bits, short) for n_bits in (8, 16, 32, 64, 128)] == [
        default_method(),
        *["linear"] * 4,
    ]
    assert [choose_method(n_bits, long) for n_bits in (8, 16, 32, 64, 128)] == [
        *[default_method()] * 3,
        *["linear"] * 2,
    ]
    # No word to count: learning says so, whatever the method.
    assert choose_method(32, ["the of and"] * 60) == default_method()


def test_the_quality_of_copies_is_measured_without_numpy_warnings():
    texts = [SENTENCE] * 200
    hasher = TextHasher("linear", 8, random_state=0)
    with pytest.warns(UserWarning, match="All 180 documents have the same code"):
        fit_texts(hasher, (texts[:180], None), (texts[180:], None), progress=False)
    assert hasher.model_.training["quality"]["measure"] == "halves"


def test_a_hasher_given_counts_learns_from_distinct_documents():
    others = few_words(300, 6)
    bag = BagOfWords().fit([SENTENCE, *others])
    counts = bag.transform([SENTENCE] * 1_500 + others).astype(np.float32)
    hasher = LinearHashing(16, random_state=0).fit(counts)
    codes = hasher.encode(counts[1_500:])
    assert len({bytes(code) for code in codes}) > len(set(others)) / 2
