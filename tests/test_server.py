"""The service without a socket: what it answers, what it refuses, and what it says about itself."""

import asyncio
import json
import logging
import re
import sqlite3
from contextlib import closing, contextmanager, suppress
from functools import partial
from urllib.parse import quote

import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import positive_data_acceptance

from conftest import toy_corpus
from vdsh import Document, TextHasher, open_store
from vdsh.codes import to_hex, unpack
from vdsh.errors import VdshError
from vdsh.retrieval.query import encode_texts, read_words
from vdsh.server.app import create_app
from vdsh.server.asked import read_query
from vdsh.server.bodies import Limits, SearchBody, SearchManyBody
from vdsh.server.pool import StorePool
from vdsh.server.routes import search, search_many
from vdsh.server.run import JsonLines
from vdsh.server.service import EXAMPLES, make_services, opened
from vdsh.server.tokens import Token, read_tokens

TOKEN = "correct-horse-battery-staple"
CODE = np.array([[7, 200]], np.uint8)
SCRIPT = "<script>alert('orbit')</script> moon"
ODD_IDS = [
    "a/b",
    "/etc/passwd",
    "a//b",
    "ü ñ 世界 🚀",
    "?x=1#y",
    "..x",
    "wide\u3000space",
    "+ +",
]


def fill(path, hasher):
    texts, labels = toy_corpus()
    documents = [
        Document(f"d{i}", text, (label,), {"year": 1980 + i})
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    with open_store(path, hasher) as store:
        store.upsert([*documents, Document("script", SCRIPT, None, {})])
    return path


@pytest.fixture(scope="module")
def store(fitted, tmp_path_factory):
    """A store that tests only read."""
    return fill(tmp_path_factory.mktemp("served") / "store", fitted)


@pytest.fixture
def own_store(fitted, tmp_path):
    return fill(tmp_path / "store", fitted)


def client(store, **options):
    app = create_app(store, **options)
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def api(store):
    with client(store) as opened:
        yield opened


@pytest.fixture
def editor(own_store):
    with client(own_store, writable=True) as opened:
        yield opened


def refused(answer, status, *words):
    """Check that an error is one sentence, in JSON, with these words."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error", "code"]
    sentence = answer.json()["error"]
    assert all(word in sentence for word in words), sentence
    return True


# What it answers


def test_info_describes_store_model_and_limits(api):
    facts = api.get("/v1/info").json()
    assert facts["documents"] == 81
    assert facts["bits"] == facts["model"]["bits"] == 16
    assert facts["model"]["name"] == "vdsh-s"
    assert facts["labels"] == ["space", "sport"]
    assert facts["fields"] == ["year"]
    assert facts["writable"] is False
    assert facts["map"] is False
    assert facts["limits"] == Limits()._asdict()
    assert facts["limits"]["body"] == 2**22
    assert facts["examples"] == []


def test_info_says_how_words_are_searched(api, store):
    with open_store(store) as opened:
        said = opened.info().get("words")
    assert said and api.get("/v1/info").json()["words"] == said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"how to sort a list\n\n  read a csv file \n", ["how to sort a list", "read a csv file"]),
        (b"x" * 1000, ["x" * 200]),
        (b"a\n" * 100, ["a"] * 8),
        (b"\xff\xfe", []),
        (b"", []),
        ("größe \U0001f680".encode(), ["größe \U0001f680"]),
    ],
)
def test_a_store_may_have_examples_to_try(own_store, api_of, content, found):
    (own_store / EXAMPLES).write_bytes(content)
    assert api_of(own_store).get("/v1/info").json()["examples"] == found


def test_search_gives_the_lines_of_the_command_line(api, store):
    body = {"text": "rocket moon orbit", "k": 3, "where": {"label": "space"}}
    answer = api.post("/v1/search", json=body)
    with open_store(store) as opened:
        hits = opened.search("rocket moon orbit", k=3, where={"label": "space"})
        code = to_hex(opened.model.encode(["rocket moon orbit"]))[0]
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"code": code, "hits": lines(hits)}


def lines(hits):
    return json.loads(json.dumps([hit.as_fields() for hit in hits]))


def ask(api, path="search", **body):
    answer = api.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_search_by_code_and_by_id(api):
    document = api.get("/v1/documents/d4").json()
    by_id = ask(api, id="d4", k=5, rank="distance")
    assert by_id["code"] == document["code"]
    assert by_id == ask(api, code=document["code"], k=5) == ask(api, code=by_id["code"], k=5,
                                                                rank="distance")  # fmt: skip
    assert by_id["hits"][0]["distance"] == 0 and "score" not in by_id["hits"][0]
    assert refused(api.post("/v1/search", json={"id": "none"}), 404, "no document 'none'")
    answer = api.post("/v1/search", json={"code": document["code"], "rank": "relevance"})
    assert refused(answer, 422, 'rank="relevance" needs a text')


def test_more_like_a_document_looks_for_all_its_words_and_its_stored_code(editor, own_store):
    with open_store(own_store) as opened:
        opened.upsert([Document("odd", 'goal "match" -moon', None)], codes=CODE)
        opened.upsert([Document("blank", "", None)], codes=CODE)
        text = opened.get("d4").text
        alike = opened.search(text, k=5, where={"year": {">=": 0}})
    assert ask(editor, id="d4", k=5, where={"year": {">=": 0}})["hits"] == lines(alike)
    for rank in (None, "expected", "distance"):
        assert ask(editor, id="d4", k=100, rank=rank)["hits"][0]["distance"] == 0
    odd = ask(editor, id="odd", k=3)
    assert odd["code"] == to_hex(CODE)[0]
    assert (odd["hits"][0]["id"], odd["hits"][0]["words"]) == ("odd", ["goal", "match", "moon"])
    blank = ask(editor, id="blank", k=100)  # no words at all: found by its code
    assert "warning" not in blank
    assert "blank" in [hit["id"] for hit in blank["hits"] if hit["distance"] == 0]


def test_search_ranks_by_relevance_unless_told_otherwise(api, store):
    body = {"text": "rocket moon xyzzy", "k": 7}
    with open_store(store) as opened:
        for rank in ("relevance", "distance", "expected"):
            hits = opened.search(body["text"], k=7, rank=rank)
            answer = ask(api, **body, rank=rank)
            assert answer["hits"] == lines(hits) and answer["unknown"] == ["xyzzy"]
    best = ask(api, **body)
    assert best == ask(api, **body, rank="relevance") == ask(api, **body, rank=None)
    assert best["hits"][0]["words"] == ["rocket", "moon"]
    scores = [hit["score"] for hit in best["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_phrases_and_words_to_leave_out(api, store):
    texts = {f"d{i}": text for i, text in enumerate(toy_corpus()[0])} | {"script": SCRIPT}
    found = ask(api, text="moon -orbit", k=100)["hits"]
    assert {hit["id"] for hit in found} == {id for id in texts if "orbit" not in texts[id]}
    phrase = " ".join(texts["d0"].split()[:2])
    found = ask(api, text=f'"{phrase}"', k=100)["hits"]
    assert {hit["id"] for hit in found} == {id for id in texts if phrase in texts[id]}
    near = ask(api, "within", text="moon -orbit", radius=16)
    assert near["total"] == len(near["hits"]) == len(texts), "signs mean nothing to a radius"
    typed = ask(api, text="moon -orbit", highlight=True)
    plain = ask(api, text="moon", highlight=True)
    assert typed["code"] == plain["code"] and typed["explanation"] == plain["explanation"]
    marked = [hit["text"][i:j] for hit in typed["hits"] for i, j, own in hit["marks"] if own]
    assert set(marked) == {"moon"}


def test_search_ranks_by_expected_distance(api):
    hits = ask(api, text="rocket moon orbit", k=5, rank="expected")["hits"]
    expected = [hit["expected"] for hit in hits]
    assert expected == sorted(expected)
    answer = api.post("/v1/search", json={"code": "0000", "rank": "expected"})
    assert refused(answer, 422, 'rank="expected" needs a text')


@pytest.mark.parametrize("rank", [None, "distance", "expected"])
def test_many_texts_are_answered_in_one_call_as_each_alone(api, rank):
    texts = ["rocket moon orbit", "xyzzy", "goal -match", "the of", '"', "goal xyzzy"]
    more = {"k": 3, "where": {"year": {">": 1990}}, "rank": rank}
    alone = [ask(api, text=text, **more) for text in texts]
    assert ask(api, "search_many", texts=texts, **more) == {"answers": alone}
    assert ask(api, "search_many", texts=[]) == {"answers": []}


def test_many_texts_may_find_no_more_than_one_search(api):
    answer = api.post("/v1/search_many", json={"texts": ["moon"] * 101})
    assert refused(answer, 422, "k times the number of texts must be at most 1,000. Got 1,010.")
    answer = api.post("/v1/search_many", json={"texts": ["moon"] * 1001, "k": 1})
    assert refused(answer, 422, "The number of texts must be at most 1,000. Got 1,001.")
    assert len(ask(api, "search_many", texts=["moon"] * 1000, k=1)["answers"]) == 1000


def test_a_text_without_a_known_word_finds_nothing_and_says_so(api):  # 16 D2
    for path, more in (
        ("search", {}),
        ("search", {"rank": "expected"}),
        ("within", {"radius": 16}),
    ):
        answer = api.post(f"/v1/{path}", json={"text": "xyzzy", **more}).json()
        assert (answer["hits"], answer["unknown"], answer.get("total", 0)) == ([], ["xyzzy"], 0)
        by_words = path == "search" and not more
        said = "No document has a word of the text" if by_words else "No word of the text is known"
        assert said in answer["warning"]


@pytest.mark.parametrize("path", ["search", "within"])
def test_an_answer_names_the_words_that_were_not_known(api, path):  # 16 D2
    known = api.post(f"/v1/{path}", json={"text": "rocket moon orbit"}).json()
    some = api.post(f"/v1/{path}", json={"text": "rocket moon xyzzy orbit"}).json()
    assert not {"unknown", "warning"} & set(known)
    assert some == known | {"unknown": ["xyzzy"], "warning": some["warning"]}
    assert "xyzzy" in some["warning"]


def test_within_counts_all_and_gives_the_nearest(api, store):
    with open_store(store) as opened:
        hits = opened.within("rocket moon orbit", radius=6)
    answer = api.post(
        "/v1/within", json={"text": "rocket moon orbit", "radius": 6, "limit": 2}
    ).json()
    assert answer["total"] == len(hits) > 2
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits[:2]]


def test_facets_count_labels_and_small_fields_under_a_filter(api):
    counted = {
        one["field"]: one["values"] for one in api.post("/v1/facets", json={}).json()["facets"]
    }
    for field, values in counted.items():
        for one in values:
            where = {field: one["value"]}
            assert api.post("/v1/count", json={"where": where}).json() == {"count": one["count"]}
    assert {"space", "sport"} <= {one["value"] for one in counted["label"]}
    answer = api.post("/v1/facets", json={"where": {"label": "sport"}}).json()
    assert [one["value"] for one in answer["facets"][0]["values"]] == ["sport"]
    assert api.post("/v1/facets", json={"where": {"colour": 1}}).status_code == 422


def test_the_last_word_of_a_text_may_be_unfinished(api):
    def ask(text, **more):
        return api.post("/v1/search", json={"text": text, **more}).json()

    assert ask("crew rock", unfinished=True)["meant"] == {"rock": "rocket"}
    assert "meant" not in ask("crew rock ", unfinished=True)
    assert "rocket" in ask("crew rock", unfinished=True)["hits"][0]["words"]


def test_encode_gives_the_codes_of_the_library(api, fitted):
    texts = ["rocket moon orbit", "goal match"]
    answer = api.post("/v1/encode", json={"texts": texts}).json()
    assert answer == {"codes": to_hex(fitted.encode(texts)), "bits": 16}
    assert api.post("/v1/encode", json={"texts": []}).json() == {"codes": [], "bits": 16}


def test_texts_that_wait_together_get_the_codes_they_get_alone(store, fitted):
    texts = ["moon " * n + word for n, word in enumerate(["orbit", "goal", "match"] * 40)]
    texts += ["xyzzy", "moon " * 30_000]
    pool = StorePool(store)

    async def ask_all():
        ranks = ["relevance", "distance"]
        bodies = [SearchBody(text=text, rank=ranks[len(text) % 2]) for text in texts]
        alone = [pool.call(partial(read_query, query=body, rank=body.rank)) for body in bodies]
        found = await asyncio.gather(*alone)
        words = [read_words(text, "distance") for text in texts]
        together = await pool.call(lambda opened: encode_texts(opened.model, words))
        pairs = zip(found, together, strict=True)
        assert all((a.code == b.code).all() for a, b in pairs)
        return found

    queries = asyncio.run(ask_all())
    pool.close()
    assert [query.words.text for query in queries] == texts
    found = queries
    assert [not one.has_code for one in found] == [text == "xyzzy" for text in texts]
    assert [one.unknown_words for one in found] == [[text] * (text == "xyzzy") for text in texts]
    for text, one in zip(texts, found, strict=True):
        assert one.code.tolist() == fitted.model_.encode_and_count([text])[0][0].tolist()
        assert unpack(one.code[None])[0].tolist() == (one.probabilities > 0.5).tolist()


def test_one_text_does_not_wait_for_all_of_many(store):
    services = make_services({"store": store})
    service = services["store"]

    async def ask_both():
        body = SearchManyBody(texts=["moon orbit"] * 1000, k=1)
        many = asyncio.create_task(search_many(body, service))
        await asyncio.sleep(0)
        await search(SearchBody(text="goal"), service)
        assert not many.done()
        assert len(json.loads((await many).body)["answers"]) == 1000

    with opened(services):
        asyncio.run(ask_both())


def test_explain_a_text_two_texts_and_a_bit(api):
    one = api.post("/v1/explain", json={"text": "rocket moon orbit"}).json()
    assert one["code"] == api.post("/v1/search", json={"text": "rocket moon orbit"}).json()["code"]
    assert [bit["bit"] for bit in one["bits"]] == list(range(16))
    assert {word["word"] for bit in one["bits"] for word in bit["words"]} == {
        "rocket", "moon", "orbit"
    }  # fmt: skip
    two = api.post("/v1/explain", json={"text": "rocket moon orbit", "other_id": "d0"}).json()
    assert two["other"]["code"] == api.get("/v1/documents/d0").json()["code"]
    agree, differ = two["agreement"]["agree"], two["agreement"]["differ"]
    assert sorted(agree + differ) == list(range(16))
    all_bits = api.get("/v1/explain/bits").json()["bits"]
    assert all_bits[3] == api.get("/v1/explain/bits/3").json()
    assert {"bit", "ones", "zeros", "balance", "entropy", "unused", "duplicates"} <= set(
        all_bits[3]
    )
    assert refused(api.get("/v1/explain/bits/16"), 404, "no bit 16")
    assert refused(api.post("/v1/explain", json={"text": "xyzzy"}), 422, "no word")


def test_a_document_is_only_ever_json(api):
    answer = api.get("/v1/documents/script")
    assert answer.json()["text"] == SCRIPT
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


# Changing documents


def test_documents_are_not_changed_unless_writable(api):
    document = {"id": "new", "text": "moon"}
    answer = api.post("/v1/documents", json={"documents": [document]})
    assert refused(answer, 403, "--writable")
    assert refused(api.delete("/v1/documents/d0"), 403, "--writable")
    assert api.get("/v1/info").json()["documents"] == 81


def test_a_document_is_written_replaced_found_and_deleted(editor, own_store):
    document = {
        "id": "n",
        "text": "moon",
        "labels": ["new"],
        "metadata": {"deep": {"a": [1, None]}},
    }
    body = {"documents": [document | {"text": "goal"}, document]}
    assert editor.post("/v1/documents", json=body).json() == {"written": 2}
    found = editor.post("/v1/search", json={"text": "moon", "k": 1, "where": {"label": "new"}})
    assert [hit["text"] for hit in found.json()["hits"]] == ["moon"]
    stored = editor.get("/v1/documents/n").json()
    assert document.items() <= stored.items()
    with open_store(own_store) as opened:
        assert opened.count() == 82
    assert editor.delete("/v1/documents/n").json() == {"deleted": True}
    assert refused(editor.delete("/v1/documents/n"), 404, "no document 'n'")
    assert refused(editor.get("/v1/documents/n"), 404, "no document 'n'")


@pytest.mark.parametrize("id", ODD_IDS)
def test_ids_may_have_any_character(editor, id):
    body = {"documents": [{"id": id, "text": "moon"}]}
    assert editor.post("/v1/documents", json=body).json() == {"written": 1}
    path = f"/v1/documents/{quote(id, safe='')}"
    assert editor.get(path).json()["id"] == id
    assert editor.post("/v1/search", json={"id": id, "k": 1}).status_code == 200
    assert editor.delete(path).json() == {"deleted": True}
    assert editor.get(path).status_code == 404


def test_the_service_sees_what_another_process_writes(api_of, own_store):
    api = api_of(own_store)
    assert api.post("/v1/search", json={"text": "moon", "k": 1}).status_code == 200
    with open_store(own_store) as other:
        other.upsert([Document("other", "moon moon", ("other",), {})])
    found = api.post("/v1/search", json={"text": "moon", "where": {"label": "other"}}).json()
    assert [hit["id"] for hit in found["hits"]] == ["other"]


def test_the_service_follows_a_store_that_is_encoded_anew(editor, own_store):
    other = TextHasher("lsh", n_bits=24, random_state=0).fit(toy_corpus()[0])
    assert len(ask(editor, text="moon orbit")["code"]) == 4
    with open_store(own_store) as opened:
        opened.reindex(other)
    for _ in range(4):  # on each of two handles
        found = ask(editor, text="moon orbit", highlight=True)
        assert len(found["hits"][0]["code"]) == 6
        assert found["code"] == to_hex(other.encode(["moon orbit"]))[0]
        assert len(found["explanation"]["bits"]) == 24
        assert editor.get("/v1/documents/d0").status_code == 200  # also of a handle that lags
    facts = editor.get("/v1/info").json()
    assert (facts["bits"], facts["model"]["name"]) == (24, "lsh")
    body = {"documents": [{"id": "n", "text": "goal match"}, {"id": "e", "text": "the"}]}
    assert editor.post("/v1/documents", json=body).json() == {"written": 2}
    assert editor.get("/v1/documents/n").json()["code"] == to_hex(other.encode(["goal match"]))[0]


@pytest.fixture
def api_of():
    opened = []

    def enter(store, **options):
        opened.append(client(store, **options).__enter__())
        return opened[-1]

    yield enter
    for one in opened:
        one.__exit__(None, None, None)


def test_an_open_store_is_served_and_stays_open(own_store):
    with open_store(own_store) as opened:
        with client(opened) as api:
            assert api.get("/v1/info").json()["documents"] == 81
        assert opened.count() == 81


@contextmanager
def database(store):
    with closing(sqlite3.connect(store / "store.sqlite")) as connection, connection:
        yield connection


def test_a_lost_word_index_is_made_anew_before_the_first_question(own_store, api_of):
    with database(own_store) as connection:
        connection.execute("DELETE FROM words")
    api = api_of(own_store)
    with database(own_store) as connection:
        assert connection.execute("SELECT SUM(span) FROM words").fetchone() == (81,)
    assert ask(api, text="alert", k=1)["hits"][0]["id"] == "script"  # not known to the model


# What it refuses


LONG = ["x" * 200_000, "moon " * 40_000, '"' * 200_000, "-a " * 60_000, "a\u0301" * 100_000]
LONG += ["密" * 200_000, " ".join(f"w{i}" for i in range(10_000)) + " moon"]
SHORT = ['" OR (', "*", "NEAR", "NEAR(moon orbit, 2)", "-", "--", '"', '""', '-""', '-"moon']
SHORT += ['"moon orbit', "moon AND NOT orbit", "id:moon ^moon moon*", "'; DROP TABLE words; --"]
SHORT += ["\x00", "mo\x00on", "\x01\x1b[31m\x7f\u202e\ufeff moon", "\n\r\t\v", "", " "]
SHORT += ["лу́на ορβιτ 月 مون 달 चाँद 🌙 \U0010ffff", "%s %(x)s {0} \\"]


@pytest.mark.parametrize(
    ("path", "more", "texts"),
    [
        ("search", {"highlight": True}, [*LONG, *SHORT]),
        ("search", {"highlight": True, "rank": "distance"}, SHORT),
        ("within", {"highlight": True}, [*LONG, *SHORT]),
    ],
)
def test_any_text_is_answered(api, path, more, texts):
    """#18: of operators only, of control characters, of other scripts, very long."""
    found = [ask(api, path, text=text, **more) for text in texts]
    if path == "search" and "rank" not in more:
        found += ask(api, "search_many", texts=SHORT, rank="relevance")["answers"]
    for one in found:
        assert one["hits"] or one.get("warning"), "nothing is found, and nobody says why"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("search", {}, "Give one of text, code, id and vector."),
        ("search", {"text": "a", "code": "00"}, "Give one of text, code, id and vector."),
        ("search", {"text": 3}, "text: Input should be a valid string. Got 3."),
        ("search", {"text": "a", "k": "10"}, "k: Input should be a valid integer. Got '10'."),
        ("search", {"text": "a", "k": 0}, "k: Input should be greater than or equal to 1. Got 0."),
        ("search", {"text": "a", "k": True}, "k: "),
        ("search", {"text": "a", "size": 3}, "There is no field 'size'."),
        ("search", {"text": "a", "rank": "best"}, "rank: Input should be 'relevance', 'distance'"),
        ("search_many", {"texts": ["a"], "rank": "best"}, "rank: Input should be 'relevance'"),
        ("search_many", {"texts": [3]}, "texts.0: Input should be a valid string. Got 3."),
        ("search_many", {"text": "a"}, "There is no field 'text'."),
        ("search", {"text": "a", "where": 3}, "where: "),
        ("search", {"text": "a", "where": ["year"]}, "A filter is field=value"),
        ("search", {"text": "a", "where": {"yaer": 3}}, "Did you mean 'year'?"),
        ("search", {"code": "xy"}, "code: "),
        ("search", {"code": "00"}, "This store holds 16-bit codes but the query has 8."),
        ("search", {"id": ""}, "id: "),
        ("search", [], "valid dictionary"),
        ("within", {"text": "a", "radius": -1}, "radius: "),
        ("encode", {"texts": "a"}, "texts: Input should be a valid list. Got 'a'."),
        ("encode", {}, "The field 'texts' is missing."),
        ("explain", {"text": "a", "other": "b", "other_id": "c"}, "Give one of other and other_id"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_in_a_sentence(api, path, body, words):
    assert refused(api.post(f"/v1/{path}", json=body), 422, words)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"text": NaN}', b'{"text": "\\ud800"}', b'{"text": "\xff"}', b"[" * 100_000],
    ids=["nothing", "half", "nan", "surrogate", "latin-1", "deep"],
)
def test_malformed_json_is_refused(api, content):
    answer = api.post("/v1/search", content=content, headers={"content-type": "application/json"})
    assert refused(answer, 422)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_must_say_that_it_is_json(api, kind):
    headers = {"content-type": kind} if kind else {}
    answer = api.post("/v1/search", content=b'{"text": "moon"}', headers=headers)
    assert refused(answer, 415, "application/json")


def test_every_limit_is_kept_and_described(own_store, api_of):
    limits = Limits(k=5, batch=2, text=10, body=500)
    api = api_of(own_store, limits=limits, writable=True)
    assert api.get("/v1/info").json()["limits"] == limits._asdict()
    ask = lambda path, **body: api.post(f"/v1/{path}", json=body)  # noqa: E731
    assert ask("search", text="x" * 10, k=5).status_code == 200
    assert refused(ask("search", text="moon", k=6), 422, "k must be at most 5. Got 6.")
    assert refused(ask("search", text="x" * 11), 422, "text must be at most 10 characters. Got 11.")
    assert refused(ask("within", text="moon", limit=6), 422, "limit must be at most 5. Got 6.")
    assert refused(ask("search_many", texts=["moon"], k=6), 422, "k must be at most 5. Got 6.")
    assert refused(ask("search_many", texts=["moon"] * 2, k=3), 422, "at most 5. Got 6.")
    assert refused(ask("search_many", texts=["moon"] * 3, k=1), 422, "must be at most 2. Got 3.")
    assert refused(ask("search_many", texts=["x" * 11]), 422, "Each text must be at most 10")
    assert refused(ask("encode", texts=["a"] * 3), 422, "number of texts must be at most 2. Got 3.")
    assert refused(ask("encode", texts=["a" * 11]), 422, "Each text must be at most 10 characters")
    assert refused(ask("explain", text="moon", other="x" * 11), 422, "other must be at most 10")
    documents = [{"id": str(i), "text": "moon"} for i in range(3)]
    assert refused(ask("documents", documents=documents), 422, "number of documents")
    long = [{"id": "a", "text": "x" * 11}]
    assert refused(ask("documents", documents=long), 422, "Each text must be at most 10")
    assert refused(ask("encode", texts=["x" * 500]), 413, "at most 500 bytes")
    chunks = iter([b"[" + b" " * 300, b" " * 300 + b"]"])  # without a Content-Length
    answer = api.post("/v1/encode", content=chunks, headers={"content-type": "application/json"})
    assert refused(answer, 413, "at most 500 bytes")
    described = api.get("/openapi.json").json()["components"]["schemas"]
    assert described["SearchBody"]["properties"]["k"]["maximum"] == 5
    assert described["EncodeBody"]["properties"]["texts"]["maxItems"] == 2
    assert described["EncodeBody"]["properties"]["texts"]["items"]["maxLength"] == 10


def test_an_answer_that_takes_too_long_is_given_up(store, api_of):
    api = api_of(store, limits=Limits(seconds=1e-4))
    assert refused(api.post("/v1/search", json={"text": "moon"}), 504, "more than 0.0001 s")


def test_a_service_that_is_too_busy_says_so(store, api_of):
    answer = api_of(store, limits=Limits(waiting=0)).get("/v1/info")
    assert refused(answer, 503, "too busy")
    assert answer.headers["retry-after"] == "1"


def test_other_paths_and_methods_are_answered_with_a_sentence(api):
    assert refused(api.get("/v1/nothing"), 404, "There is nothing at /v1/nothing.")
    assert refused(api.get("/v1/search"), 405, "GET is not for /v1/search.")
    assert refused(api.get("/page/none.js"), 404, "There is nothing at /page/none.js.")
    assert refused(api.get("/docs/none.js"), 404, "There is nothing at /docs/none.js.")


def test_a_bug_is_an_error_500_and_the_log_says_why(store, api_of, monkeypatch, caplog):
    api = api_of(store)
    monkeypatch.setattr(api.app.state.service.pool, "call", None)
    assert refused(api.get("/v1/info"), 500, "Its log says why.")
    assert "TypeError" in JsonLines().format(caplog.records[-1])


# Who may ask


def test_without_a_token_only_names_of_this_machine_are_answered(api):
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"):
        assert api.get("/v1/info", headers={"host": host}).status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1", "localhost:x"):
        assert refused(api.get("/v1/info", headers={"host": host}), 400, "Host header")


def test_a_token_is_needed_where_there_is_one(store, api_of):
    api = api_of(store, token=TOKEN)
    right = {"authorization": f"Bearer {TOKEN}"}
    wrong = ["Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer ü", ""]
    for path in ("/v1/info", "/v1/documents/d0", "/metrics", "/v1/nothing"):
        assert refused(api.get(path), 401, "Authorization: Bearer")
        for header in wrong:
            answer = api.get(path, headers={"authorization": header.encode()})
            assert refused(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
        assert api.get(path, headers=right).status_code != 401
    answer = api.post("/v1/search", json={"text": "moon"}, headers=right | {"host": "example.org"})
    assert answer.status_code == 200


def test_what_a_browser_loads_first_needs_no_token(store, api_of):
    api = api_of(store, token=TOKEN)
    for path in ("/health", "/ready", "/docs", "/docs/swagger-ui.css", "/openapi.json"):
        assert api.get(path).status_code == 200
    described = api.get("/openapi.json").json()
    assert described["paths"]["/v1/search"]["post"]["security"] == [{"bearer": []}]


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    monkeypatch.delenv("VDSH_TOKEN", raising=False)
    assert read_tokens(None) is None
    monkeypatch.setenv("VDSH_TOKEN", "x" * 20)
    assert read_tokens(None).find(b"Bearer " + b"x" * 20) == Token(None, True)
    of_file = read_tokens(str(file))
    assert of_file.find(f"Bearer {TOKEN}".encode()) == Token(None, True)
    assert of_file.find(b"Bearer " + b"x" * 20) is None
    for content in ("", "short", "two words of a token", "ü" * 20):
        file.write_text(content)
        with pytest.raises(VdshError, match="must hold a token"):
            read_tokens(str(file))
    with pytest.raises(VdshError, match="No file"):
        read_tokens(str(tmp_path / "none"))


def test_no_web_page_elsewhere_is_let_in(api):
    origin = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = api.options("/v1/search", headers=origin)
    assert answer.status_code == 405
    answers = [answer, api.get("/v1/info", headers=origin)]
    assert not [name for a in answers for name in a.headers if name.startswith("access-control")]


def test_answers_carry_security_headers(api):
    for path in ("/", "/v1/info", "/docs", "/v1/nothing"):
        headers = api.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert re.fullmatch("[0-9a-f]{16}", headers["x-request-id"])
    assert "unsafe-inline" not in api.get("/").headers["content-security-policy"]


# What it says about itself


def test_health_and_readiness(store):
    with client(store) as api:
        assert api.get("/health").json() == {"status": "ok"}
        assert api.get("/ready").json() == {"status": "ok"}
    unopened = client(store)
    assert unopened.get("/health").status_code == 200
    assert refused(unopened.get("/ready"), 503, "not open")


def test_metrics_count_requests_by_route(store, api_of):
    api = api_of(store)
    for id in ("d0", "d1", "none"):
        api.get(f"/v1/documents/{id}")
    api.get("/v1/nothing")
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    route = 'path="/v1/documents/{id:any}"'
    lines = set(answer.text.splitlines())
    assert f'vdsh_requests_total{{method="GET",{route},status="200"}} 2.0' in lines
    assert f'vdsh_requests_total{{method="GET",{route},status="404"}} 1.0' in lines
    assert 'vdsh_requests_total{method="GET",path="other",status="404"} 1.0' in lines
    assert f"vdsh_request_seconds_count{{{route}}} 3.0" in lines
    assert "vdsh_documents 81.0" in lines
    assert "vdsh_running_requests 1.0" in lines
    assert "d0" not in answer.text


def test_the_log_has_a_line_of_json_a_request_without_texts_and_tokens(store, api_of, caplog):
    caplog.set_level(logging.INFO, "vdsh.access")
    api = api_of(store, token=TOKEN, logged=True)
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = api.post("/v1/search?secret=1", json={"text": "rocket moon"}, headers=headers)
    line = JsonLines().format(caplog.records[-1])
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry.pop("ms") > 0
    assert entry.pop("pid")
    assert entry == {
        "level": "info", "method": "POST", "path": "/v1/search", "status": 200,
        "bytes": len(answer.content), "id": answer.headers["x-request-id"],
    }  # fmt: skip
    assert not [word for word in ("rocket", TOKEN, "secret") if word in line]


def test_the_manual_asks_nothing_of_other_machines(api):
    page = api.get("/docs")
    assert page.status_code == 200
    places = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert places
    for place in places:
        assert place.startswith(("/docs/", "/page/"))
        assert api.get(place).status_code == 200
    assert "http" not in page.text + api.get("/page/docs.js").text
    assert api.get("/redoc").status_code == 404


def test_calls_and_their_failures_are_described(api):
    described = api.get("/openapi.json").json()
    assert set(described["paths"]) >= {
        "/v1/info", "/v1/search", "/v1/search_many", "/v1/within", "/v1/encode", "/v1/explain",
        "/v1/explain/bits", "/v1/explain/bits/{bit}", "/v1/documents", "/v1/documents/{id}",
        "/health", "/ready", "/metrics", "/v1/stores",
    }  # fmt: skip
    for path, calls in described["paths"].items():
        for call in calls.values():
            assert call["summary"] and call["description"], path
            for status, answer in call["responses"].items():
                if int(status) >= 400:
                    shape = answer["content"]["application/json"]["schema"]
                    assert shape == {"$ref": "#/components/schemas/Failure"}, (path, status)


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_the_service_is_as_it_describes_itself(own_store, mode):
    """Ask with what the description allows, or forbids, and hold the answers against it."""
    limits = Limits(k=20, batch=4, text=200, body=20_000)
    app = create_app(own_store, writable=True, token=TOKEN, limits=limits)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    # What is wrong may also be too large, which every call with a body describes and says first.
    refusing = schema.config.checks.negative_data_rejection
    refusing.expected_statuses = [*refusing.expected_statuses, "413"]
    mode = schemathesis.GenerationMode(mode)
    n_asked = 0
    for found in schema.get_all_operations():
        cases = found.ok().as_strategy(generation_mode=mode)
        ask = settings(max_examples=8, derandomize=True, database=None, deadline=None)
        with suppress(Unsatisfiable):  # some calls take nothing that could be wrong
            ask(given(case=cases)(validate))()
            n_asked += 1
    assert n_asked >= 8


def validate(case):
    # A request may be as described and still be refused: a filter on a field that no document has.
    case.call_and_validate(
        headers={"Authorization": f"Bearer {TOKEN}"}, excluded_checks=[positive_data_acceptance]
    )
