"""Learning takes a bounded amount of work and memory, and says what is wrong with a bad corpus."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import QUICK, toy_corpus
from vdsh import TextHasher
from vdsh.documents.document import draw
from vdsh.errors import InputError
from vdsh.hashers import base
from vdsh.hashers.vdsh import neighbours, related
from vdsh.hashers.vdsh.lsa import unit
from vdsh.labels import in_common, read_labels
from vdsh.model.card import model_card

RNG = np.random.default_rng(0)


# -- as much as is allowed, and no more -----------------------------------------------------------


def test_a_draw_is_no_larger_than_the_room_and_from_all_over():
    drawn = draw(range(10_000), size=lambda i: 10, room=5_000)
    assert len(set(drawn)) == 500 and 4500 < np.mean(drawn) < 5500
    assert draw(["a" * 50, "b"], size=len, room=10) in (["a" * 50], ["b"])  # one at least


def test_of_many_texts_a_sample_is_learned_from_and_the_card_says_so():
    texts, labels = toy_corpus(300)
    vectors = RNG.normal(size=(300, 4))

    def fit(**more):
        return TextHasher("linear", 8, random_state=0).fit(texts, labels, progress=False, **more)

    some = fit(sample=200, vectors=vectors)
    assert some.model_.training["documents"] == 180 and some.model_.training["sampled_from"] == 300
    assert "180 documents, a random sample of 300" in model_card(some.model_)
    assert (some.encode(texts) == fit(sample=200, vectors=vectors).encode(texts)).all()
    assert "sampled_from" not in fit(sample=None).model_.training


def of_topics(n_docs, n_topics):
    """Documents of four words of their topic and four of any."""
    topic = np.arange(n_docs) % n_topics
    own = 10 * topic[:, None] + RNG.integers(0, 10, (n_docs, 4))
    columns = np.hstack([own, 10 * n_topics + RNG.integers(0, 500, (n_docs, 4))])
    ones, rows = np.ones(columns.size, np.float32), np.repeat(np.arange(n_docs), 8)
    return csr_array((ones, (rows, columns.ravel())), shape=(n_docs, 10 * n_topics + 500)), topic


def test_neighbours_among_a_sample_are_of_the_topic(monkeypatch):
    counts, topic = of_topics(3_000, 20)
    monkeypatch.setattr(neighbours, "MOST_LISTED", 600)
    ids, cosines = neighbours.nearest(counts, 5)
    assert len(np.unique(ids[cosines > 0])) <= 600
    assert (topic[ids] == topic[:, None]).mean() > 0.95


def test_nearest_vectors_of_many_are_nearly_those_of_all_pairs(monkeypatch):
    vectors = unit(RNG.normal(size=(40, 16))[np.arange(3_000) % 40] + RNG.normal(size=(3_000, 16)))
    exact = related.nearest_vectors(vectors, 10)
    monkeypatch.setattr(related, "_COMPARED", 600)
    nearly = related.nearest_vectors(vectors, 10)
    assert (nearly != np.arange(3_000)[:, None]).all()
    found = [len(set(a) & set(b)) for a, b in zip(exact, nearly, strict=True)]
    assert np.mean(found) > 7


# -- labels ---------------------------------------------------------------------------------------


def test_a_million_labels_make_no_dense_matrix():
    labels = read_labels([str(i) for i in range(1_000_000)])
    asked = read_labels(["7", "x", ["9", "7"]], labels.names)
    queries, documents = in_common(asked, labels)
    assert queries.names == documents.names == ["7", "9"]
    assert queries.matrix.tolist() == [[1, 0], [0, 0], [1, 1]]
    assert documents.matrix.sum() == 2


def test_of_too_many_labels_the_most_frequent_are_learned(monkeypatch):
    texts, labels = toy_corpus(120)
    labels = [[label, f"id {i}"] for i, label in enumerate(labels)]
    monkeypatch.setattr(base, "_MOST_CELLS", 2 * 108)
    with pytest.warns(UserWarning, match="110 different labels for 108 documents; the 2 that"):
        hasher = TextHasher("vdsh-s", 8, random_state=0, **QUICK).fit(texts, labels, progress=False)
    assert hasher.hasher_.classes_ == ["space", "sport"]


def test_a_label_for_each_document_does_no_harm():
    texts = toy_corpus(120)[0]
    hasher = TextHasher("vdsh", 8, random_state=0, **QUICK | {"epochs": 1})
    codes = hasher.fit(texts, list(range(120)), progress=False).encode(texts)
    assert len(np.unique(codes)) > 1


# -- bad corpora ----------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [["moon"] * 120, ["the moon is made of cheese"] * 120])
def test_equal_documents_make_a_model_and_a_warning(texts):
    with pytest.warns(UserWarning, match="All 108 documents have the same code"):
        hasher = TextHasher("linear", 8, random_state=0).fit(texts, progress=False)
    assert len(np.unique(hasher.encode(texts), axis=0)) == 1


def test_a_corpus_of_numbers_makes_a_model():
    texts = [f"{number:.4f}" for number in RNG.random(120)]
    hasher = TextHasher("linear", 8, random_state=0).fit(texts, validation=None, progress=False)
    assert len(np.unique(hasher.encode(texts))) > 1


@pytest.mark.parametrize("texts", [["moon base"] * 10, [""] * 50, ["the of and"] * 50])
def test_too_little_to_learn_from_is_told(texts):
    with pytest.raises(InputError, match="at least 16 documents|No word is left"):
        TextHasher("linear", 16).fit(texts, progress=False)


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_DATA, (500 * 2**20,) * 2)
sys.argv = ["vdsh", "fit", "docs.jsonl", "--model", "linear", "--bits", "8", "--out", "model", "-q"]
runpy.run_module("vdsh", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds memory so")
def test_too_little_memory_is_told_in_a_sentence_and_nothing_is_written(tmp_path):
    text = "moon base " * 400_000
    lines = (json.dumps({"text": f"{text} {i}"}) + "\n" for i in range(40))
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    run = [sys.executable, "-c", LIMITED]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.startswith("Error: There is not enough memory.")
    assert [path.name for path in tmp_path.iterdir()] == ["docs.jsonl"]
