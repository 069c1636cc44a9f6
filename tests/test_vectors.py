"""A teacher: vectors that say in training which documents are alike (#19)."""

import json
import os

import numpy as np
import pytest

from conftest import QUICK, toy_corpus
from vdsh import TextHasher
from vdsh.errors import InputError
from vdsh.hashers import HASHERS, VDSH
from vdsh.model.card import model_card

ONE_TOPIC = "orbit shuttle rocket goal match ball".split()


def taught_corpus(n_docs=160, seed=0):
    """Texts of random words, and vectors in two heaps that they know nothing of."""
    rng = np.random.RandomState(seed)
    heap = np.arange(n_docs) % 2
    texts = [" ".join(rng.choice(ONE_TOPIC, 3, replace=False)) for _ in heap]
    return texts, (np.eye(2)[heap] + 0.01 * rng.normal(size=(n_docs, 2)))


def test_vectors_change_what_is_learned_and_the_card_says_whose(tmp_path):
    texts, _ = toy_corpus()
    vectors = np.random.RandomState(0).normal(size=(80, 5))  # float64
    taught = TextHasher(n_bits=16, random_state=0, **QUICK)
    taught.fit(texts, vectors=vectors, vectors_source="a choir of owls", progress=False)
    plain = TextHasher(n_bits=16, random_state=0, **QUICK).fit(texts, progress=False)
    assert (taught.encode(texts) != plain.encode(texts)).any()
    assert "taught by vectors of 5 dimensions from a choir of owls" in model_card(taught.model_)
    assert "taught" not in model_card(plain.model_)
    taught.save(tmp_path / "model")
    loaded = TextHasher.load(tmp_path / "model")
    assert (loaded.encode(texts) == taught.encode(texts)).all()  # words alone


def test_the_same_seed_and_vectors_give_the_same_codes():
    texts, vectors = taught_corpus()
    codes = [
        TextHasher(n_bits=8, random_state=1, **QUICK)
        .fit(texts, vectors=vectors.astype(kind), progress=False)
        .encode(texts)
        for kind in (np.float64, np.float64)
    ]
    assert (codes[0] == codes[1]).all()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((79, 3)), "Got 80 documents but 79 vectors"),
        (np.ones((81, 3)), "Got 80 documents but 81 vectors"),
        (np.ones(80), "one row a document"),
        (np.ones((80, 0)), "a column or more"),
        (np.where(np.arange(80)[:, None] == 7, np.nan, np.ones((80, 3))), "Vector 8 has a value"),
        (np.where(np.arange(80)[:, None] > 77, 1e300, np.ones((80, 3))), "Vector 79 .* 1 more"),
        (np.where(np.arange(80)[:, None] == 3, 0.0, np.ones((80, 3))), "Vector 4 is zero"),
        ([[1.0, 2.0]] * 79 + [[1.0]], "all of one length"),
        ([["a", "b"]] * 80, "numbers"),
    ],
)
def test_bad_vectors_are_refused_in_a_sentence(vectors, message):
    texts, _ = toy_corpus()
    with pytest.raises(InputError, match=message):
        TextHasher(n_bits=8, **QUICK).fit(texts, vectors=vectors, progress=False)


def test_a_method_that_learns_from_words_alone_takes_no_vectors():
    for name in set(HASHERS) - {"vdsh", "vdsh-s", "vdsh-sp", "linear"}:
        kind = HASHERS[name]
        labels = ["a", "b"] * 20
        with pytest.raises(InputError, match="takes no vectors"):
            kind(8).fit(np.eye(40), labels, vectors=np.ones((40, 2)))


def test_vectors_that_teach_nothing_are_told_of():
    texts, labels = toy_corpus()
    with pytest.warns(UserWarning, match="The vectors are not used"):
        hasher = TextHasher("vdsh-s", 8, **QUICK).fit(
            texts, labels, vectors=np.ones((80, 2)), progress=False
        )
    assert hasher.hasher_.neighbor_share_ == 0


def test_few_labels_go_with_vectors():
    texts, labels = toy_corpus()
    few = [label if i < 8 else None for i, label in enumerate(labels)]
    hasher = TextHasher("vdsh-s", 8, random_state=0, **QUICK)
    hasher.fit(texts, few, vectors=np.eye(2)[np.arange(80) % 2], progress=False)
    assert hasher.hasher_.neighbor_share_ == 0.3


@pytest.fixture
def docs(tmp_path):
    texts, labels = toy_corpus(120)
    rng = np.random.RandomState(0)
    rows = [
        {"id": str(i), "text": text, "labels": [label], "place": rng.normal(size=3).tolist()}
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    path = tmp_path / "docs.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path, np.array([row["place"] for row in rows])


SMALL = ("--bits", "8", "--epochs", "2", "--set", "hidden_size=16", "--device", "cpu", "-q")


def test_a_file_and_a_field_of_the_same_vectors_teach_the_same(vdsh, docs, tmp_path):
    path, vectors = docs
    np.save(tmp_path / "v.npy", vectors)
    codes = []
    for given in ("place", tmp_path / "v.npy"):
        out = tmp_path / f"model{len(codes)}"
        vdsh("fit", path, "--vectors", given, "--out", out, *SMALL)
        codes.append(TextHasher.load(out).encode(["orbit shuttle", "goal match", "rocket"]))
        assert f"from {given}" in (out / "README.md").read_text()
    assert (codes[0] == codes[1]).all()


def test_bad_files_of_vectors_are_one_sentence_and_leave_nothing(vdsh, docs, tmp_path):
    path, vectors = docs
    np.save(tmp_path / "v.npy", vectors)
    whole = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-100])
    (tmp_path / "none.npy").write_bytes(b"")
    np.save(tmp_path / "few.npy", vectors[:100])
    np.save(tmp_path / "nan.npy", np.where(vectors > 1, np.nan, vectors))
    for given, message in {
        "cut.npy": "not a complete array",
        "none.npy": "not a complete array",
        "few.npy": "Got 120 documents but 100 vectors",
        "nan.npy": "not a finite number",
        "missing.npy": "There is no file",
        "labels_of_none": "has no list of numbers",
    }.items():
        name = given if "_" in given else tmp_path / given
        result = vdsh("fit", path, "--vectors", name, "--out", tmp_path / "model", *SMALL)
        assert result.returncode == 1
        assert message in result.stderr and "Traceback" not in result.stderr
        assert not (tmp_path / "model").exists()


def test_vectors_without_documents(vdsh, docs, tmp_path):
    np.save(tmp_path / "v.npy", docs[1])
    (tmp_path / "empty.jsonl").write_text("")
    result = vdsh(
        "fit", tmp_path / "empty.jsonl", "--vectors", tmp_path / "v.npy",
        "--out", tmp_path / "model", *SMALL,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.strip().count("\n") == 0
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.skipif("VDSH_DATA" not in os.environ, reason="needs the Reuters corpus")
def test_stories_teach_titles():
    """Latent semantic space of whole Reuters stories, as the teacher of a model of their titles."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    from vdsh.datasets import load
    from vdsh.paper.protocol import evaluate_codes
    from vdsh.text import BagOfWords

    data = load("reuters20", seed=0, quiet=True)
    stories, labels = data.train.texts[:3000], data.train.labels[:3000]
    titles = [text.partition("\n")[0] for text in stories]
    bag = BagOfWords().fit(titles)
    train = (bag.transform(titles), labels)
    asked = [text.partition("\n")[0] for text in data.test.texts]
    test = (bag.transform(asked), data.test.labels)
    weights = TfidfVectorizer(max_features=5000, sublinear_tf=True, stop_words="english")
    teacher = TruncatedSVD(64, random_state=0).fit_transform(weights.fit_transform(stories))
    found = []
    for vectors in (None, teacher):
        hasher = VDSH(32, random_state=0, epochs=8, hidden_size=200, device="cpu")
        hasher.fit(*train, vectors=vectors)
        codes = [(hasher.encode_counts(counts), labels) for counts, labels in (test, train)]
        found.append(evaluate_codes(*codes[0], *codes[1]).means["precision@100"])
    assert found[1] > found[0] + 0.02
