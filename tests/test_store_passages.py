"""Long documents as passages: deep sentences are found and shown (#33)."""

import random

import pytest

from engines import ENGINES
from vdsh import Document
from vdsh.store import open_store

WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("lan", "rid", "sto", "ver")
]
SENTENCE = "The turquoise walrus repaired the observatory during winter."


def prose(seed, n_words):
    rng = random.Random(seed)
    sentences = []
    while n_words > 0:
        size = min(n_words, rng.randrange(6, 14))
        sentences.append(" ".join(rng.choices(WORDS, k=size)).capitalize() + ".")
        n_words -= size
    return "\n\n".join(" ".join(sentences[i : i + 6]) for i in range(0, len(sentences), 6))


LONG = f"{prose(1, 2400)}\n\n## Repairs\n\n{SENTENCE} {prose(2, 300)}"
# As many of the words, but here and there.
SCATTERED = "\n\n".join(
    f"{prose(10 + i, 400)} {word}." for i, word in enumerate(SENTENCE.rstrip(".").split())
)
DOCUMENTS = [
    Document("long", LONG),
    Document("scattered", SCATTERED),
    *(Document(f"short{i}", prose(100 + i, 60)) for i in range(8)),
]


@pytest.fixture(params=ENGINES)
def store(request, new_place):
    with open_store(new_place(request.param)) as store:
        store.upsert(DOCUMENTS)
        yield store


def test_a_sentence_deep_in_a_long_document_is_found_and_shown(store):
    hit = store.search("turquoise walrus repaired observatory winter")[0]
    assert hit.id == "long"
    assert SENTENCE in hit.text[slice(*hit.section)]
    assert "turquoise walrus" in hit.passage()
    assert hit.place == "Repairs"
    assert hit.as_fields()["place"] == "Repairs"


def test_the_passage_that_has_more_of_the_words_is_shown_not_the_one_that_has_them_more_often(
    store,
):
    often = " ".join(["The turquoise walrus swims, turquoise walrus swims."] * 8)
    text = "\n\n".join([prose(3, 500), often, prose(4, 800), SENTENCE, prose(5, 500)])
    store.upsert([Document("often", text)])
    hits = {hit.id: hit for hit in store.search("turquoise walrus repaired the observatory")}
    assert SENTENCE in hits["often"].text[slice(*hits["often"].section)]


def test_documents_stay_documents(store):
    assert len(store) == len(DOCUMENTS)
    assert store.get("long") == DOCUMENTS[0]
    hits = store.search("turquoise walrus", k=100)
    assert len({hit.id for hit in hits}) == len(hits)


def test_passages_go_with_their_document(store):
    store.delete(["long"])
    assert [hit.id for hit in store.search("turquoise walrus")] == ["scattered"]
    store.upsert([Document("long", "A short note on a walrus.")])
    hit = next(hit for hit in store.search("walrus") if hit.id == "long")
    assert (hit.section, hit.passage()) == ((0, 0), "A short note on a walrus.")


def test_phrases_filters_and_exclusion_work_inside_passages(store):
    assert [hit.id for hit in store.search('"turquoise walrus"')] == ["long"]
    assert [hit.id for hit in store.search("walrus -turquoise")] == []
    store.upsert([Document("long", LONG, None, {"year": 2020})])
    assert [hit.id for hit in store.search("walrus", where={"year": 2020})] == ["long"]


def test_engines_score_passages_alike(new_place):
    found = []
    for engine in set(ENGINES) - {"milvus-lite"}:  # which scores the best alone
        with open_store(new_place(engine)) as store:
            store.upsert(DOCUMENTS)
            hits = store.search("turquoise walrus repaired the observatory")
            found.append([(hit.id, round(hit.score, 9), hit.section) for hit in hits])
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("text", ["x" * 2_000_000, "ab " * 200_000, "密码学" * 20_000, "\n" * 5000])
def test_any_long_text_is_written_and_found_again(tmp_path, text):
    with open_store(tmp_path / "store") as store:
        store.upsert([Document("odd", f"walrus {text} narwhal"), Document("other", "moon")])
        assert [hit.id for hit in store.search("narwhal")] == ["odd"]
        assert store.check() == []


def test_the_title_does_not_shift_the_passage(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([Document("notes/long.md", LONG, None, {"title": "A title of some words"})])
        hit = store.search("turquoise walrus repaired")[0]
        assert SENTENCE in hit.text[slice(*hit.section)]
        first = store.search("title words")[0]
        assert first.id == "notes/long.md"
        assert 0 <= first.section[0] <= first.section[1] <= len(LONG)


def test_the_passage_of_a_phrase_is_where_the_phrase_is(store):
    dense = "An observatory was repaired; repaired, that observatory shone, and was repaired again."
    roofs = f"They Repaired\nObservatory roofs. {prose(5, 400)}"
    text = "\n\n".join([prose(3, 600), dense, prose(4, 1200), roofs])
    store.upsert([Document("roofs", text)])
    (hit,) = store.search('"repaired observatory"')
    assert hit.id == "roofs" and "They Repaired Observatory roofs." in hit.passage()
    assert text[slice(*hit.section)].startswith("They Repaired\n")
    assert "repaired; repaired" in store.search("repaired observatory shone")[0].passage()
