"""What every store must do, asked of all engines."""

import re
import threading
from functools import cache

import numpy as np
import pytest

from engines import code, codes_of, doc, ids
from vdsh import Document, TextHasher
from vdsh.errors import InputError, MissingFileError
from vdsh.model.encoders import Hyperplanes
from vdsh.store import Duplicates, open_store
from vdsh.store import store as store_module

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")


@pytest.fixture
def store(place, fitted):
    with open_store(place, fitted) as store:
        yield store


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(store_module, "BATCH", 10)


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
    hits = store.search("orbit moon", k=len(texts), rank="distance")
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


def test_upsert_reads_a_stream_and_reports_each_commit(store, place, small_batches):
    seen = []

    def report(n_committed):
        with open_store(place) as other:
            seen.append((n_committed, other.count()))

    n_written = store.upsert((doc(f"{i:02}") for i in range(25)), progress=report)
    assert n_written == 25
    assert seen == [(10, 10), (20, 20), (25, 25)]


def test_an_error_in_the_stream_keeps_earlier_batches(store, small_batches):
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


def test_info(years, fitted):
    info = years.info()
    assert (info["documents"], info["bits"], info["labels"]) == (10, 16, 3)
    assert info["fields"] == ["year"]
    assert info["model"]["fingerprint"] == fitted.model_.fingerprint
    assert info["bytes"] > 1000


# -- searching ----------------------------------------------------------------------------------


def test_ties_are_broken_by_id(store):
    store.upsert([doc("b"), doc("10"), doc("a"), doc("9")], codes_of(1, 1, 1, 2))
    assert ids(store.search(code(1), k=3)) == ["10", "a", "b"]
    assert ids(store.within(code(1), radius=2)) == ["10", "a", "b", "9"]


def test_a_hit_carries_its_document(years):
    (hit,) = years.search(code(3), k=1)
    expected = ("d3", 0, "text 3", ("odd", "all"), {"year": 1993}, None, code(3).tobytes().hex())
    assert hit == (*expected, None, (), (0, 0), False, 0)


@pytest.mark.parametrize("where", [None, {"label": "odd"}, {"not": {"year": {"<": 1993}}}])
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_within_at_most_is_the_beginning_of_within(years, limit, where):
    for radius in (0, 1, 2, 16):
        all_of_them = years.within(code(1), radius, where=where)
        hits, total = years.within_at_most(code(1), radius, limit, where=where)
        assert (hits, total) == (all_of_them[:limit], len(all_of_them))


def test_within_at_most_of_nothing(store):
    assert store.within_at_most(code(0), 16, 5) == ([], 0)
    with pytest.raises(InputError, match="limit must be"):
        store.within_at_most(code(0), 16, 0)


def test_k_larger_than_the_store_returns_all(years):
    assert len(years.search(code(0), k=1000)) == 10
    assert len(years.search(code(0), k=1000, where={"label": "even"})) == 5


def test_an_empty_store_has_empty_answers(store):
    assert store.search(code(0)) == []
    assert store.search("orbit", rank="expected") == []
    assert store.search("orbit", where={"label": "x"}) == []
    assert store.within(code(0), radius=3) == []
    assert list(store.documents()) == list(store.codes()) == list(store.duplicates()) == []
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


# -- words that the model does not know (16 D2) ---------------------------------------------------


def test_hits_name_the_words_that_were_not_known(years):
    hits = years.search("moon xyzzy orbit", k=3)
    assert (len(hits), hits.unknown) == (3, ["xyzzy"])
    assert "xyzzy" in hits.warning
    assert years.within("moon xyzzy", 16).unknown == ["xyzzy"]
    assert years.within_at_most("moon xyzzy", 16, 1).hits.unknown == ["xyzzy"]
    for hits in (years.search("the moon"), years.search(code(0))):
        assert (hits.unknown, hits.warning) == ([], None)


@pytest.mark.parametrize(
    ("text", "unknown", "sentence"),
    [
        (
            "xyzzy frob",
            ["xyzzy", "frob"],
            "(No word of the text is known to the model|No document has a word of the text), "
            "so nothing is found: xyzzy, frob",
        ),
        ("the of and", [], "no word that counts"),
        ("", [], "no word that counts"),
    ],
)
def test_a_text_without_a_known_word_finds_nothing_and_says_so(years, text, unknown, sentence):
    every_way = [
        years.search(text),
        years.search(text, rank="distance"),
        years.search(text, rank="expected"),
        years.within(text, radius=16),
        years.within_at_most(text, 16, 5).hits,
    ]
    for hits in every_way:
        assert (hits, hits.unknown) == ([], unknown)
        assert re.search(sentence, hits.warning)
    assert years.within_at_most(text, 16, 5).total == 0
    with pytest.raises(InputError, match="k must be"):
        years.search(text, k=0)


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
    for rank in ("expected", "relevance"):
        with pytest.raises(InputError, match=f'rank="{rank}" needs a text'):
            years.search(code(0), rank=rank)
    with pytest.raises(
        InputError, match='rank must be "relevance", "distance" or "expected". Got \'best\''
    ):
        years.search("orbit", rank="best")
    planes = np.zeros((len(years.model.words), 16), np.float32)
    monkeypatch.setattr(years.model, "encoder", Hyperplanes(planes))
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
        ({"year": {">": None}}, ""),
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


# -- near-duplicates ------------------------------------------------------------------------------


@cache
def pairs_of_words(text):
    words = text.split()
    return {tuple(words[i : i + 2]) for i in range(max(1, len(words) - 1))}


def slow_duplicates(documents, codes, similarity):
    """Leader clustering, the most obvious way."""
    left = sorted(zip(documents, codes.tolist(), strict=True), key=lambda pair: pair[0].id)
    while left:
        (leader, code), rest = left[0], left[1:]
        ours, others = pairs_of_words(leader.text), []
        for document, other in rest:
            theirs = pairs_of_words(document.text)
            similar = len(ours & theirs) / len(ours | theirs)
            distance = sum((a ^ b).bit_count() for a, b in zip(code, other, strict=True))
            if similar >= similarity:
                others.append((document.id, distance, similar))
        taken = {id for id, _, _ in others}
        left = [pair for pair in rest if pair[0].id not in taken]
        if others:
            yield Duplicates(leader.id, sorted(others, key=lambda other: (-other[2], other[0])))


def edited(n, rng):
    """Texts in families: each member is the first with some words exchanged."""
    texts = []
    while len(texts) < n:
        words = rng.integers(0, 1000, rng.integers(1, 60))
        for _ in range(rng.integers(1, 6)):
            changed = np.where(rng.random(len(words)) < rng.choice([0, 0.02, 0.2]), -1, words)
            texts.append(" ".join(f"w{word % 1000}" for word in changed))
    return [doc(f"{i:03}", texts[i]) for i in rng.permutation(n)]


@pytest.mark.parametrize("similarity", [0.8, 1, 0.3])
def test_duplicates_agree_with_a_slow_clustering(store, similarity):  # 16 D1
    rng = np.random.default_rng(0)
    documents = edited(300, rng)
    codes = codes_of(*rng.integers(0, 4, 300))  # nearly all alike, as labels make them
    store.upsert(documents, codes)
    found = list(store.duplicates(similarity=similarity))
    assert found == list(slow_duplicates(documents, codes, similarity))
    assert len(found) > 20


def test_one_code_makes_no_duplicates(years):  # 16 D1: labels put thousands on one code
    years.upsert([doc(f"d{i}", f"text {i}") for i in range(10)], codes_of(*[7] * 10))
    assert list(years.duplicates()) == []


def test_texts_without_words_are_duplicates_where_they_are_the_same(store):
    store.upsert([doc(f"{i}", text) for i, text in enumerate(["...", "!", "", " ...", "", "x"])])
    assert [(g.keep, [id for id, _, _ in g.others]) for g in store.duplicates()] == [
        ("0", ["3"]),
        ("2", ["4"]),
    ]


def test_many_copies_are_grouped_and_few_texts_held(place, fitted, monkeypatch):
    monkeypatch.setattr("vdsh.store.duplicates.REMEMBERED", 50)
    monkeypatch.setattr("vdsh.store.duplicates.FETCHED", 7)
    with open_store(place, fitted) as store:
        texts = [" ".join(f"w{i % 3}{j}" for j in range(20)) for i in range(300)]
        store.upsert([doc(f"{i:03}", text) for i, text in enumerate(texts)])
        groups = list(store.duplicates())
        assert [group.keep for group in groups] == ["000", "001", "002"]
        assert [len(group.others) for group in groups] == [99] * 3


def test_more_copies_than_are_looked_at_together(store, monkeypatch):  # it never ended
    monkeypatch.setattr("vdsh.store.duplicates.TOGETHER", 10)
    texts = ["red moon", "red moon", *["blue rover"] * 30]
    store.upsert([doc(f"{i:02}", text) for i, text in enumerate(texts)])
    groups = [(group.keep, len(group.others)) for group in store.duplicates()]
    assert groups == [("00", 1), ("02", 29)]


def test_duplicates_may_be_deleted_while_they_are_listed(store):
    store.upsert([doc(f"{i:03}", f"the same text number {i % 70}") for i in range(200)])
    for group in store.duplicates():
        store.delete([id for id, _, _ in group.others])
    assert store.count() == 70
    assert list(store.duplicates()) == []


# -- the model ------------------------------------------------------------------------------------


def test_a_store_opens_with_its_own_model(store, place):
    store.upsert([doc("a", "orbit moon")])
    store.close()
    with open_store(place) as again:
        assert again.search("orbit moon", k=1)[0].distance == 0


def test_another_model_is_refused(store, place, corpus):
    other = TextHasher("vdsh", n_bits=8, epochs=1, hidden_size=8, device="cpu").fit(corpus[0])
    with pytest.raises(InputError, match="has the codes of another model .16 bits") as caught:
        open_store(place, other)
    assert "(8 bits" in str(caught.value)
    assert "open it without a model" in str(caught.value)
    assert f"vdsh reindex '{store.info()['path']}' --model MODEL" in str(caught.value)


def test_the_same_model_is_accepted_from_memory_and_disk(store, place, fitted, model_folder):
    for hasher in (fitted, model_folder, str(model_folder), None):
        with open_store(place, hasher) as opened:
            assert opened.count() == 0


def test_what_is_no_model_is_refused(place, tmp_path):
    with pytest.raises(InputError, match="hasher must be a TextHasher, a Model or the path"):
        open_store(place, 5)
    with pytest.raises(InputError, match="has not learned anything yet"):
        open_store(place, TextHasher())
    with pytest.raises(MissingFileError, match="No model at"):
        open_store(place, tmp_path / "nowhere")


# -- documents that cannot be stored ------------------------------------------------------------


def test_an_id_of_any_form(store):
    names = ["x" * 600, "a\u3000b", "a\u3000c", "a", "7", "007", "7.0", "1e3", "' OR 1", "é", " "]
    store.upsert([doc(name, f"text\x00{i}") for i, name in enumerate(names)])
    assert store.count() == len(names)
    for i, name in enumerate(names):
        assert store.get(name) == doc(name, f"text\x00{i}")
    assert sorted(ids(store.search("orbit", k=20))) == sorted(names)
    assert store.delete(names[:2]) == 2
    assert store.get("a\u3000c") is not None


@pytest.mark.parametrize("character", ["\0", "\n", "\r", "\x1b", "\x9b", "\u2029"])
def test_an_id_with_control_characters_is_refused(years, character):  # #31 A4
    with pytest.raises(InputError, match="An id must have no line breaks and no other control"):
        years.upsert([doc(f"a{character}b", "text")])


def nested(levels):
    value = "end"
    for _ in range(levels):
        value = [value]
    return value


def test_metadata_is_nested_100_levels_at_most(years):  # #31 A5
    for levels in (101, 950):
        with pytest.raises(InputError, match="document 'deep' is nested deeper than 100 levels"):
            years.upsert([doc("deep", "orbit", x=nested(levels))])
    years.upsert([doc("deep", "orbit", x=nested(100))])
    assert years.get("deep").metadata == {"x": nested(100)}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": {">": "abc"}}, "match year > 'abc': in documents, 'year' is a number, such as 5"),
        ({"year": "1990"}, "'year' is a number, such as 5. Compare it with such a value"),
        ({"label": "no", "year": True}, "No document can match year = True"),
    ],
)
def test_a_filter_that_nothing_can_match_for_its_form_is_an_error(years, where, message):  # #31 A7
    assert years.count(where) == 0
    for ask in (years.search, years.within):
        with pytest.raises(InputError) as caught:
            ask(code(0), where=where)
        assert message in str(caught.value)


def test_a_filter_that_something_could_match_finds_nothing(years):
    for where in ({"year": -5}, {"year": None}, {"or": [{"year": "x"}]}, {"label": "nobody"}):
        assert years.count(where) == 0 == len(years.search("orbit", where=where))


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


def test_no_store_there(place):
    with pytest.raises(MissingFileError, match="No store at"):
        open_store(place, create=False)
    with pytest.raises(MissingFileError, match="No store at"):  # the first try left nothing
        open_store(place, create=False)


def test_a_closed_store_says_so(years):
    years.close()
    years.close()
    with pytest.raises(InputError, match="is closed. Open it again"):
        years.search(code(0))
    with pytest.raises(InputError, match="is closed"):
        years.upsert([doc("a")])


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
