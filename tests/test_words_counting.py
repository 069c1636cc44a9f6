"""The terms of many texts at once are those of each, in what PostgreSQL and Milvus keep of them."""

import numpy as np
import pytest

from slow_words import bag_of
from vdsh.store.engines.milvus import tables
from vdsh.store.engines.postgres import rows
from vdsh.text.languages import language
from vdsh.words import counting
from vdsh.words.counting import count_terms

rng = np.random.default_rng(0)
WORDS = [f"w{i}" for i in range(300)] + ["the", "o'neill", "moons\\", "密码学", "a", "fooBar.baz"]
TEXTS = [" ".join(rng.choice(WORDS, n)) for n in (0, 1, 5, 40, 400, 3000) for _ in range(3)]
TEXTS += ["", "the of", "moon " * 300, " ".join(f"x{i}" for i in range(20_000)) + " moon"]
ENGLISH = language("english")


@pytest.fixture(params=["kernels", "plain"])
def way(request, monkeypatch):
    monkeypatch.setattr(counting, "compiled", lambda seconds: request.param == "kernels")


def test_terms_are_those_of_a_slow_count(way):
    ((_, counted),) = count_terms(TEXTS, ENGLISH, named=True)
    assert len(counted.terms) == len(counted.hashes)
    for i, text in enumerate(TEXTS):
        span = slice(counted.ends[i], counted.ends[i + 1])
        names = [counted.terms[number] for number in counted.numbers[span]]
        bag, length = bag_of(text)
        assert dict(zip(names, counted.counts[span].tolist(), strict=True)) == bag
        assert counted.lengths[i] == length


def test_vectors_of_many_texts_are_those_of_each(way):
    together = rows.to_vectors(TEXTS, ENGLISH)[0]
    assert together == [rows.to_vectors([text], ENGLISH)[0][0] for text in TEXTS]
    vector, n = together[3]
    bag, length = bag_of(TEXTS[3])
    assert (len(vector.split()), n) == (len(bag), length)
    assert "'x1'" in together[-1][0]  # the first words are kept
    assert len(together[-1][0]) < 2**20


def test_words_for_milvus_are_the_stems_of_each_text(way):
    together = tables.to_words(TEXTS, ENGLISH)
    assert together == [tables.to_words([text], ENGLISH)[0] for text in TEXTS]
    for text, words in zip(TEXTS[:-4], together, strict=False):
        if len(words) < tables.LONGEST // 2:
            bag, _ = bag_of(text)
            stems = [term for term in bag.elements() if term[0] != "="]
            assert sorted(words.split()) == sorted([".", *stems])
    assert len(together[-1]) <= tables.LONGEST
    assert " x1 " in together[-1]


def test_no_texts_have_no_words(way):
    assert rows.to_vectors([], ENGLISH)[0] == tables.to_words([], ENGLISH) == []
