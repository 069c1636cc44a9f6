"""What `vdsh fit` says about a model (16 D3): beside chance and tf-idf, in words, with warnings."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import QUICK, toy_corpus
from vdsh import Document, TextHasher, open_store
from vdsh.evaluation import Quality, find_faults, measure_quality, yardsticks
from vdsh.evaluation import quality as module
from vdsh.evaluation.quality import hide_halves, thin
from vdsh.paper.protocol import evaluate_codes


@pytest.fixture(scope="module")
def train():
    return toy_corpus(200, seed=1)


@pytest.fixture(scope="module")
def held_out():
    return toy_corpus(40, seed=2)


@pytest.fixture(scope="module")
def hasher(train):
    return TextHasher("vdsh-s", 8, random_state=0, **QUICK).fit(*train)


def test_labels_are_measured_as_the_protocol_does(hasher, train, held_out):
    found = measure_quality(hasher, train, held_out)
    parts = [(hasher.vectorizer_.transform(texts), labels) for texts, labels in (held_out, train)]
    asked, found_among = ((hasher.encode(texts), labels) for texts, labels in (held_out, train))
    codes = evaluate_codes(*asked, *found_among, k=20).means["precision@20"]
    assert found[:4] == ("labels", 20, 40, 200)
    assert found.values == {**yardsticks(*parts, k=20), "codes": codes}
    assert found.values["random"] == 0.5


def test_halves_agree_with_a_slow_search(hasher, train, held_out):
    found = measure_quality(hasher, (train[0], None), (held_out[0], None))
    assert found[:4] == ("halves", 10, 40, 240)
    counts = (hasher.vectorizer_.transform(texts) for texts in (held_out[0], train[0]))
    (queries, _), (documents, _) = hide_halves(*counts)
    bits, others = hasher.hasher_.transform(queries), hasher.hasher_.transform(documents)
    shares = []
    for i, query in enumerate(bits):
        distances = (others != query).sum(axis=1)
        nearer, level = (distances < distances[i]).sum(), (distances == distances[i]).sum()
        shares.append(np.clip((10 - nearer) / level, 0, 1))
    assert found.values["codes"] == pytest.approx(np.mean(shares))
    assert found.values["random"] == pytest.approx(10 / 240)


def test_without_labels_it_is_said_what_a_search_by_words_and_codes_finds(
    hasher, train, held_out, tmp_path
):  # #31 C7
    asked = [f"{text} {text}" for text in held_out[0]]  # so that its halves share words
    found = measure_quality(hasher, (train[0], None), (asked, None)).values
    counts = (hasher.vectorizer_.transform(texts) for texts in (asked, train[0]))
    (queries, _), (documents, _) = hide_halves(*counts)
    words = hasher.vectorizer_.get_feature_names_out()
    one, two = (
        [" ".join(np.repeat(words, row)) for row in part.toarray()] for part in (queries, documents)
    )
    with open_store(tmp_path / "store", hasher) as store:
        store.upsert([Document(f"d{i:03}", text) for i, text in enumerate(two)])
        hits = [{hit.id for hit in store.search(text, k=10)} for text in one]
    assert found["words and codes"] == np.mean([f"d{i:03}" in ids for i, ids in enumerate(hits)])
    assert found["words and codes"] > found["codes"]


@pytest.mark.parametrize("both, warned", [(0.7, False), (0.48, False), (0.4, True)])
def test_codes_that_lose_alone_are_no_fault_where_words_and_codes_win(hasher, both, warned):
    values = {"random": 0.1, "exact tf-idf cosine": 0.5, "codes": 0.3, "words and codes": both}
    faults = find_faults(hasher, Quality("halves", 10, 500, 5000, values, 1))
    assert any("words and codes together" in fault for fault in faults) is warned  # #31 C7


def test_halves_share_out_every_occurrence_and_leave_out_short_documents():
    counts = csr_array(np.array([[2, 0, 3, 1], [0, 1, 0, 0], [0, 0, 0, 4]], np.int32))
    (one, same), (hidden, labels) = hide_halves(counts, counts[:1])
    assert (one + hidden[:2]).toarray().tolist() == counts[[0, 2]].toarray().tolist()
    assert one.sum(axis=1).tolist() == [3, 2]
    assert hidden[2:].toarray().tolist() == counts[:1].toarray().tolist()
    assert same.tolist() == labels[:2].tolist() == [[1, 0], [0, 1]]


def test_long_documents_are_measured_by_some_of_their_words():
    counts = csr_array(np.array([[60, 0, 30, 10], [0, 3, 0, 7], [0, 0, 0, 0]], np.int32))
    found = thin(counts, 10)
    assert found.toarray().tolist() == [[6, 0, 3, 1], [0, 3, 0, 7], [0, 0, 0, 0]]
    rng = np.random.RandomState(0)
    many = csr_array(rng.poisson(0.3, (50, 4000)).astype(np.int32))
    assert (thin(many).sum(axis=1) > 500 - 2).all()
    assert (thin(many).sum(axis=1) <= 500).all()
    assert (thin(many) > many).nnz == 0


def test_few_labels_count_as_none_and_nothing_to_ask_is_no_number(hasher, train, held_out):
    labels = [*held_out[1][:19], *[None] * 21]
    assert measure_quality(hasher, train, (held_out[0], labels)).measure == "halves"
    assert measure_quality(hasher, (train[0], None), (["moon", "xyzzy"], None)) is None


def test_large_corpora_are_sampled(hasher, train, held_out, monkeypatch):
    monkeypatch.setattr(module, "MOST_QUERIES", 25)
    monkeypatch.setattr(module, "MOST_DOCUMENTS", 50)
    for labelled in (1, 2):
        parts = ((part[0], part[1] if labelled == 1 else None) for part in (train, held_out))
        found = measure_quality(hasher, *parts)
        assert (found.queries, found.documents) == (25, 50 if labelled == 1 else 75)


@pytest.mark.parametrize(
    ("n_documents", "tfidf", "tied", "words"),
    [
        (80, 0.3, 5, []),
        (79, 0.3, 5, ["79 documents are few for 8 bits"]),
        (5000, 0.6, 5, ["Exact tf-idf does better"]),
        (5000, 0.3, 120, ["Ties decide"]),
        (79, 0.6, 120, ["few for 8 bits", "tf-idf", "Ties decide"]),
    ],
)
def test_a_fault_is_a_sentence(hasher, n_documents, tfidf, tied, words, monkeypatch):
    monkeypatch.setitem(hasher.model_.training, "documents", n_documents)
    values = {"random": 0.1, "exact tf-idf cosine": tfidf, "codes": 0.5}
    faults = find_faults(hasher, Quality("labels", 100, 500, 5000, values, tied))
    assert len(faults) == len(words)
    assert all(word in fault for word, fault in zip(words, faults, strict=True))


@pytest.mark.parametrize("labelled", [True, False])
def test_fit_prints_what_json_and_card_have(labelled, vdsh, train, tmp_path):
    rows = [{"text": t} | ({"labels": y} if labelled else {}) for t, y in zip(*train, strict=True)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = ("d.jsonl", "--model", "lsh", "--bits", 32, "--set", "threshold=median")
    printed = vdsh("fit", *options, "--out", "m")
    assert ("Precision at 18 of 20 held-out" in printed.stdout) is labelled
    assert ("finds its other half among the 10 nearest of 200" in printed.stdout) is not labelled
    assert "nats" not in printed.stdout
    assert "Warning: 180 documents are few for 32 bits" in printed.stderr
    quality = json.loads(vdsh("fit", *options, "--out", "n", "--json").stdout)["quality"]
    card = (tmp_path / "m" / "README.md").read_text()
    for name, value in quality["values"].items():
        assert f"  {name:<20} {value:.3f}" in printed.stdout
        assert f"{name} {value:.3f}" in card
    for warning in quality["warnings"]:
        assert f"Warning: {warning}\n" in printed.stderr
        assert f"- Warning: {warning}\n" in card
