"""What is shown of hits: passages, marked words, titles, in one call (#17 item 5, #18 item 3)."""

import gzip
import unicodedata

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import toy_corpus
from vdsh import Document, corpus_map, open_store
from vdsh.codes import to_hex
from vdsh.explain import as_fields, explain_text
from vdsh.explain.highlights import Highlighter, portions
from vdsh.server.app import create_app
from vdsh.text.languages import language as find_language
from vdsh.text.tokenizer import find_spans, find_tokens, tokenize
from vdsh.words.passages import LENGTH

LONG = "nothing known here. " * 60 + "The MOON's crew, in orbit." + " more of it" * 60


@pytest.fixture(scope="module")
def store(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("highlights") / "store"
    rows = enumerate(zip(*toy_corpus(), strict=True))
    documents = [Document(f"d{i}", text, (label,), {"year": 1980 + i}) for i, (text, label) in rows]
    documents += [Document("long", LONG, None, {"title": "A\n title"}), Document("empty", "", None)]
    with open_store(path, fitted) as opened:
        texts = [document.text for document in documents]
        opened.upsert(documents, codes=fitted.model_.encode_and_count(texts)[0])  # one is empty
    names, n = [document.id for document in documents], len(documents)
    points = np.random.RandomState(0).uniform(-1, 1, (n, 2)).astype(np.float32)
    scores, label = np.zeros((n, 16), np.float32), np.full(n, -1, np.int32)
    facts = {"documents": n, "seed": 0, "fingerprint": fitted.model_.fingerprint}
    made = corpus_map.CorpusMap(names, names, points, scores, label, [], facts)
    corpus_map.save(path / corpus_map.FILE, made)
    return path


@pytest.fixture(scope="module")
def api(store):
    with TestClient(create_app(store), base_url="http://127.0.0.1:8000") as opened:
        yield opened


def search(api, **body):
    answer = api.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "text",
    [
        "The shuttle's crew didn't see Café 42!",
        unicodedata.normalize("NFD", "Ünder the Café's İstanbul, déjà vu"),
        "密码学 and 😀 İİİ moon",
        "\u1112\u1161\u11ab word",  # Korean letters that join
        "",
    ],
)
def test_spans_hold_the_tokens_of_the_text_as_given(text):
    spans = find_spans(text)
    assert [span.token for span in spans] == tokenize(text)
    if "\u1112" not in text:
        pieces = [text[span.start : span.stop] for span in spans]
        assert [unicodedata.normalize("NFC", piece.lower()) for piece in pieces] == tokenize(text)


SYLLABLES = ("a", "É", "e\u0301", "İ", "\u2019s", "'", " ", "_", "7", "密", "ที่", "ก" + "\u0e48" * 9,
             "ខ្", "☀\ufe0f", "😀", "w" * 99, "\ud800")  # fmt: skip


@settings(deadline=None)  # kernels may have to be compiled
@given(st.lists(st.sampled_from(SYLLABLES), max_size=12).map("".join) | st.text())
def test_spans_are_those_of_the_tokens_by_kernels_and_plainly(text):
    spans, tokens = find_spans(text), find_tokens([text])
    data = tokens.data.tobytes()
    by_kernel = [data[i:j].decode() for i, j in zip(tokens.starts, tokens.stops, strict=True)]
    assert [span.token for span in spans] == tokenize(text) == by_kernel
    assert all(0 <= span.start <= span.stop <= len(text) for span in spans)
    assert spans == sorted(spans, key=lambda span: span.start)


@given(st.lists(st.sampled_from(SYLLABLES), max_size=12).map("".join))
def test_spans_point_to_what_the_tokens_were_made_of(text):
    for start, stop, token in find_spans(text):
        made = unicodedata.normalize("NFC", text[start:stop].lower())
        assert made.replace("\u2019", "'") == token


def highlight(hasher, texts, *, code, query="", phrases=(), language="none"):
    made = Highlighter(hasher.model_, code, query, phrases, find_language(language))
    return [one for some in portions(texts) for one in made.show(some)]


def test_words_of_the_query_are_marked_apart_from_those_that_hold_bits(fitted):
    texts = ["goal match crew", "moon xyzzy rocket and orbit", LONG]
    code = fitted.encode(["moon xyzzy and"])[0]
    asked = {"code": code, "query": "moon xyzzy and", "language": "english"}
    shown = highlight(fitted, texts, **asked)
    of_query = {texts[1][i:j] for i, j, own in shown[1].marks if own}
    others = {texts[1][i:j] for i, j, own in shown[1].marks if not own}
    assert of_query == {"moon", "xyzzy"}  # also what the model does not know, but no stop word
    assert others and others <= {"rocket", "orbit"}
    start, stop = shown[2].passage
    assert "MOON's crew" in texts[2][start:stop] and stop - start <= LENGTH
    assert all(texts[2][i:j].lower() in ("moon", "crew", "orbit") for i, j, _ in shown[2].marks)


def test_a_passage_is_where_the_typed_words_are_and_not_those_that_hold_bits(fitted):
    text = "rocket orbit shuttle launch crew. " + "nothing. " * 60 + "a moon of xyzzy." + " x" * 300
    code = fitted.encode(["moon xyzzy"])[0]
    (shown,) = highlight(fitted, [text], code=code, query="moon xyzzy")
    assert "moon of xyzzy" in text[slice(*shown.passage)]
    near = "x. " * 70 + "rocket orbit shuttle. " + "y. " * 50 + "The moon." + " z" * 200
    (shown,) = highlight(fitted, [near], code=code, query="moon xyzzy")
    assert near.index("moon") - shown.passage[0] <= 40  # and not at its end, after those
    (shown,) = highlight(fitted, [text], code=code)  # nobody typed anything
    assert shown.passage[0] == 0


def test_a_passage_has_the_phrase_that_was_asked_for(fitted):
    text = "moon and orbit. " + "nothing. " * 60 + "In orbit of the moon." + " more" * 100
    code = fitted.encode(["orbit of the moon"])[0]
    asked = {"code": code, "query": "orbit of the moon", "language": "english"}
    (plain,) = highlight(fitted, [text], **asked)
    assert plain.passage[0] == 0
    (shown,) = highlight(fitted, [text], **asked, phrases=[["orbit", "of", "the", "moon"]])
    assert "orbit of the moon" in text[slice(*shown.passage)]
    assert shown.marks == plain.marks
    (shown,) = highlight(fitted, [text], **asked, phrases=[["not", "there"]])
    assert shown == plain


def test_highlights_of_many_texts_are_those_of_each_alone(fitted):
    texts = toy_corpus()[0]
    code = fitted.encode(["moon orbit"])[0]
    together = highlight(fitted, texts, code=code, query="moon orbit")
    alone = [highlight(fitted, [text], code=code, query="moon orbit")[0] for text in texts]
    assert together == alone


def test_pairs_of_ideographs_are_marked_as_one(fitted):
    code = fitted.encode(["moon"])[0]
    (shown,) = highlight(fitted, ["a 密码学 b"], code=code, query="密码学")
    assert shown.marks == [(2, 5, True)]


def test_one_search_brings_all_that_is_shown(api, fitted):
    body = {"text": "moon orbit", "k": 5, "where": {"label": "space"}}
    found = search(api, **body, highlight=True)
    assert found["explanation"] == as_fields(explain_text(fitted, "moon orbit"))
    assert found["place"].keys() == {"x", "y"}
    for hit in found["hits"]:
        assert hit["title"] == hit["id"]
        assert (hit["passage"], hit["span"]) == (hit["text"], [0, len(hit["text"])])
        words = {hit["text"][i:j] for i, j, own in hit["marks"] if own}
        assert words == {"moon", "orbit"} & set(hit["text"].split()) == set(hit["words"])
    plain = search(api, **body)
    names = {"title", "passage", "span", "marks"}
    bare = [{k: v for k, v in hit.items() if k not in names} for hit in found["hits"]]
    assert plain == {"code": found["code"], "hits": bare}


def test_a_passage_is_a_text_as_on_the_command_line(api):
    """#20: it was a pair of numbers here and a text there."""
    (hit,) = search(api, text="moon crew", where={"id": "long"}, highlight=True)["hits"]
    start, stop = hit["span"]
    assert hit["passage"] == f"…{LONG[start:stop].strip()}…"
    assert "The MOON's crew, in orbit." in hit["passage"]


def test_a_radius_is_highlighted_too(api):
    body = {"text": "moon orbit", "radius": 2, "limit": 3, "highlight": True}
    found = api.post("/v1/within", json=body).json()
    assert found["total"] >= len(found["hits"]) and found["explanation"] and found["place"]
    assert all(hit["title"] and hit["distance"] <= 2 for hit in found["hits"])


def test_what_has_no_words_is_highlighted_without_marks(api, fitted):
    unknown = search(api, text="xyzzy", k=100, highlight=True)
    assert unknown["hits"] == [] and unknown["warning"] and "explanation" not in unknown
    for query in ({"id": "empty"}, {"code": to_hex(fitted.model_.encode_and_count([""])[0])[0]}):
        found = search(api, **query, k=100, highlight=True)
        assert "explanation" not in found
        empty = next(hit for hit in found["hits"] if hit["id"] == "empty")
        assert (empty["title"], empty["passage"], empty["span"]) == ("empty", "", [0, 0])
        assert empty["marks"] == []
    long = next(hit for hit in found["hits"] if hit["id"] == "long")
    assert long["title"] == "A title" and long["marks"]


def test_filters_may_be_texts_as_on_the_command_line(api):
    typed = search(api, text="moon", where=["label=space", "year < 1984"])
    assert sorted(hit["id"] for hit in typed["hits"]) == ["d0", "d2"]
    where = {"label": "space", "year": {"<": 1984}}
    assert typed == search(api, text="moon", where=where)
    for wrong, said in ((["nonsense"], "field=value"), (["{year"], "broken JSON"), (3, "where")):
        answer = api.post("/v1/search", json={"text": "moon", "where": wrong})
        assert answer.status_code == 422 and said in answer.json()["error"]
        assert "dict[str" not in answer.json()["error"]


def test_the_map_travels_compressed_where_the_client_can_read_it(api):
    packed = api.get("/v1/map")
    assert packed.headers["content-encoding"] == "gzip"
    plain = api.get("/v1/map", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, 6, mtime=0))
