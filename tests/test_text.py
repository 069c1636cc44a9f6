from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from vdsh.errors import InputError
from vdsh.hashers import VDSH
from vdsh.text import SMART, BagOfWords, inverse_document_frequency, tokenize, weigh

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


def test_scikit_learn_accepts_the_vectoriser():
    assert {check["status"] for check in estimator_checks.check_estimator(BagOfWords())} == {
        "passed"
    }


@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
    ],
)
def test_scikit_learn_accepts_its_settings(check):
    """`check_estimator` runs these only for estimators that take a matrix."""
    getattr(estimator_checks, check)("BagOfWords", BagOfWords())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Shuttle's crew", ["the", "shuttle", "crew"]),
        ("don't; dogs' o'Reilly's ''quoted''", ["don't", "dogs", "o'reilly", "quoted"]),
        ("don\u2019t", ["don't"]),
        ("fit_transform(X1, y)", ["fit", "transform", "x1"]),
        ("Caf\u00e9 Stra\u00dfe \u039f\u0394\u039f\u03a3", ["caf\u00e9", "stra\u00dfe", "οδος"]),
        ("cafe\u0301", ["caf\u00e9"]),
        ("\u5bc6\u7801\u5b66 \u5b66", ["\u5bc6\u7801", "\u7801\u5b66", "\u5b66"]),
        ("東京tower", ["東京", "tower"]),
        ("한국어 문서", ["한국어", "문서"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("fun \U0001f600\U0001f44d\U0001f3fd", ["fun", "\U0001f600", "\U0001f44d"]),
        ("\u2764\ufe0f", ["\u2764"]),
        ("", []),
        ("a \x00 b \ud800 !?", []),
    ],
)  # fmt: skip
def test_tokens_of(text, tokens):
    assert tokenize(text) == tokens


def test_a_run_of_more_than_100_characters_is_no_word():  # #16 A8
    longest, too_long = "é" * 100, "é" * 101
    assert tokenize(f"one {longest}'s {too_long} two") == ["one", longest, "two"]


def test_one_endless_word_costs_no_memory():  # #16 A8
    words = [f"w{i}" for i in range(5000)]
    bag = BagOfWords().fit([" ".join(words), "x" * 20_000, "y" * 100])
    assert bag.vocabulary_.shape == (5001,)
    assert bag.vocabulary_.nbytes + sum(map(len, bag.vocabulary_)) < 100_000


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ที่อยู่ 42", ["ที่อ", "อยู่", "42"]),
        ("ພາສາລາວ", ["ພາສາ", "ສາລາ", "ລາວ"]),
        ("ភាសាខ្មែរ", ["ភាសា", "សាខ្", "ខ្មែ", "មែរ"]),
        ("abcไทยdef ๒๕ ก", ["abc", "ไท", "ทย", "def", "๒๕", "ก"]),
    ],
)
def test_scripts_without_spaces_are_cut_into_pairs(text, tokens):  # #16 D4
    assert tokenize(text) == tokens


@given(st.text())
def test_any_text_has_tokens_that_stand_in_it(text):
    for token in tokenize(text):
        assert token
        assert tokenize(token)[:1] == [token] or len(token) == 1


def test_smart_has_the_570_distinct_words():
    assert len(SMART) == 570
    assert {"the", "don't", "would", "zero"} <= SMART


def test_counts_agree_with_a_slow_count():
    texts = ["to orbit, to ORBIT and back", "back in caf\u00e9", "", "nothing new"] * 3000
    bag = BagOfWords(stop_words=None).fit(texts)
    counts = bag.transform(texts)
    words = [str(word) for word in bag.vocabulary_]
    for row in (0, 1, 2, 11_999):
        slow = Counter(tokenize(texts[row]))
        assert {words[j]: n for j, n in zip(*_row(counts, row), strict=True)} == slow
    assert counts.has_canonical_format


def _row(counts, row):
    part = slice(counts.indptr[row], counts.indptr[row + 1])
    return counts.indices[part].tolist(), counts.data[part].tolist()


def test_tfidf_agrees_with_scikit_learn():
    texts = ["orbit rocket orbit", "rocket crew", "goal crew crew", "moon"]
    ours = BagOfWords(stop_words=None).fit(texts)
    counts = ours.transform(texts)
    weighted = weigh(counts, "tfidf", inverse_document_frequency(counts)).toarray()
    theirs = TfidfVectorizer().fit(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    np.testing.assert_allclose(weighted, theirs.transform(texts).toarray(), rtol=1e-6)


def test_weightings():
    counts = BagOfWords().fit_transform(["orbit orbit moon", "orbit"])
    assert weigh(counts, "given").toarray().tolist() == [[1, 2], [0, 1]]
    np.testing.assert_allclose(weigh(counts, "tf").toarray()[0], np.array([1, 2]) / 5**0.5)
    np.testing.assert_allclose(weigh(counts, "binary").toarray()[0], [0.5**0.5] * 2)
    roots = weigh(counts, "sqrt-tfidf", np.array([1, 3], np.float32))  # moon, orbit
    np.testing.assert_allclose(roots.toarray()[0], np.array([1, 18**0.5]) / 19**0.5, rtol=1e-6)
    with pytest.raises(
        InputError, match="tfidf, sqrt-tfidf, damped-tfidf, tf, binary, given. Got 'bm25'"
    ):
        weigh(counts, "bm25")


def test_damped_weights_are_counts_in_short_texts_and_roots_in_long_ones():
    rows = [np.ones(n) for n in (5, 25, 60)]
    counts = csr_array(np.stack([np.pad(4 * row, (0, 60 - len(row))) for row in rows]))
    counts[0, 0] = counts[1, 0] = counts[2, 0] = 16
    damped = weigh(counts, "damped-tfidf", np.ones(60, np.float32)).toarray()
    ratios = damped[:, 0] / damped[:, 1]
    np.testing.assert_allclose(ratios, [4, 4**0.75, 2], rtol=1e-6)
    for row in range(3):  # a text alone has the weights that it has among others
        alone = weigh(counts[[row]], "damped-tfidf", np.ones(60, np.float32))
        assert (alone.toarray() == damped[row]).all()


def test_vocabulary_keeps_the_words_in_most_documents():
    texts = ["moon orbit", "moon orbit crew", "moon"]
    assert BagOfWords(2).fit(texts).vocabulary_.tolist() == ["moon", "orbit"]
    assert BagOfWords(min_df=2).fit(texts).vocabulary_.tolist() == ["moon", "orbit"]
    assert BagOfWords(max_df=0.7).fit(texts).vocabulary_.tolist() == ["crew", "orbit"]
    assert BagOfWords(stop_words=["moon"]).fit(texts).vocabulary_.tolist() == ["crew", "orbit"]


@pytest.mark.parametrize(
    ("settings", "texts", "message"),
    [
        ({}, ["the of and"], "No word is left"),
        ({}, [], "No word is left"),
        ({"min_df": 5}, ["moon"], "No word is left"),
        ({"min_df": -1}, ["moon"], "min_df must be"),
        ({"max_df": 1.5}, ["moon"], "max_df must be"),
        ({"vocabulary_size": 0}, ["moon"], "at least 1. Got 0"),
        ({"stop_words": "english"}, ["moon"], "Got 'english'"),
        ({}, "moon", "got one string"),
        ({}, ["moon", None], "Document 1 is not a string but NoneType"),
    ],
)
def test_bad_input_gets_a_sentence(settings, texts, message):
    with pytest.raises(InputError, match=message):
        BagOfWords(**settings).fit(texts)


def test_the_column_of_a_data_frame_is_taken_and_the_frame_refused():  # #16 A5
    frame = pd.DataFrame({"year": [1990, 1991], "body": ["moon orbit", "crew"]})
    bag = BagOfWords().fit(frame["body"])
    assert bag.vocabulary_.tolist() == ["crew", "moon", "orbit"]
    for wrong in (frame, frame[["body"]]):
        with pytest.raises(InputError, match="got a DataFrame. Give one of its columns"):
            bag.transform(wrong)
    with pytest.raises(InputError, match="Document 1 is not a string"):
        bag.transform(pd.Series(["moon", pd.NA]))


def test_a_dict_is_not_taken_for_its_names():
    with pytest.raises(InputError, match="Expected a list of texts, got a dict"):
        BagOfWords().fit({"text": ["moon"]})


def test_no_texts_give_no_rows():
    assert BagOfWords().fit(["moon"]).transform([]).shape == (0, 1)


def test_pipelines_and_clone_work(corpus):
    texts, _ = corpus
    pipeline = make_pipeline(BagOfWords(50), VDSH(8, epochs=2, hidden_size=8, random_state=0))
    bits = pipeline.fit(texts).transform(texts)
    assert bits.shape == (80, 8)
    assert (clone(pipeline).fit(texts).transform(texts) == bits).all()
