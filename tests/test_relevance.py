"""What words find, asked of all engines."""

import threading

import numpy as np
import pytest

from engines import code, codes_of, doc, ids
from vdsh.errors import EngineError
from vdsh.store import open_store

# Texts here have words that the model does not know.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

TEXTS = {
    "bolt": "Bolt M8x40 zinc, part 4711-0815",
    "code": "error E0382: borrow of moved value",
    "name": "Sinéad O'Connor sang in Dublin",
    "moon": "the moon is a moon of the earth",
    "rover": "a rover on the red planet mars",
    "planet": "the planet mars is red, tells the rover",
    "chinese": "火星探测器发现水冰",
    "german": "Die Donaudampfschifffahrtsgesellschaft fährt über Fluß und See",
    "sport": "the goal of the season by a player of the team",
}


@pytest.fixture
def store(place, fitted):
    with open_store(place, fitted) as store:
        yield store


@pytest.fixture
def texts(store):
    store.upsert([doc(id, text, year=i) for i, (id, text) in enumerate(TEXTS.items())])
    return store


def every_id(store, query="moon", **options):
    return sorted(ids(store.search(query, k=100, **options)))


# -- words that no model knows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first", "words"),
    [
        ("4711-0815", "bolt", ("4711", "0815")),
        ("e0382", "code", ("e0382",)),
        ("Rust E0382 moved", "code", ("e0382", "moved")),
        ("o'connor", "name", ("o'connor",)),
        ("SINE\u0301AD", "name", ("sinéad",)),
        ("探测器", "chinese", ("探测", "测器")),
        ("fluß fährt", "german", ("fluß", "fährt")),  # as rare as each other
        ("donaudampfschifffahrtsgesellschaft", "german", ("donaudampfschifffahrtsgesellschaft",)),
    ],
)
def test_words_that_the_model_does_not_know_are_found(texts, query, first, words):
    hits = texts.search(query, k=3)
    assert hits[0].id == first
    assert hits[0].words == words
    assert hits[0].score > 0.3


def test_documents_without_the_words_are_only_related_and_come_last(texts):  # 33
    hits = texts.search("red mars", k=9)
    assert [hit.related for hit in hits] == sorted(not hit.words for hit in hits)
    assert all(0 <= hit.score <= 1 for hit in hits)
    strict = texts.search("red mars", k=9, strict=True)
    assert set(ids(strict)) == {"rover", "planet"} == {hit.id for hit in hits if not hit.related}
    with pytest.raises(ValueError, match="needs a text ranked by relevance"):
        texts.search("red mars", rank="distance", strict=True)


def test_words_find_what_is_far_by_code(store, monkeypatch):
    monkeypatch.setattr("vdsh.store.engines.milvus.engine.NEAREST", 20)
    moon = int.from_bytes(store.model.encode(["moon"])[0].tobytes())
    far = doc("far", "moon part x77")
    near = [doc(f"d{i:03}", f"moon {i} zork") for i in range(300)]
    store.upsert([*near, far], codes_of(*[moon] * 300, 65535 - moon))
    assert "far" not in ids(store.search("moon", k=20, rank="distance"))
    for query in ("x77", "moon x77", '"part x77"', "moon x77 -zork"):
        hit = store.search(query, k=1, where={"not": {"label": "none"}})[0]
        assert (hit.id, "x77" in hit.words) == ("far", True)


def test_words_that_no_document_has_are_said(texts):
    hits = texts.search("moon xyzzy e0382 frob")
    assert hits.unknown == ["xyzzy", "frob"]
    assert hits.warning == "In no document, and not known to the model: xyzzy, frob."
    hits = texts.search("xyzzy frob")
    assert (hits, hits.unknown) == ([], ["xyzzy", "frob"])


@pytest.mark.parametrize(
    "query",
    ["' OR ( & | ! : * <-> \\ NEAR", '" OR (', "*", "a\x00b \x01 e0382", "!!! e0382:* & (error",
     "'e0382' | ''", "\\", "e0382\\", "e0382:A", "moon" * 50_000, "moon " * 40_000,
     " ".join(f"word{i}" for i in range(10_000))],
    ids=range(12),
)  # fmt: skip
def test_no_query_is_an_error_of_the_database(texts, query):
    hits = texts.search(query, k=100)
    assert len(hits) <= len(TEXTS)
    assert "e0382" not in query or hits[0].id == "code"


def test_the_most_telling_words_of_a_long_text_count(texts):
    common = " ".join(f"unheard{i}" for i in range(500)) + " moon goal rover"
    assert texts.search(common, k=1)[0].id in ("moon", "rover", "sport")
    assert len(texts.search(common, k=1).unknown) == 500


def test_a_store_without_documents_answers_words(store):
    for query in ("e0382", "moon", '"moon of" -mars', "the of"):
        assert store.search(query) == []


def test_texts_without_words_are_in_nobodys_way(store):
    store.upsert([doc("a", ""), doc("b", "the of ."), doc("c", "\x00")], codes_of(1, 2, 3))
    for query in ("e0382", ".", '"."', "-moon"):
        assert store.search(query) == []
    assert len(store.search("moon")) == 3
    store.upsert([doc("a", "e0382")], codes_of(1))
    assert store.search("e0382", k=1)[0].id == "a"
    store.delete(["a", "b", "c"])
    assert store.search("e0382") == store.search("moon") == []


# -- phrases, and words to leave out ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"red planet"', ["rover"]),
        ('"planet mars"', ["planet", "rover"]),
        ('"moon of the earth"', ["moon"]),
        ('"earth moon"', []),
        ('"red planet" "planet mars"', ["rover"]),
        ('"planet mars" -tells', ["rover"]),
        ('mars -"red planet"', sorted({*TEXTS} - {"rover"})),
        ("moon -planet", sorted({*TEXTS} - {"rover", "planet"})),
        ("mars -xyzzy", sorted(TEXTS)),
        ("mars -探测", sorted({*TEXTS} - {"chinese"})),
        ("mars -o'connor", sorted({*TEXTS} - {"name"})),
    ],
)
def test_phrases_must_be_there_and_words_behind_a_dash_must_not(texts, query, found):
    assert every_id(texts, query) == found


def test_a_question_whose_phrase_nobody_has_is_answered_by_its_words(texts):
    hits = texts.search('mars and the "earth moon"')
    assert "moon" in ids(hits) and all(hit.related for hit in hits)
    assert "No document has the phrase" in hits.warning
    assert texts.search('mars and the "earth moon"', strict=True) == []
    assert texts.search('the "earth moon"').warning is None


def test_phrases_go_with_filters(texts):
    assert every_id(texts, '"planet mars"', where={"year": {">": 4}}) == ["planet"]
    assert every_id(texts, "moon -tells", where={"year": {"<=": 5}}) == [
        "bolt", "code", "moon", "name", "rover",
    ]  # fmt: skip


# -- with the rest of a store ----------------------------------------------------------------------


def test_filters_choose_among_what_words_find(texts):
    hits = texts.search("mars rover", k=100, where={"year": {">=": 5}})
    assert hits[0].id == "planet"
    assert sorted(ids(hits)) == ["chinese", "german", "planet", "sport"]
    assert texts.search("mars", where={"year": 77}) == []


def test_more_than_there_are_are_all(texts):
    assert every_id(texts, "mars") == sorted(TEXTS)


def test_ties_by_words_are_broken_by_id(store):
    same = [doc(id, "frob moon") for id in ("b", "a", "ü", "B", "10", "9")]
    store.upsert(same, codes_of(*[5] * 6))
    for query in ("frob", "frob moon", "moon"):
        hits = store.search(query, k=10)
        assert ids(hits) == ["10", "9", "B", "a", "b", "ü"]
        assert len({hit.score for hit in hits}) == 1
        assert ids(store.search(query, k=2)) == ["10", "9"]


def test_what_is_replaced_or_deleted_changes_what_words_find(texts):
    assert texts.search("e0382", k=1)[0].words == ("e0382",)
    texts.upsert([doc("code", "error E0599: no method found")])
    assert texts.search("e0382").unknown == ["e0382"]
    assert texts.search("e0599", k=1)[0].id == "code"
    texts.delete(["code", "nothing"])
    assert texts.search("e0599").unknown == ["e0599"]
    texts.upsert([doc("code", "again E0382")])
    hits = texts.search("e0382", k=1)
    assert (hits[0].id, hits[0].words) == ("code", ("e0382",))


def test_scores_are_those_of_a_store_made_anew(texts, new_place, fitted):
    texts.upsert([doc(id, "moon " * 30) for id in TEXTS])
    texts.delete(["bolt", "name"])
    texts.upsert([doc(id, text) for id, text in TEXTS.items()])
    with open_store(new_place("local"), fitted) as anew:
        anew.upsert([doc(id, text) for id, text in TEXTS.items()])
        for query in ("mars", "moon rover", "e0382"):
            ours = {hit.id: hit.score for hit in texts.search(query, k=100)}
            theirs = {hit.id: hit.score for hit in anew.search(query, k=100)}
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_words_and_codes_find_the_same_documents(store):  # never by one and not by the other
    rng = np.random.default_rng(3)
    words = ["moon", "goal", *(f"w{i}" for i in range(20))]
    for _ in range(6):
        numbers = rng.choice(60, 25, replace=False)
        some = [doc(f"d{i:02}", " ".join(["all", "frob", *rng.choice(words, 4)])) for i in numbers]
        store.upsert(some, rng.integers(0, 256, (25, 2), dtype=np.uint8))
        store.delete([f"d{i:02}" for i in rng.choice(60, 12, replace=False)])
        by_code = sorted(ids(store.search(code(0), k=100)))
        assert every_id(store, "frob") == every_id(store, "moon") == by_code
        hits = store.search("frob", k=100)
        assert all(hit.words == ("frob",) for hit in hits)
        assert every_id(store, '"all frob"') == by_code


def test_many_queries_at_once_are_answered_one_by_one(texts):
    queries = ["mars", "e0382 moon", '"red planet"', "xyzzy", "mars -rover", "moon"]
    where = {"year": {">": 0}}
    for given in ({}, {"where": where}, {"k": 2}):
        together = texts.search_many(queries, **given)
        for query, hits in zip(queries, together, strict=True):
            alone = texts.search(query, **given)
            assert (hits, hits.unknown, hits.warning) == (alone, alone.unknown, alone.warning)


def test_info_says_how_words_are_found(store, place):
    said = store.info()["words"]
    if place.startswith("milvus"):
        assert said == "all words (Milvus BM25): the 1,000 best and the 1,000 nearest, re-ordered"
    elif place.startswith("postgres"):
        assert said == "all words (PostgreSQL text search, BM25)"
    else:
        assert said == "all words (BM25)"


def test_a_text_of_any_length_is_found_by_its_words(store):
    many = " ".join(f"p{i:06}x" for i in range(90_000))  # more than a tsvector holds
    store.upsert([doc("many", many), doc("long", "moon orbit " * 40_000), doc("other", "moon")])
    assert store.search("p000077x", k=1)[0].id == "many"
    assert sorted(ids(store.search("moon", k=3))) == ["long", "many", "other"]
    assert store.search('"orbit moon"', k=3)[0].id == "long"
    assert store.get("many").text == many


# -- in a server's tables --------------------------------------------------------------------------


@pytest.fixture
def postgres_place(new_place):
    return new_place("postgres")


def random_texts(n, seed):
    rng = np.random.default_rng(seed)
    words = [*"moon orbit goal team o'neill 4711 火星 naïve".split(), *(f"w{i}" for i in range(80))]
    chances = 1 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    sizes = rng.integers(0, 40, n)
    return [" the ".join(rng.choice(words, size, p=chances)) for size in sizes]


QUERIES = [
    "moon", "moon orbit", "w3 w70 moon", "w79", "o'neill 4711", "火星", "naïve w12 w12 w12",
    '"moon the orbit"', '"orbit the moon" w5', "goal -moon", 'team -"the moon"', "w1 -w2 -w3",
    " ".join(f"w{i}" for i in range(60)), "moon " + " ".join(f"w{i % 7}" for i in range(50)),
]  # fmt: skip


@pytest.mark.parametrize("where", [None, {"year": {"<": 150}}, {"year": {">": 230}}])
def test_postgres_ranks_as_a_folder_does(postgres_place, new_place, fitted, where):
    texts = random_texts(240, 0)
    documents = [doc(f"d{i:03}", text, year=i) for i, text in enumerate(texts)]
    codes = np.random.default_rng(1).integers(0, 256, (240, 2), dtype=np.uint8)
    with (
        open_store(postgres_place, fitted) as store,
        open_store(new_place("local"), fitted) as folder,
    ):
        for one in (store, folder):
            one.upsert(documents, codes)
        for query in QUERIES:
            hits = store.search(query, k=240, where=where)
            others = folder.search(query, k=240, where=where)
            assert ids(hits) == ids(others), query
            assert hits.unknown == others.unknown
            scores = [hit.score for hit in hits]
            assert scores == pytest.approx([hit.score for hit in others], abs=1e-9)
            assert hits[:10] == store.search(query, k=10, where=where) or where is None


def test_postgres_counts_words_as_a_folder_does(postgres_place, new_place, fitted):
    documents = [doc(f"d{n:03}", "moon frob " + "zork " * n) for n in range(0, 300)]
    codes = codes_of(*[0] * 300)
    with (
        open_store(postgres_place, fitted) as store,
        open_store(new_place("local"), fitted) as folder,
    ):
        for one in (store, folder):
            one.upsert([*documents, doc("o", "other"), doc("p", "others")], codes_of(*[0] * 302))
        assert len(codes) == 300
        ours = {hit.id: hit.score for hit in store.search("zork", k=302)}
        assert ours == pytest.approx(
            {h.id: h.score for h in folder.search("zork", k=302)}, abs=1e-9
        )


def test_common_words_are_not_looked_for_alone_and_nothing_is_missed(
    postgres_place, new_place, fitted
):
    rng = np.random.default_rng(5)
    texts = [
        " ".join(["common"] * rng.integers(0, 3) + ["rare"] * (i % 8 == 0) * rng.integers(1, 4))
        + " filler" * int(rng.integers(0, 30))
        for i in range(1600)
    ]
    documents = [doc(f"d{i:04}", text) for i, text in enumerate(texts)]
    codes = rng.integers(0, 256, (1600, 2), dtype=np.uint8)
    with (
        open_store(postgres_place, fitted) as store,
        open_store(new_place("local"), fitted) as folder,
    ):
        for one in (store, folder):
            one.upsert(documents, codes)
        for query in ("rare common", "rare", "common", "rare common filler"):
            ours, theirs = store.search(query, k=50), folder.search(query, k=50)
            assert ids(ours) == ids(theirs)
            assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-9)


def test_writers_of_postgres_do_not_hinder_each_other(postgres_place, fitted):
    open_store(postgres_place, fitted).close()
    problems = []

    def write(seed):
        rng = np.random.default_rng(seed)
        try:
            with open_store(postgres_place) as store:
                for round in range(12):
                    numbers = rng.choice(40, 20, replace=False)
                    texts = [f"frob w{seed} r{round} " + "zork " * int(n % 5) for n in numbers]
                    some = [doc(f"d{n}", t) for n, t in zip(numbers, texts, strict=True)]
                    store.upsert(some, codes_of(*numbers))
                    if round % 3 == 2:
                        store.delete([f"d{n}" for n in rng.choice(40, 10, replace=False)])
                    store.search("frob", k=3)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    with open_store(postgres_place) as store:
        documents = [one for page in store.documents() for one in page]
        assert every_id(store, "frob") == sorted(one.id for one in documents)
        lengths = sum(4 * len(one.text.split()) for one in documents)  # all of them in the opening
        assert totals_of(postgres_place) == [(len(documents), lengths)]


def connect(place):
    import psycopg

    url, _, _ = place.partition("?")
    return psycopg.connect(url, autocommit=True)


def table_of(place):
    return place.rpartition("table=")[2]


def totals_of(place):
    with connect(place) as connection:
        query = f"SELECT sum(documents)::int, sum(words)::int FROM {table_of(place)}_totals"
        return connection.execute(query).fetchall()


def test_a_search_that_is_done_again_gives_the_same(postgres_place, fitted, monkeypatch):
    import psycopg

    from vdsh.store.engines.postgres.search import PostgresSearch

    with open_store(postgres_place, fitted) as store:
        store.upsert([doc(id, text) for id, text in TEXTS.items()])
        expected = store.search("moon rover")
        fetch, failed = PostgresSearch.fetch, []

        def fail_once(self, chosen):
            if not failed:
                failed.append(True)
                raise psycopg.errors.SerializationFailure
            return fetch(self, chosen)

        monkeypatch.setattr(PostgresSearch, "fetch", fail_once)
        assert store.search("moon rover") == expected
        assert failed


def test_a_search_sees_words_and_codes_of_one_state(postgres_place, fitted):
    states = [("frob zork", 0), ("frob moon", 65535)]
    with open_store(postgres_place, fitted) as store:
        store.upsert([doc(f"d{i}", states[0][0]) for i in range(30)], codes_of(*[0] * 30))
        stop = threading.Event()

        def write():
            with open_store(postgres_place) as other:
                number = 0
                while not stop.is_set():
                    number += 1
                    text, value = states[number % 2]
                    other.upsert([doc(f"d{i}", text) for i in range(30)], codes_of(*[value] * 30))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(40):
                hits = store.search("zork frob", k=30)
                assert len({(hit.text, hit.code, hit.score) for hit in hits}) == 1
                assert len(hits) == 30
                assert (hits[0].text, int(hits[0].code, 16)) in states
        finally:
            stop.set()
            writer.join()


# -- who may do less -------------------------------------------------------------------------------


def test_who_may_not_read_all_tables_is_told_which_one(new_place, fitted, postgres_server):
    place = new_place("postgres")
    with open_store(place, fitted) as store:
        store.upsert([doc(id, text) for id, text in TEXTS.items()])
    table = table_of(place)
    with connect(place) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        for name in ("", "_meta", "_fields", "_models"):
            connection.execute(f"GRANT SELECT ON {table}{name} TO guest")
    theirs = f"postgresql://guest:guest@127.0.0.1:{postgres_server.port}/plain?table={table}"
    with open_store(theirs) as guest:
        assert guest.find("code") is not None
        with pytest.raises(EngineError, match=f"permission denied for table {table}_totals"):
            guest.search("e0382", k=1)
    with connect(place) as connection:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")


def test_a_server_that_only_reads_is_searched(new_place, fitted):
    place = new_place("postgres")
    with open_store(place, fitted) as store:
        store.upsert([doc(id, text) for id, text in TEXTS.items()])
    readers = place + "&options=-c%20default_transaction_read_only%3Don"
    with open_store(readers) as store:
        assert ids(store.search("e0382", k=1)) == ["code"]
        assert ids(store.search('"red planet"', k=1)) == ["rover"]
