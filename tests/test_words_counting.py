"""The words of many texts at once are those of each, in what PostgreSQL and Milvus keep of them."""

import numpy as np

from vdsh.store.engines.milvus import tables
from vdsh.store.engines.postgres import rows
from vdsh.words.counting import count_blocks, document_words

rng = np.random.default_rng(0)
WORDS = [f"w{i}" for i in range(300)] + ["the", "o'neill", "moon\\", "密码学", "a"]
TEXTS = [" ".join(rng.choice(WORDS, n)) for n in (0, 1, 5, 40, 400, 3000) for _ in range(3)]
TEXTS += ["", "the of", "moon " * 300, " ".join(f"x{i}" for i in range(20_000)) + " moon"]
((_, COUNTED),) = count_blocks(TEXTS)


def test_vectors_of_many_texts_are_those_of_each():
    together = list(rows._vectors(TEXTS, COUNTED))
    for text, (vector, n) in zip(TEXTS, together, strict=True):
        alone, n_alone = rows._vector(document_words(text))
        assert (sorted(vector.split()), n) == (sorted(alone.split()), n_alone)
    assert together[-1] == rows._vector(document_words(TEXTS[-1]))  # its first words are kept


def test_words_for_milvus_are_those_of_each_text():
    together = list(tables._block_words(TEXTS, COUNTED))
    for text, words in zip(TEXTS, together, strict=True):
        assert sorted(words.split()) == sorted(tables._words(document_words(text)).split())
    assert together[-1] == tables._words(document_words(TEXTS[-1]))
    assert len(together[-1]) <= tables.LONGEST


def test_no_texts_have_no_words():
    assert list(count_blocks([])) == []
    assert rows.to_vectors([]) == tables.to_words([]) == []
