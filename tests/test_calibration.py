"""Thresholds chosen for the classes, and models that get new ones."""

from itertools import product

import numpy as np
import pytest

from conftest import quick, toy_corpus
from vdsh import TextHasher
from vdsh.codes import binarize, pack, thresholds
from vdsh.hashers import HASHERS
from vdsh.hashers.thresholds import best_thresholds, calibrate, candidates
from vdsh.labels import read_labels
from vdsh.metrics.by_threshold import Judged, ValidationSearch, choose_k, some_known
from vdsh.metrics.ranking import precision_at, tally


def judged(n_docs, shares, n_bits=8, noise=0.5, seed=0):
    """Scores in which each class has its own mean, and classes are as large as `shares` say."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(5).choice([-1.0, 1.0], (len(shares), n_bits))
    classes = rng.choice(len(shares), n_docs, p=shares)
    scores = means[classes] + noise * rng.normal(size=(n_docs, n_bits))
    return Judged(scores.astype(np.float32), np.eye(len(shares), dtype=np.uint8)[classes])


def slow_precision(search, cut):
    codes, queries = (
        pack(binarize(part.scores, cut)) for part in (search.documents, search.queries)
    )
    labels = search.queries.labels, search.documents.labels
    return precision_at(tally(queries, labels[0], codes, labels[1]), search.k)


@pytest.mark.parametrize("n_bits", [8, 24, 72, 256])
@pytest.mark.parametrize("k", [1, 20, 1000])
def test_a_candidate_is_measured_as_metrics_would(n_bits, k):
    sides = (judged(n, [0.5, 0.3, 0.2], n_bits, seed=seed) for n, seed in ((150, 0), (40, 1)))
    search = ValidationSearch(*sides, k=k)
    cut = thresholds(search.documents.scores, "median")
    places, bit = search.places(cut), 5
    choices = np.unique(candidates(search.documents.scores)[:, bit])
    found = search.candidate_precision(places, bit, cut, choices)
    for choice, precision in zip(choices, found.T, strict=True):
        changed = cut.copy()
        changed[bit] = choice
        assert np.allclose(precision, slow_precision(search, changed))
        assert np.isclose(search.precision(changed), slow_precision(search, changed).mean())


@pytest.mark.parametrize("plain", ["median", "sign"])
def test_a_handful_of_queries_chooses_nothing(plain):
    documents = judged(200, [0.8, 0.2])
    for n_queries, is_plain in ((19, True), (60, False)):
        search = ValidationSearch(documents, judged(n_queries, [0.8, 0.2], noise=2.0, seed=1))
        cut, measured = calibrate(documents.scores, "best", search, plain=plain)
        assert (cut == thresholds(documents.scores, plain)).all() == is_plain
        assert measured["after"] >= measured["before"]


@pytest.mark.parametrize("n_queries", [0, 5, 60])
def test_no_bit_of_best_thresholds_is_the_same_for_all_documents(n_queries):
    documents = judged(200, [0.6, 0.4])
    documents.scores[:, 2] += 10  # on one side of 0, where its sign says nothing
    queries = judged(n_queries, [0.6, 0.4], seed=1) if n_queries else None
    if queries is not None:
        queries.scores[:, 2] += 10
    search = None if queries is None else ValidationSearch(documents, queries)
    cut, _ = calibrate(documents.scores, "best", search, plain="sign")
    ones = binarize(documents.scores, cut).mean(axis=0)
    assert ((ones > 0.01) & (ones < 0.99)).all()
    assert binarize(documents.scores, thresholds(documents.scores, "sign"))[:, 2].all()


def test_moving_a_threshold_keeps_the_distances_true():
    search = ValidationSearch(judged(60, [0.7, 0.3]), judged(30, [0.7, 0.3], seed=1))
    cut = thresholds(search.documents.scores, "median")
    places, old = search.places(cut), cut[3]
    cut[3] = np.float32(0.7)
    search.move(places, 3, old, cut[3])
    assert (places == search.places(cut)).all()


def test_ascent_finds_what_all_combinations_contain():
    documents, queries = (judged(n, [0.1, 0.9], 2, noise=1.0, seed=n) for n in (80, 60))
    search = ValidationSearch(documents, queries, k=10)
    every = [np.array(cut, np.float32) for cut in product(*candidates(documents.scores).T)]
    precisions = [search.precision(cut) for cut in every]
    best, worst = max(precisions), min(precisions)
    found = search.precision(best_thresholds(documents.scores, search, errors=0))
    assert found <= best
    assert found > best - 0.05 * (best - worst)


@pytest.mark.parametrize("seed", range(5))
def test_best_is_never_worse_than_median_and_sign_on_validation(seed):
    search = ValidationSearch(
        judged(300, [0.6, 0.3, 0.1], noise=1.5, seed=seed),
        judged(100, [0.6, 0.3, 0.1], noise=1.5, seed=seed + 10),
        k=20,
    )
    scores = search.documents.scores
    best = search.precision(best_thresholds(scores, search))
    assert best >= max(search.precision(thresholds(scores, name)) for name in ("median", "sign"))


def test_a_class_of_a_tenth_gets_a_better_cut_than_the_median():
    shares = [0.1, 0.9]
    train, queries, test = (judged(n, shares, seed=n) for n in (1000, 200, 300))
    search = ValidationSearch(train, queries)
    cut = best_thresholds(train.scores, search)
    unseen = ValidationSearch(train, test)
    assert unseen.precision(cut) > unseen.precision(thresholds(train.scores, "median")) + 0.02
    assert unseen.precision(cut) > 0.98


def test_the_choice_is_the_same_every_time():
    search = ValidationSearch(
        judged(300, [0.2, 0.8], noise=1), judged(100, [0.2, 0.8], noise=1, seed=1)
    )
    first, second = (best_thresholds(search.documents.scores, search) for _ in range(2))
    assert (first == second).all()


def test_scores_without_labels_of_any_use_move_few_thresholds():
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n, 32)).astype(np.float32) for n in (500, 100)]
    labels = [np.eye(4, dtype=np.uint8)[rng.integers(4, size=len(part))] for part in scores]
    search = ValidationSearch(*(Judged(*part) for part in zip(scores, labels, strict=True)))
    careful, greedy = (
        (best_thresholds(scores[0], search, errors=errors)[:, None] != np.stack(
            [thresholds(scores[0], name) for name in ("median", "sign")], 1)).all(axis=1).sum()
        for errors in (3.0, 0.0)
    )  # fmt: skip
    assert careful < 6 < greedy


def test_only_labelled_documents_are_judged_and_at_most_so_many():
    scores = np.arange(80, dtype=np.float32).reshape(10, 8)
    labels = read_labels([None, "a"] * 5)
    assert some_known(labels, 100).tolist() == [1, 3, 5, 7, 9]
    assert len(some_known(labels, 3)) == 3
    assert ValidationSearch.of(scores, labels, scores, read_labels([None] * 10)) is None
    assert ValidationSearch.of(scores, None, scores, labels) is None


def unbalanced(seed):
    """A toy corpus in which a quarter of the texts is about space."""
    texts, labels = toy_corpus(320, seed)
    rows = [i for i in range(320) if labels[i] == "sport" or i % 6 == 0]
    return [texts[i] for i in rows], [labels[i] for i in rows]


@pytest.mark.parametrize("model", HASHERS)
def test_every_hasher_can_choose_the_best_thresholds_and_keeps_them(model, tmp_path):
    (texts, labels), validation = unbalanced(0), unbalanced(1)
    hasher = TextHasher(model, 8, random_state=0, **quick(model) | {"threshold": "best"})
    hasher.fit(texts, labels, validation=validation)
    measured = hasher.hasher_.calibration_
    assert measured["after"] >= measured["before"]
    hasher.save(tmp_path / "m")
    loaded = TextHasher.load(tmp_path / "m")
    assert (loaded.encode(texts) == hasher.encode(texts)).all()
    assert np.allclose(hasher.transform(texts).mean(axis=0), loaded.hasher_.bit_balance_)
    assert loaded.get_params()["threshold"] == loaded.hasher_.threshold == "best"
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"best thresholds; precision on validation documents {measured['after']:.3f}" in card


def test_fit_chooses_the_best_thresholds_on_validation():
    (texts, labels), validation = unbalanced(0), unbalanced(1)
    hashers = [
        TextHasher("lsh", 8, random_state=0, threshold=threshold).fit(
            texts, labels, validation=validation
        )
        for threshold in ("median", "best")
    ]
    asked, known = read_labels(validation[1]).matrix, read_labels(labels).matrix
    counts = [
        tally(hasher.encode(validation[0]), asked, hasher.encode(texts), known)
        for hasher in hashers
    ]
    median, best = (precision_at(each, choose_k(len(texts))).mean() for each in counts)
    assert best > median
    assert hashers[1].hasher_.calibration_ == pytest.approx({"before": median, "after": best})


def test_a_network_is_judged_by_the_better_of_median_and_sign_while_it_trains(corpus):
    texts, labels = corpus
    parts = {"validation": (texts[60:], labels[60:])}
    median, sign, best = (
        [
            epoch["validation"]
            for epoch in TextHasher("vdsh", 8, random_state=0, threshold=name, **quick("vdsh"))
            .fit(texts[:60], labels[:60], **parts)
            .hasher_.history_
        ]
        for name in ("median", "sign", "best")
    )
    n_epochs = min(map(len, (median, sign, best)))  # patience may end one of them earlier
    assert best[:n_epochs] == list(map(max, median[:n_epochs], sign[:n_epochs]))


def test_fit_without_validation_labels_takes_the_median_and_says_so(corpus, tmp_path):
    texts, labels = corpus
    hasher = TextHasher("lsh", 8, random_state=0, threshold="best")
    median = TextHasher("lsh", 8, random_state=0).fit(texts).hasher_.thresholds_
    for given in ({"labels": labels}, {"validation": (texts[:9], labels[:9])}):
        hasher.fit(texts, **given)
        assert (hasher.hasher_.thresholds_ == median).all()
    hasher.save(tmp_path / "m")
    assert "median thresholds: there were no labels" in (tmp_path / "m" / "README.md").read_text()
