"""Words as PostgreSQL's text search has them: many texts at once as each alone."""

import numpy as np

from vdsh.store.engines.postgres import vectors
from vdsh.text.tokenizer import find_tokens
from vdsh.words.query import content_words


def test_vectors_of_many_texts_are_those_of_each():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(300)] + ["the", "o'neill", "moon\\", "密码学", "a"]
    texts = [" ".join(rng.choice(words, n)) for n in (0, 1, 5, 40, 400, 3000) for _ in range(3)]
    texts += ["", "the of", "moon " * 300, " ".join(f"x{i}" for i in range(2500)) + " moon"]
    together = vectors._write_vectors(find_tokens(texts))
    for text, (vector, n) in zip(texts, together, strict=True):
        alone, n_alone = vectors._vector(content_words(text))
        assert (sorted(vector.split()), n) == (sorted(alone.split()), n_alone)
    assert together[-1] == vectors._vector(content_words(texts[-1]))  # in order where it matters
    assert vectors._write_vectors(find_tokens([])) == []
