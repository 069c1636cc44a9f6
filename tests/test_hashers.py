"""One battery for every hasher."""

import json
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import quick, toy_corpus
from vdsh.errors import InputError
from vdsh.hashers import HASHERS
from vdsh.labels import read_labels
from vdsh.metrics.ranking import precision_at, tally
from vdsh.text import BagOfWords

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
WITHOUT_CHANCE = {"sph", "sth"}  # nothing in them is drawn but starting points of solvers
every_hasher = pytest.mark.parametrize("name", HASHERS)


def make(name, n_bits=16, **settings):
    return HASHERS[name](n_bits, random_state=0, **quick(name, **settings))


@pytest.fixture(scope="module")
def counts():
    texts, labels = toy_corpus()
    return BagOfWords().fit_transform(texts), labels


@pytest.fixture(scope="module")
def learned(counts):
    """A hasher of each name, learned once; tests must not change it."""
    return cache(lambda name: make(name).fit(*counts))


@parametrize_with_checks(
    [make(name, 8, epochs=2, hidden_size=8, n_iterations=5) for name in HASHERS]
)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


@every_hasher
def test_two_topics_are_told_apart(name, counts, learned):
    X, labels = counts
    codes = learned(name).encode(X)
    matrix = read_labels(labels).matrix
    assert precision_at(tally(codes, matrix, codes, matrix), 20).mean() > 0.95


@every_hasher
def test_the_same_seed_gives_the_same_codes(name, counts, learned):
    again = make(name).fit(*counts)
    assert (again.encode(counts[0]) == learned(name).encode(counts[0])).all()


@pytest.mark.parametrize("name", [name for name in HASHERS if name not in WITHOUT_CHANCE])
def test_another_seed_gives_other_codes(name, counts, learned):
    other = make(name).set_params(random_state=1).fit(*counts)
    assert (other.encode(counts[0]) != learned(name).encode(counts[0])).any()


LENGTHS = [(name, n_bits) for name in HASHERS for n_bits in (8, 64, 128)]
LONG = ("linear", "vdsh", "lsh", "sph", "itq")  # others take their time
LENGTHS += [(name, 1024) for name in LONG]


@pytest.mark.parametrize(("name", "n_bits"), LENGTHS)
def test_codes_have_the_length_asked_for(name, n_bits):
    n_docs = max(160, n_bits + 16)
    X = csr_array(np.random.default_rng(0).poisson(0.3, (n_docs, 30)))
    y = ["even", "odd"] * (n_docs // 2)
    hasher = make(name, n_bits, epochs=1, n_anchors=150, steps=5).fit(X, y)
    assert hasher.encode(X).shape == (n_docs, n_bits // 8)
    assert hasher.transform(X[:3]).shape == (3, n_bits)


@every_hasher
def test_a_document_gets_the_same_code_alone_and_in_a_batch(name, counts):
    X, labels = counts
    hasher = make(name, hidden_size=300, epochs=2).fit(X, labels)
    alone = np.vstack([hasher.encode(X[[i]]) for i in range(X.shape[0])])
    assert (alone == hasher.encode(X)).all()
    assert (alone[:70] == hasher.encode(X[:70])).all()


@every_hasher
def test_median_bits_are_balanced(name, counts):
    bits = make(name, threshold="median").fit(*counts).transform(counts[0])
    assert np.abs(bits.mean(axis=0) - 0.5).max() <= 0.25  # ties at the median go to 0


@every_hasher
def test_settings_survive_a_clone(name):
    hasher = make(name, threshold="sign", weighting="tf")
    assert clone(hasher).get_params() == hasher.get_params()


@every_hasher
def test_fewer_documents_than_bits_is_refused(name, counts):
    with pytest.raises(InputError, match="64 bits need at least 64 documents.*Got 10 documents"):
        make(name, 64).fit(counts[0][:10], counts[1][:10])


@every_hasher
def test_a_bit_count_that_is_no_multiple_of_8_is_refused(name, counts):
    with pytest.raises(InputError, match="multiple of 8 from 8 to 1024. Got 20"):
        make(name, 20).fit(*counts)


def untidy(X):
    """Write the same counts down with stored zeros, entries in two halves, and in no order."""
    rng = np.random.default_rng(0)
    dense, halves = X.toarray(), X.toarray() / 2
    rows, columns = np.indices(dense.shape).reshape(2, -1)  # a zero is stored like any other
    entries = rng.permutation(2 * dense.size)
    values, rows, columns = (
        np.concatenate(pair)[entries]
        for pair in ((halves.ravel(), halves.ravel()), (rows, rows), (columns, columns))
    )
    by_row = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[by_row], np.arange(len(dense) + 1))
    return csr_array((values[by_row].astype(np.float32), columns[by_row], starts), dense.shape)


@every_hasher
def test_equal_matrices_give_equal_codes_however_they_are_stored(name, counts):
    """#16 A1: stored zeros crashed the search for neighbours, and were words to VDSH."""
    X, labels = counts
    other = untidy(X)
    before = [array.copy() for array in (other.data, other.indices, other.indptr)]
    clean, same = (make(name, epochs=2).fit(A, labels, validation=(A, labels)) for A in (X, other))
    assert (clean.scores(X) == same.scores(other)).all()
    assert (clean.encode(X) == same.encode(other)).all()
    after = (other.data, other.indices, other.indptr)  # the caller's, who did not ask for tidying
    assert all((old == new).all() for old, new in zip(before, after, strict=True))


@every_hasher
def test_a_matrix_of_stored_zeros_is_nothing_to_learn_from(name):
    zeros = csr_array(np.ones((50, 40), np.float32))
    zeros.data[:] = 0
    with pytest.raises(InputError, match="none of the 50 documents has a term"):
        make(name).fit(zeros, ["even", "odd"] * 25)


@every_hasher
def test_empty_and_single_documents_are_hashed(name, counts):
    dense = counts[0].toarray()
    dense[::7] = 0
    hasher = make(name, epochs=2).fit(csr_array(dense), counts[1])
    assert np.isfinite(hasher.scores(dense)).all()
    assert len(np.unique(hasher.encode(dense[::7]), axis=0)) == 1
    assert (hasher.encode(dense[:1]) == hasher.encode(dense)[0]).all()
    with pytest.raises(InputError, match="16 bits need at least 16 documents"):
        make(name).fit(dense[:1], counts[1][:1])


@every_hasher
def test_as_many_documents_as_bits_are_enough(name, counts):
    X, labels = counts[0][:16], counts[1][:16]
    assert np.isfinite(make(name, epochs=2).fit(X, labels).scores(X)).all()


@every_hasher
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_settings_may_be_numpy_scalars(name, real, counts):
    plain = make(name, epochs=2)
    kinds = {int: np.int64, float: real}
    given = {k: kinds.get(type(v), type(v))(v) for k, v in plain.get_params().items() if v}
    hasher = clone(plain).set_params(**given).fit(*counts)
    if real is np.float64:  # a float32 is another number
        assert (hasher.encode(counts[0]) == plain.fit(*counts).encode(counts[0])).all()
    learned = {k: v for k, v in vars(hasher).items() if k.endswith("_")}
    json.dumps({k: v for k, v in learned.items() if not isinstance(v, np.ndarray)})


@every_hasher
def test_a_refit_with_other_settings_is_a_first_fit(name, counts):
    """#16 A6: idf_, D_ and b_decoder_ of the earlier fit stayed, and were saved."""
    X, labels = counts
    other = {"n_bits": 8, "weighting": "binary", **quick(name, epochs=2, decoder_size=0)}
    first = make(name, epochs=1, weighting="tfidf").fit(X, labels, validation=(X, labels))
    again = first.set_params(**other).fit(X[:, 1:], labels)
    fresh = make(name).set_params(**other).fit(X[:, 1:], labels)
    assert vars(again).keys() == vars(fresh).keys()
    assert (again.encode(X[:, 1:]) == fresh.encode(X[:, 1:])).all()


@every_hasher
@pytest.mark.parametrize("threshold", ["sign", "best"])
def test_validation_documents_need_no_labels(name, threshold, counts):
    """#16 A2: VDSH multiplied the labels that were not there."""
    X, labels = counts
    alone, unknown = (
        make(name, epochs=2, threshold=threshold).fit(X, labels, validation=(X[:30], y))
        for y in (None, [None] * 30)
    )
    assert (alone.encode(X) == unknown.encode(X)).all()
    assert alone.calibration_ == {}
    assert getattr(alone, "selected_on_", "") == ""


@every_hasher
@pytest.mark.parametrize("threshold", ["sign", "best"])
@pytest.mark.parametrize("n_labels", [3, 40])
def test_validation_labels_and_documents_must_be_equally_many(name, threshold, n_labels, counts):
    """#16 A3: an IndexError, or none at all."""
    X, labels = counts
    hasher = make(name, epochs=2, threshold=threshold)
    sentence = f"Got 30 validation documents but {n_labels} labels"
    with pytest.raises(InputError, match=sentence):
        hasher.fit(X, labels, validation=(X[:30], labels[:n_labels]))
    if not hasher.supervised:
        with pytest.raises(InputError, match=sentence):
            hasher.fit(X, validation=(X[:30], labels[:n_labels]))


supervised = pytest.mark.parametrize("name", [n for n, kind in HASHERS.items() if kind.supervised])


@supervised
def test_a_supervised_hasher_wants_labels(name, counts):
    with pytest.raises(InputError, match="learns from labels"):
        make(name).fit(counts[0])


@supervised
def test_one_label_only_is_refused(name, counts):
    with pytest.raises(InputError, match="at least two different labels.*Got 1: \\['same'\\]"):
        make(name).fit(counts[0], ["same"] * 80)


@supervised
def test_documents_without_labels_help_training(name, counts):
    X, labels = counts
    some = [label if i < 40 else None for i, label in enumerate(labels)]
    codes = make(name).fit(X, some).encode(X)
    matrix = read_labels(labels).matrix
    assert precision_at(tally(codes, matrix, codes, matrix), 20).mean() > 0.9


@supervised
def test_labels_may_be_many_per_document(name, counts):
    many = [[label, "all"] if i % 3 else [label] for i, label in enumerate(counts[1])]
    hasher = make(name, epochs=1).fit(counts[0], many)
    assert hasher.classes_ == ["all", "space", "sport"]


@supervised
def test_labels_and_documents_must_be_equally_many(name, counts):
    with pytest.raises(InputError, match="80 documents but 3 labels"):
        make(name).fit(counts[0], ["a", "b", "c"])
