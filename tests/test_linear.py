"""Linear hashing: a method that learns without torch, and knows how sure it is."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import toy_corpus
from vdsh import TextHasher
from vdsh.errors import InputError
from vdsh.explain import explain_bits, explain_text
from vdsh.hashers import LinearHashing
from vdsh.jit import available_threads, use_threads
from vdsh.model.encoders import normal_cdf
from vdsh.model.health import BitHealthWarning
from vdsh.store import open_store
from vdsh.text import BagOfWords
from vdsh.text.counts import halves


@pytest.fixture(scope="module")
def texts():
    """1,500 texts of ten words from ten topics, of which each has twenty words."""
    rng = np.random.RandomState(0)
    topics = rng.randint(10, size=1500)
    some = [rng.choice(20, 10, replace=False) for _ in topics]
    return [
        " ".join(f"word{chr(97 + t)}{chr(97 + w)}" for w in row)
        for t, row in zip(topics, some, strict=True)
    ]


@pytest.fixture(scope="module")
def learned(texts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BitHealthWarning)  # ten topics are few for 16 bits
        return TextHasher("linear", n_bits=16, random_state=0).fit(texts, progress=False)


def test_it_learns_saves_and_serves_without_torch(tmp_path):
    code = f"""
import sys
from vdsh import TextHasher
texts = ["orbit rocket moon crew", "goal match team coach"] * 40
hasher = TextHasher("linear", n_bits=8, random_state=0).fit(texts, progress=False)
hasher.save({str(tmp_path / "model")!r})
codes = TextHasher.load({str(tmp_path / "model")!r}).encode(texts[:2])
assert (codes == hasher.encode(texts[:2])).all() and (codes[0] != codes[1]).any()
assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_codes_do_not_depend_on_the_number_of_threads(texts):
    counts = BagOfWords().fit_transform(texts)
    codes = []
    try:
        for n in (1, 3):
            use_threads(n)
            assert available_threads() == n
            codes.append(LinearHashing(32, random_state=0).fit(counts).encode(counts))
    finally:
        use_threads(0)
    assert (codes[0] == codes[1]).all()


def test_texts_of_a_topic_come_first(texts, learned, tmp_path):
    with open_store(tmp_path / "store", learned) as store:
        from vdsh.documents import Document

        store.upsert(Document(str(i), text) for i, text in enumerate(texts))
        for rank in ("distance", "expected", "relevance"):
            hits = store.search(texts[0], k=20, rank=rank)
            assert {hit.text[:5] for hit in hits} == {texts[0][:5]}, rank


def test_probabilities_are_those_of_other_halves(texts, learned):
    """Of bits that it gives the probability p, about a share p is 1 in the other half."""
    counts = learned.vectorizer_.transform(texts)
    one, two = halves(csr_array(counts))
    hasher = learned.hasher_
    chances = normal_cdf((hasher.scores(one) - hasher.thresholds_) / hasher.sigma_)
    bits = hasher.transform(two).reshape(-1)
    for some in np.array_split(np.argsort(chances, axis=None), 5):
        assert bits[some].mean() == pytest.approx(chances.reshape(-1)[some].mean(), abs=0.05)
    assert learned.model_.bit_probabilities(texts[:3]).shape == (3, 16)
    assert all(explain_text(learned, text).confidence > 0.5 for text in texts[:3])


def test_words_behind_a_bit_are_those_of_the_regression(learned):
    model = learned.model_
    for bit in explain_bits(learned, n_words=3):
        for words, sign in ((bit.ones, 1), (bit.zeros, -1)):
            columns = [model.words.index(word.word) for word in words]
            assert (sign * model.learned["W_"][columns, bit.bit] > 0).all()


def test_vectors_teach_it(texts):
    counts = BagOfWords().fit_transform(texts)
    teacher = np.random.RandomState(0).normal(size=(1500, 8)).astype(np.float32)
    given = (None, teacher)
    plain, taught = (LinearHashing(8, random_state=0).fit(counts, vectors=v) for v in given)
    assert (taught.encode(counts) != plain.encode(counts)).any()


@pytest.mark.parametrize(
    "texts",
    [
        ["orbit"] * 40,
        ["one and the same text"] * 150,
        ["rocket"] * 20 + ["stadium"] * 20,
        [f"{i} {i * i} {7 * i}" for i in range(200)],
        [" ".join(toy_corpus()[0][:3])] * 99 + ["something else"],
        ["words here", ""] * 60,
    ],
    ids=["one word", "all equal", "two words", "numbers", "nearly all equal", "half empty"],
)
def test_poor_documents_give_a_model_and_finite_scores(texts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        hasher = TextHasher("linear", n_bits=8, random_state=0, min_df=1)
        hasher.fit(texts, progress=False)
        assert hasher.encode(texts[:1]).shape == (1, 1)
    assert np.isfinite(hasher.model_.scores([*texts[:20], ""])).all()


def test_equal_texts_get_one_code_with_a_warning():
    texts = ["one same text"] * 150
    hasher = TextHasher("linear", n_bits=8, random_state=0)
    with pytest.warns(UserWarning, match="All 150 documents|All 135 documents"):
        hasher.fit(texts, progress=False)
    assert len(np.unique(hasher.encode(texts), axis=0)) == 1


def test_ten_documents_and_empty_ones_are_refused_in_a_sentence():
    with pytest.raises(InputError, match="32 bits need at least 32 documents"):
        TextHasher("linear").fit(["orbit rocket", "goal match"] * 5)
    with pytest.raises(InputError):
        TextHasher("linear").fit([""] * 50)
