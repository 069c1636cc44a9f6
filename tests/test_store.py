import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from vdsh import Document, TextHasher
from vdsh.errors import FolderError, InputError, MissingFileError, WriteError
from vdsh.store import Duplicates, fingerprint, open_store
from vdsh.store import local as local_module

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["vdsh.store"])  # import once, not in every child


def code(number):
    return np.frombuffer(int(number).to_bytes(2, "big"), np.uint8)


def codes_of(*numbers):
    return np.array([code(number) for number in numbers]).reshape(-1, 2)


def doc(id, text="", labels=None, **metadata):
    return Document(id, text, labels, metadata)


def ids(hits):
    return [hit.id for hit in hits]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def store(folder, fitted):
    with open_store(folder, fitted) as store:
        yield store


@pytest.fixture
def years(store):
    """Ten documents, d0 to d9: code = number, year = 1990 + number."""
    documents = [
        doc(f"d{i}", f"text {i}", ("even",) if i % 2 == 0 else ("odd", "all"), year=1990 + i)
        for i in range(10)
    ]
    store.upsert(documents, codes_of(*range(10)))
    return store


def index_files(folder):
    return sorted(folder.glob("index-*.vdsh"))


# -- the life of a document ---------------------------------------------------------------------


def test_what_is_upserted_comes_back(store):
    document = Document("a", "the moon", ("space",), {"year": 1969, "tags": ["x", None], "ü": 1.5})
    assert store.upsert([document]) == 1
    assert store.get("a") == document
    assert store.get("b") is None
    assert store.count() == 1


def test_labels_that_are_unknown_differ_from_no_labels(store):
    store.upsert([doc("a", labels=None), doc("b", labels=())])
    assert store.get("a").labels is None
    assert store.get("b").labels == ()


def test_texts_are_encoded_by_the_model(store, fitted, corpus):
    texts, _ = corpus
    store.upsert([doc(f"{i:03}", text) for i, text in enumerate(texts)])
    (got_ids, codes), *rest = store.codes()
    assert not rest
    assert got_ids == [f"{i:03}" for i in range(len(texts))]
    assert np.array_equal(codes, fitted.encode(texts))
    distances = np.unpackbits(codes ^ fitted.encode(["orbit moon"]), axis=1).sum(axis=1)
    expected = sorted(zip(distances.tolist(), got_ids, strict=True))
    hits = store.search("orbit moon", k=len(texts))
    assert [(hit.distance, hit.id) for hit in hits] == expected


def test_the_same_id_replaces(store):
    store.upsert([doc("a", "old"), doc("b", "b")], codes_of(0, 1))
    store.search(code(0))  # the index is in memory from here on
    store.upsert([doc("a", "new", year=1)], codes_of(0xFFFF))
    assert store.count() == 2
    assert store.get("a") == doc("a", "new", year=1)
    assert [(hit.id, hit.distance) for hit in store.search(code(0))] == [("b", 1), ("a", 16)]


def test_the_last_of_the_same_id_in_a_batch_wins(store):
    assert store.upsert([doc("a", "1"), doc("b"), doc("a", "2")], codes_of(1, 2, 3)) == 3
    assert store.count() == 2
    assert store.get("a").text == "2"
    assert store.search(code(3), k=1)[0].id == "a"


def test_delete_counts_what_was_there(years):
    assert years.delete(["d1", "d2", "unknown", "d1"]) == 2
    assert years.delete([]) == 0
    assert years.count() == 8
    assert "d1" not in ids(years.search(code(1), k=10))


def test_a_deleted_id_can_come_back(years):
    years.search(code(0))
    years.delete(["d3"])
    years.upsert([doc("d3", "again")], codes_of(0x0F))
    assert [(h.id, h.distance, h.text) for h in years.search(code(0x0F), k=1)] == [
        ("d3", 0, "again")
    ]
    assert years.count() == 10


def test_upsert_reads_a_stream_and_reports_each_commit(store, folder, monkeypatch):
    monkeypatch.setattr(local_module, "BATCH", 10)
    seen = []

    def report(n_committed):
        with open_store(folder) as other:
            seen.append((n_committed, other.count()))

    n_written = store.upsert((doc(f"{i:02}") for i in range(25)), progress=report)
    assert n_written == 25
    assert seen == [(10, 10), (20, 20), (25, 25)]


def test_an_error_in_the_stream_keeps_earlier_batches(store, monkeypatch):
    monkeypatch.setattr(local_module, "BATCH", 10)
    documents = [doc(f"{i:02}") for i in range(15)] + [doc("")]
    with pytest.raises(InputError, match="must not be empty"):
        store.upsert(iter(documents))
    assert store.count() == 10


def test_documents_come_in_the_order_of_ids(store):
    names = ["b", "a", "10", "9", "é", "Z", "\U0001f600", "z"]
    store.upsert([doc(name) for name in names])
    batches = list(store.documents(batch_size=3))
    assert [len(batch) for batch in batches] == [3, 3, 2]
    assert [d.id for batch in batches for d in batch] == sorted(names)


def test_info(years, fitted, folder):
    info = years.info()
    assert (info["documents"], info["bits"], info["labels"]) == (10, 16, 3)
    assert info["fields"] == ["year"]
    assert info["model"]["fingerprint"] == fingerprint(fitted)
    assert info["model"]["kept"] == "inside"
    assert info["bytes"] >= (folder / "store.sqlite").stat().st_size


# -- searching ----------------------------------------------------------------------------------


def test_ties_are_broken_by_id(store):
    store.upsert([doc("b"), doc("10"), doc("a"), doc("9")], codes_of(1, 1, 1, 2))
    assert ids(store.search(code(1), k=3)) == ["10", "a", "b"]
    assert ids(store.within(code(1), radius=2)) == ["10", "a", "b", "9"]


def test_a_hit_carries_its_document(years):
    (hit,) = years.search(code(3), k=1)
    expected = ("d3", 0, "text 3", ("odd", "all"), {"year": 1993}, None, code(3).tobytes().hex())
    assert hit == expected


def test_k_larger_than_the_store_returns_all(years):
    assert len(years.search(code(0), k=1000)) == 10
    assert len(years.search(code(0), k=1000, where={"label": "even"})) == 5


def test_an_empty_store_has_empty_answers(store):
    assert store.search(code(0)) == []
    assert store.search("orbit", rank="expected") == []
    assert store.search("orbit", where={"label": "x"}) == []
    assert store.within(code(0), radius=3) == []
    assert list(store.documents()) == list(store.codes()) == list(store.duplicates(1)) == []
    assert store.count() == 0
    assert store.delete(["a"]) == 0
    assert store.info()["documents"] == 0


def test_a_store_emptied_again_has_empty_answers(years):
    years.search(code(0))
    years.delete(f"d{i}" for i in range(10))
    assert years.search(code(0)) == []
    assert years.within(code(0), where={"year": 1990}) == []


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k_must_be_a_positive_number(years, k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1. Got"):
        years.search(code(0), k=k)


def test_a_radius_must_not_be_negative(years):
    with pytest.raises(InputError, match="radius must be a whole number of at least 0. Got -1"):
        years.within(code(0), radius=-1)
    with pytest.raises(InputError, match="radius"):
        years.duplicates(radius=-1)


def test_a_query_of_another_length_is_refused(years):
    with pytest.raises(InputError, match="This store holds 16-bit codes but the query has 64."):
        years.search(np.zeros(8, np.uint8))
    with pytest.raises(InputError, match="This store holds 16-bit codes but the query has 8."):
        years.within(np.zeros(1, np.uint8))


@pytest.mark.parametrize("query", [5, None, b"ab", np.zeros((1, 2), np.uint8), np.zeros(2)])
def test_what_is_neither_text_nor_code_is_refused(years, query):
    with pytest.raises(InputError, match="A query must be a text or a code"):
        years.search(query)


def test_a_common_filter_and_a_rare_one_agree_with_looking_at_all(store):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (3000, 2), dtype=np.uint8)
    documents = [doc(f"{i}", common=i % 2, rare=i % 1000) for i in range(3000)]
    store.upsert(documents, codes)
    distances = np.unpackbits(codes ^ code(77), axis=1).sum(axis=1).tolist()
    for where, passes in [
        ({"common": 1}, lambda i: i % 2 == 1),
        ({"rare": {"<": 3}}, lambda i: i % 1000 < 3),
    ]:
        expected = sorted((distances[i], str(i)) for i in range(3000) if passes(i))
        hits = store.search(code(77), k=20, where=where)
        assert [(hit.distance, hit.id) for hit in hits] == expected[:20]
        hits = store.within(code(77), radius=6, where=where)
        assert [(h.distance, h.id) for h in hits] == [pair for pair in expected if pair[0] <= 6]
        assert store.count(where) == len(expected)


# -- ranking by expected distance -----------------------------------------------------------------


def test_expected_ranking_agrees_with_a_slow_sum(store, fitted, corpus):
    texts, _ = corpus
    store.upsert([doc(f"{i:02}", text) for i, text in enumerate(texts)])
    counts = fitted.vectorizer_.transform(["orbit goal"])
    mu, sigma = fitted.hasher_.posterior(counts)
    from statistics import NormalDist

    z = (mu[0] - fitted.hasher_.thresholds_) / sigma[0]
    chances = [NormalDist().cdf(float(x)) for x in z]
    bits = np.unpackbits(fitted.encode(texts), axis=1)
    query = np.unpackbits(fitted.encode(["orbit goal"])[0])
    slow = []
    for i, row in enumerate(bits):
        expected = sum(1 - p if bit else p for bit, p in zip(row, chances, strict=True))
        slow.append((round(expected, 6), int((row != query).sum()), f"{i:02}"))
    hits = store.search("orbit goal", k=30, rank="expected")
    assert [(round(h.expected, 6), h.distance, h.id) for h in hits] == sorted(slow)[:30]


def test_expected_ranking_needs_a_text_and_a_posterior(years, monkeypatch):
    with pytest.raises(InputError, match='rank="expected" needs a text'):
        years.search(code(0), rank="expected")
    with pytest.raises(InputError, match='rank must be "distance" or "expected". Got \'best\''):
        years.search("orbit", rank="best")
    monkeypatch.delattr("vdsh.hashers.vdsh.VDSH.bit_probabilities")
    with pytest.raises(InputError, match="does not say how sure it is"):
        years.search("orbit", rank="expected")


# -- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ({}, "0123456789"),
        ({"label": "even"}, "02468"),
        ({"labels": "all"}, "13579"),
        ({"label": {"!=": "all"}}, "02468"),
        ({"label": {"in": ["even", "odd"]}}, "0123456789"),
        ({"label": {"in": []}}, ""),
        ({"label": 5}, ""),
        ({"label": "ev"}, ""),
        ({"year": 1993}, "3"),
        ({"year": 1993.0}, "3"),
        ({"year": {">=": 1995, "<": 1997}}, "56"),
        ({"year": {">": 1997}, "label": "even"}, "8"),
        ({"year": {"in": [1990, 1991.0, "1992", None]}}, "01"),
        ({"year": {"!=": 1990}}, "123456789"),
        ({"year": "1993"}, ""),
        ({"year": {"<": "a"}}, ""),
        ({"year": {">": None}}, ""),
        ({"year": True}, ""),
        ({"year": {"<": 10**400}}, "0123456789"),
        ({"id": "d4"}, "4"),
        ({"id": {">=": "d8"}}, "89"),
        ({"id": {"in": ["d1", 2]}}, "1"),
        ({"id": {"!=": 5}}, "0123456789"),
        ({"not": {"year": {"<": 1998}}}, "89"),
        ({"or": [{"year": 1990}, {"id": "d9"}]}, "09"),
        ({"or": []}, ""),
        ({"and": [{"label": "odd"}, {"year": {"<": 1995}}]}, "13"),
        ({"year": np.int64(1993)}, "3"),
    ],
)
def test_filters(years, where, numbers):
    assert ids(years.search(code(0), k=10, where=where)) == [
        hit.id for hit in years.search(code(0), k=10) if hit.id[1] in numbers
    ]
    assert years.count(where) == len(numbers)


def test_a_missing_field_matches_nothing_but_not(store):
    store.upsert([doc("with", year=1), doc("null", year=None), doc("without")])
    assert store.count({"year": {"!=": 5}}) == 2
    assert store.count({"year": None}) == 1
    assert store.count({"year": {"<": 5}}) == 1
    assert store.count({"not": {"year": 1}}) == 2
    assert store.count({"label": {"!=": "x"}}) == 0
    assert store.count({"not": {"label": "x"}}) == 3


def test_truth_values_are_not_numbers(store):
    values = {"true": True, "false": False, "one": 1, "zero": 0, "text": "true"}
    store.upsert([doc(id, x=value) for id, value in values.items()])
    for id, value in values.items():
        assert ids(store.within(code(0), 16, where={"x": value})) == [id]


ODD_NAMES = ['q"uote', "a.b", "$", "ключ", "back\\slash", "new\nline", "nul\x00", "x' OR 1=1 --"]


@pytest.mark.parametrize("name", [*ODD_NAMES, "", "[0]", "a]", '"', "#"])
def test_field_names_of_any_kind(store, name):
    store.upsert([doc("a", **{name: 1}), doc("b", **{name: "x"}), doc("c", **{name + "y": 1})])
    assert ids(store.search("orbit", where={name: 1})) == ["a"]
    assert ids(store.search("orbit", where={name: {">=": "x"}})) == ["b"]
    assert ids(store.search("orbit", where={name: {"!=": 2}})) == ["a", "b"]


@pytest.mark.parametrize("value", ["a\x00b", "'; DROP TABLE documents; --", '"', "é\u2028", "%"])
def test_values_of_any_kind_are_matched_whole(store, value):
    store.upsert([doc("a", labels=(value,), x=value), doc("b", labels=(value[0],), x=value[0])])
    expected = ["a", "b"] if value == value[0] else ["a"]
    assert ids(store.search("orbit", where={"x": value})) == expected
    assert ids(store.search("orbit", where={"label": value})) == expected
    assert store.count() == 2


def test_a_label_is_not_found_across_two_labels(store):
    store.upsert([doc("a", labels=("q,", "r")), doc("b", labels=(", ", ","))])
    assert store.count({"label": ","}) == 1
    assert store.count({"label": ", "}) == 1


def test_an_unknown_field_is_refused_with_close_names(years):
    with pytest.raises(InputError, match="No document has the field 'yeer'. Did you mean 'year'"):
        years.search(code(0), where={"yeer": 1990})
    with pytest.raises(InputError, match="There are: id, label, year"):
        years.count({"or": [{"colour": 1}]})


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("label = 'x'", "A filter must be a dict"),
        ([], "A filter must be a dict"),
        ({"and": {"label": "x"}}, '"and" needs a list of filters'),
        ({"or": ["x"]}, "A filter must be a dict"),
        ({"not": "x"}, "A filter must be a dict"),
        ({"year": {}}, "is empty"),
        ({"year": {"~": 1}}, "cannot be compared by '~'. Use one of = !="),
        ({"year": [1, 2]}, 'Several values: {"in"'),
        ({"year": {"in": 5}}, '"in" needs a list'),
        ({"year": {"in": "abc"}}, '"in" needs a list'),
        ({"year": {"=": {"a": 1}}}, "compared with a text, a number"),
        ({"year": float("nan")}, "NaN"),
        ({"label": {"<": "x"}}, "Labels have no order"),
        ({"label": "\ud83d"}, "not valid Unicode"),
        ({5: 1}, "name must be a string"),
    ],
)
def test_malformed_filters(years, where, sentence):
    with pytest.raises(InputError) as caught:
        years.search(code(0), where=where)
    assert sentence in str(caught.value)


def test_filters_of_any_size(years):
    deep = {"year": 1990}
    for _ in range(100):
        deep = {"not": deep}
    with pytest.raises(InputError, match="nested more than 50 deep"):
        years.count(deep)
    assert years.count({"or": [{"year": 1990 + i} for i in range(3000)]}) == 10
    assert years.count({"id": {"in": [f"d{i}" for i in range(30_000)]}}) == 10
    with pytest.raises(InputError, match="too long"):
        years.count({"id": {"in": [f"d{i}" for i in range(300_000)]}})


# -- near-duplicates ------------------------------------------------------------------------------


def slow_duplicates(pairs, radius):
    """Leader clustering, the most obvious way."""
    left = sorted(pairs)
    while left:
        (leader, first), rest = left[0], left[1:]
        distances = {id: (first ^ number).bit_count() for id, number in rest}
        others = [(id, d) for id, d in distances.items() if d <= radius]
        left = [pair for pair in rest if distances[pair[0]] > radius]
        if others:
            yield Duplicates(leader, sorted(others, key=lambda pair: (pair[1], pair[0])))


@pytest.mark.parametrize("radius", [0, 1, 3, 16])
def test_duplicates_agree_with_a_slow_clustering(store, radius):
    numbers = np.random.default_rng(radius).integers(0, 600, 400).tolist()
    store.upsert([doc(f"{i}") for i in range(400)], codes_of(*numbers))
    pairs = [(f"{i}", number) for i, number in enumerate(numbers)]
    assert list(store.duplicates(radius)) == list(slow_duplicates(pairs, radius))


def test_many_documents_of_few_codes_are_grouped_quickly(store):
    n, rng = 20_000, np.random.default_rng(0)
    store.upsert([doc(f"{i}") for i in range(n)], codes_of(*rng.integers(0, 100, n)))
    for radius in (0, 1, 7):
        groups = list(store.duplicates(radius))
        assert sum(1 + len(group.others) for group in groups) == n
    assert len(groups) == 1


def test_duplicates_may_be_deleted_while_they_are_listed(years):
    for group in years.duplicates(1):
        years.delete([id for id, _ in group.others])
    assert list(years.duplicates(1)) == []


# -- the model ------------------------------------------------------------------------------------


def test_a_store_opens_with_its_own_model(store, folder, fitted, corpus):
    store.upsert([doc("a", "orbit moon")])
    store.close()
    with open_store(folder) as again:
        assert again.search("orbit moon", k=1)[0].distance == 0


def test_a_code_query_never_loads_the_model(years, folder):
    years.close()
    for file in (folder / "model").iterdir():
        file.write_bytes(b"")
    with open_store(folder) as store:
        assert ids(store.search(code(4), k=1)) == ["d4"]
        assert store.count() == 10
        with pytest.raises(FolderError):
            store.search("text")


def test_another_model_is_refused(store, folder, corpus):
    other = TextHasher("vdsh", n_bits=8, epochs=1, hidden_size=8, device="cpu").fit(corpus[0])
    with pytest.raises(InputError, match="was made with another model .16 bits") as caught:
        open_store(folder, other)
    assert "(8 bits" in str(caught.value)
    assert "Open it without a model" in str(caught.value)


def test_the_same_model_is_accepted_from_memory_and_disk(store, folder, fitted, model_folder):
    for hasher in (fitted, model_folder, str(model_folder), folder / "model", None):
        with open_store(folder, hasher) as opened:
            assert opened.count() == 0


def test_a_referenced_model_stays_where_it_is(folder, model_folder):
    with open_store(folder, model_folder, keep_model="reference") as store:
        store.upsert([doc("a", "orbit moon")])
        assert store.info()["model"]["path"] == str(model_folder)
    assert not (folder / "model").exists()
    with open_store(folder) as store:
        assert store.search("orbit moon")[0].distance == 0


def test_a_reference_needs_a_path(folder, fitted):
    with pytest.raises(InputError, match='"reference" needs the path'):
        open_store(folder, fitted, keep_model="reference")
    with pytest.raises(InputError, match="keep_model must be"):
        open_store(folder, fitted, keep_model="outside")


def test_a_model_that_was_exchanged_is_noticed(store, folder, corpus):
    store.close()
    other = TextHasher("vdsh", n_bits=16, epochs=1, hidden_size=8, device="cpu").fit(corpus[0])
    other.save(folder / "model", force=True)
    with open_store(folder) as again, pytest.raises(FolderError, match="is not the one this store"):
        again.search("orbit")


def test_fingerprint_survives_saving_and_sees_every_change(fitted, model_folder):
    loaded = TextHasher.load(model_folder)
    assert fingerprint(loaded) == fingerprint(fitted)
    loaded.hasher_.thresholds_ = loaded.hasher_.thresholds_ + np.float32(1e-6)
    assert fingerprint(loaded) != fingerprint(fitted)
    loaded = TextHasher.load(model_folder)
    loaded.vectorizer_.vocabulary_ = loaded.vectorizer_.vocabulary_[::-1]
    assert fingerprint(loaded) != fingerprint(fitted)


def test_what_is_no_model_is_refused(folder):
    with pytest.raises(InputError, match="hasher must be a TextHasher or the path"):
        open_store(folder, 5)
    with pytest.raises(InputError, match="has not learned anything yet"):
        open_store(folder, TextHasher())
    with pytest.raises(MissingFileError, match="No model at"):
        open_store(folder, folder / "nowhere")


# -- documents that cannot be stored ------------------------------------------------------------


def test_an_id_of_any_form(store):
    names = ["x" * 10_000, "a\x00b", "a\x00c", "a", "7", "007", "7.0", "1e3", "' OR 1", "é", " "]
    store.upsert([doc(name, f"text\x00{i}") for i, name in enumerate(names)])
    assert store.count() == len(names)
    for i, name in enumerate(names):
        assert store.get(name) == doc(name, f"text\x00{i}")
    assert sorted(ids(store.search("orbit", k=20))) == sorted(names)
    assert store.delete(names[:2]) == 2
    assert store.get("a\x00c") is not None


def test_nul_bytes_in_metadata_come_back(store):
    document = doc("a", "b\x00", ("l\x00m",), **{"k\x00": "v\x00w", "list": ["\x00"]})
    store.upsert([document])
    assert store.get("a") == document


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (doc(""), "An id must not be empty"),
        (doc(5), "An id must be a string. Got 5"),
        (doc("half \ud83d"), "not valid Unicode"),
        (doc("bad", 5), "The text of document 'bad' must be a string"),
        (doc("bad", "half \ud83d"), "Document 'bad' is not valid Unicode"),
        (doc("bad", labels="space"), "The labels of document 'bad' must be a tuple"),
        (doc("bad", labels=(1,)), "A label of document 'bad' must be a string"),
        (doc("bad", x=float("nan")), "The metadata of document 'bad' does not fit into JSON"),
        (doc("bad", x={1, 2}), "The metadata of document 'bad' does not fit into JSON"),
        (doc("bad", x=b"bytes"), "The metadata of document 'bad' does not fit into JSON"),
        (doc("bad", x="\ud83d"), "The metadata of document 'bad' does not fit into JSON"),
        (Document("bad", "", None, {1: 2}), "names must be strings"),
        (Document("bad", "", None, "text"), "The metadata of document 'bad'"),
        ({"id": "bad"}, "A store holds Documents. Got dict"),
    ],
)
def test_a_document_that_cannot_be_stored_leaves_nothing_of_its_batch(store, bad, sentence):
    with pytest.raises(InputError) as caught:
        store.upsert([doc("a"), bad, doc("b")])
    assert sentence in str(caught.value)
    assert store.count() == 0
    store.upsert([doc("a")])


def test_codes_must_fit_the_documents(store):
    for codes, sentence in [
        (np.zeros((2, 4), np.uint8), "This store holds 16-bit codes but the new ones have 32."),
        (np.zeros((2, 2)), "codes must be a uint8 array"),
        (np.zeros(2, np.uint8), "codes must be a uint8 array"),
        ([[0, 0], [0, 0]], "codes must be a uint8 array"),
        (np.zeros((3, 2), np.uint8), "There are 3 codes but 2 documents"),
    ]:
        with pytest.raises(InputError, match=sentence):
            store.upsert([doc("a"), doc("b")], codes)
    with pytest.raises(InputError, match="more documents than codes"):
        store.upsert(iter([doc("a"), doc("b")]), codes_of(1))
    assert store.count() == 0
    with pytest.raises(InputError, match="There are 2 codes but only 1 documents"):
        store.upsert(iter([doc("a")]), codes_of(1, 2))


def test_ids_must_be_strings(years):
    with pytest.raises(InputError, match="An id must be a string. Got 5"):
        years.get(5)
    with pytest.raises(InputError, match="An id must be a string. Got 5"):
        years.delete([5])
    with pytest.raises(InputError, match="ids must be a list of ids"):
        years.delete("d1")


# -- places -------------------------------------------------------------------------------------


def test_no_store_there(folder):
    with pytest.raises(MissingFileError, match="No store at"):
        open_store(folder)
    assert not folder.exists()
    with pytest.raises(InputError, match="no store of the kind 'redis'"):
        open_store("redis://somewhere")


def test_a_place_that_is_taken(tmp_path, fitted, model_folder):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(FolderError, match="is a file, but a store is a folder"):
        open_store(file, fitted)
    with pytest.raises(FolderError, match="is not a store: it has no store.sqlite, but notes.txt"):
        open_store(tmp_path, fitted)
    with pytest.raises(FolderError, match="is not a store"):
        open_store(model_folder, fitted)
    assert [f.name for f in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_becomes_a_store(tmp_path, fitted):
    with open_store(tmp_path, fitted) as store:
        assert store.count() == 0


def test_another_sqlite_file_is_not_a_store(folder, fitted):
    folder.mkdir()
    with sqlite3.connect(folder / "store.sqlite") as connection:
        connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(FolderError, match="is an SQLite file but not of a store"):
        open_store(folder, fitted)


def test_a_store_of_a_newer_format(store, folder):
    store.close()
    with sqlite3.connect(folder / "store.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    with pytest.raises(FolderError, match="has format 99; this version reads up to 1. Upgrade"):
        open_store(folder)


def test_making_a_store_can_be_interrupted(folder, fitted):
    folder.mkdir()
    fitted.save(folder / "model")
    (folder / "store.sqlite").touch()
    with pytest.raises(FolderError, match="was never finished"):
        open_store(folder)
    with open_store(folder, fitted) as store:
        store.upsert([doc("a")])
        assert store.count() == 1


def test_a_closed_store_says_so(years):
    years.close()
    years.close()
    with pytest.raises(InputError, match="is closed. Open it again"):
        years.search(code(0))
    with pytest.raises(InputError, match="is closed"):
        years.upsert([doc("a")])


def test_a_corrupt_database_is_left_as_it_is(years, folder):
    years.close()
    file = folder / "store.sqlite"
    whole = file.read_bytes()
    for damaged in (b"not a database" * 1000, whole[:5000], b"\xff" * 200 + whole[200:]):
        file.write_bytes(damaged)
        with pytest.raises(FolderError, match="is damaged.*It was left as it is"):
            open_store(folder).search(code(0))
        assert file.read_bytes() == damaged
    file.write_bytes(whole)
    with open_store(folder) as store:
        assert store.count() == 10


# -- the index file -------------------------------------------------------------------------------


def test_the_index_file_is_used(years, folder, monkeypatch):
    years.close()
    (file,) = index_files(folder)
    assert file.stat().st_mode == (folder / "store.sqlite").stat().st_mode
    monkeypatch.setattr("vdsh.store.mirror.Mirror._build", None)
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=1)) == ["d7"]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "other"])
def test_a_bad_index_file_is_made_anew(years, folder, damage):
    years.close()
    (file,) = index_files(folder)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "flipped":
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    else:
        file.write_bytes({"empty": b"", "cut": content[:-50], "other": b"x" * 999}[damage])
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=2)) == ["d7", "d3"]
        assert len(store.within(code(0), radius=16)) == 10


def test_an_old_index_file_is_brought_up_to_date(years, folder):
    years.close()
    (file,) = index_files(folder)
    old = file.read_bytes()
    with open_store(folder) as store:
        store.upsert([doc("new"), doc("d3")], codes_of(0xFF, 0xF0))
        store.delete(["d5", "new2"])
    for newer in index_files(folder):
        newer.unlink()
    file.write_bytes(old)
    with open_store(folder) as store:
        found = {hit.id: hit.distance for hit in store.search(code(0), k=20)}
        assert found == {f"d{i}": i.bit_count() for i in range(10) if i != 5} | {"new": 8, "d3": 4}


def test_an_index_file_from_the_future_is_forgotten(years, folder):
    """As after an older copy of the database was put back."""
    years.close()
    before = (folder / "store.sqlite").read_bytes()
    with open_store(folder) as store:
        store.upsert([doc(f"lost{i}") for i in range(5)], codes_of(*[7] * 5))
    (folder / "store.sqlite").write_bytes(before)
    with open_store(folder) as store:
        store.upsert([doc(f"kept{i}") for i in range(5)], codes_of(*[7] * 5))
        assert ids(store.search(code(7), k=6)) == ["d7", *(f"kept{i}" for i in range(5))]


def test_a_stranger_s_index_file_is_not_used(years, folder, tmp_path, fitted):
    years.close()
    with open_store(tmp_path / "other", fitted) as other:
        other.upsert([doc(f"x{i}") for i in range(10)], codes_of(*range(10)))
    (file,), (strange,) = index_files(folder), index_files(tmp_path / "other")
    file.unlink()
    (folder / strange.name).write_bytes(strange.read_bytes())
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=1)) == ["d7"]


def test_small_changes_do_not_rewrite_the_index_file(years, folder):
    years.upsert([doc(f"more{i}") for i in range(200)])
    years.close()
    files = index_files(folder)
    with open_store(folder) as store:
        store.delete(["d1"])
        store.search(code(0))
    assert index_files(folder) == files
    with open_store(folder) as store:
        store.delete([f"more{i}" for i in range(100)])
    assert len(index_files(folder)) == 1
    assert index_files(folder) != files


# -- disks and processes ---------------------------------------------------------------------------


def run_python(script, *arguments):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


READ_ONLY = """
import json, os, sys
import numpy as np
from vdsh import Document
from vdsh.errors import VdshError
from vdsh.store import open_store
with open_store(sys.argv[1]) as store:
    store.search(np.zeros(2, np.uint8))  # load all modules while the user may
if os.getuid() == 0:
    os.setuid(65534)
answers = []
with open_store(sys.argv[1]) as store:
    answers += [store.count(), [hit.id for hit in store.search(np.zeros(2, np.uint8), k=2)]]
    answers += [store.info()["read_only"]]
    for change in (lambda: store.upsert([Document("x", "")], np.zeros((1, 2), np.uint8)),
                   lambda: store.delete(["d1"])):
        try:
            change()
        except VdshError as error:
            answers.append(f"{type(error).__name__}: {error}")
print(json.dumps(answers))
"""


def test_a_read_only_folder_can_be_searched(years, folder, tmp_path):
    years.close()
    before = sorted(file.name for file in folder.iterdir())
    for place in (folder, *folder.parents):
        if place.stat().st_uid == os.getuid() and not place.stat().st_mode & 0o005:
            place.chmod(0o755)
    folder.chmod(0o555)
    try:
        count, found, read_only, *refusals = run_python(READ_ONLY, folder)
    finally:
        folder.chmod(0o755)
    assert (count, found, read_only) == (10, ["d0", "d1"], True)
    assert len(refusals) == 2
    assert all(r.startswith("WriteError: ") and "is read-only" in r for r in refusals)
    assert sorted(file.name for file in folder.iterdir()) == before


FULL_DISK = """
import json, resource, sys
import numpy as np
from vdsh import Document
from vdsh.errors import WriteError
from vdsh.store import local, open_store
local.BATCH = 100
documents = (Document(f"{i}", "x" * 1000) for i in range(50_000))
committed = [0]
with open_store(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
    try:
        store.upsert(documents, np.zeros((50_000, 2), np.uint8), progress=committed.append)
    except WriteError as error:
        count = store.count()
        print(json.dumps([str(error), committed[-1], count]))
"""


def test_a_full_disk_keeps_what_was_committed(store, folder):
    store.close()
    sentence, committed, count = run_python(FULL_DISK, folder)
    assert "Could not read or write" in sentence
    assert "What was committed before is kept" in sentence
    assert 0 < committed == count < 50_000
    with open_store(folder) as again:
        assert again.count() == committed
        assert again.get(f"{committed - 1}").text == "x" * 1000
        assert len(again.within(code(0), radius=0)) == committed
        again.upsert([doc("more")])
        assert again.count() == committed + 1


def test_a_second_writer_waits_and_then_says_so(years, folder):
    other = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with open_store(folder, wait=0.1) as store:
        with pytest.raises(WriteError, match="Another process is writing to .* waited 0.1 s"):
            store.upsert([doc("a")])
        assert store.count() == 10  # readers do not wait
        other.execute("COMMIT")
        store.upsert([doc("a")])
    other.close()
    assert years.count() == 11


def write_many(folder, name, n_batches, size):
    with open_store(folder) as store:
        for batch in range(n_batches):
            documents = [doc(f"{name}-{batch}-{i}", batch=batch) for i in range(size)]
            store.upsert(documents, np.full((size, 2), batch, np.uint8))


def test_two_processes_write_and_a_third_reads_whole_batches(store, folder):
    write_many(folder, "first", 1, 40)
    writers = [FORK.Process(target=write_many, args=(folder, name, 25, 40)) for name in "ab"]
    for writer in writers:
        writer.start()
    counts = [0]
    while any(writer.is_alive() for writer in writers):
        counts.append(store.count())
        assert len(store.within(code(0), radius=16)) % 40 == 0
        assert len(store.within(code(0), radius=16, where={"batch": {"<": 5}})) % 40 == 0
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert counts == sorted(counts)
    assert all(count % 40 == 0 for count in counts)
    assert store.count() == len(store.within(code(0), radius=16)) == 51 * 40


def test_threads_may_share_a_store(years):
    failures = []

    def work(number):
        try:
            for i in range(20):
                years.upsert([doc(f"t{number}-{i}")], codes_of(1000 * number + i))
                assert years.search(code(1000 * number + i), k=1)[0].distance == 0
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert years.count() == 10 + 4 * 20


def test_a_person_can_read_the_tables(years, folder):
    connection = sqlite3.connect(folder / "store.sqlite")
    row = connection.execute("SELECT id, labels, metadata FROM documents WHERE id = 'd3'")
    assert row.fetchone() == ("d3", '["odd", "all"]', '{"year":1993}')
    connection.close()
