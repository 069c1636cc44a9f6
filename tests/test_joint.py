"""Codes of two parts, the topic of a text and its vector: learned, stored, searched, served."""

import sys
import warnings

import numpy as np
import pytest
from fastapi.testclient import TestClient

from conftest import toy_corpus
from vdsh import Document, JointModel, Model, TextHasher, VectorHasher, open_store
from vdsh import embed as embedding
from vdsh.codes import expected_distances, unpack
from vdsh.errors import InputError, MissingPackageError
from vdsh.explain import explain_bits
from vdsh.model import NotLearnedError
from vdsh.model.joint import NoEmbedderWarning
from vdsh.server.app import create_app

LETTERS = "model2vec:letters"
TEXTS, LABELS = toy_corpus(300)
DOCUMENTS = [Document(f"d{i:03}", text, (LABELS[i],)) for i, text in enumerate(TEXTS)]
# In two heaps, as topics are; a third is far from both.
RNG = np.random.RandomState(0)
VECTORS = RNG.normal(size=(2, 24))[np.arange(300) % 2] + RNG.normal(size=(300, 24))


@pytest.fixture(scope="module")
def joint():
    """A model of 128 and 256 bits; tests must not change it."""
    topic = TextHasher("lsh", 128, min_df=1, random_state=0).fit(TEXTS)
    return JointModel(topic, VectorHasher(256, random_state=0).fit(VECTORS))


@pytest.fixture
def given(joint, tmp_path):
    with open_store(tmp_path / "given", joint) as opened:
        opened.upsert(DOCUMENTS[:80], vectors=VECTORS[:80])
        yield opened


def test_a_folder_holds_both_parts(joint, tmp_path):
    joint.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert loaded.n_bits == 384 and loaded.fingerprint == joint.fingerprint
    codes = loaded.encode(TEXTS[:5], VECTORS[:5])
    assert (codes[:, :16] == joint.topic.encode(TEXTS[:5])).all()
    assert (codes[:, 16:] == joint.second.encode_vectors(VECTORS[:5])).all()
    assert "of vectors" in (tmp_path / "model" / "README.md").read_text()
    assert len(explain_bits(loaded)) == 128
    with pytest.raises(InputError, match="hashes vectors too. Load it with Model"):
        TextHasher.load(tmp_path / "model")
    with pytest.raises(InputError, match="a model of texts, then a model of vectors"):
        JointModel(joint.second, joint.topic)


def test_a_store_on_every_engine_takes_words_topic_and_vector(place, joint):
    with open_store(place, joint) as store:
        store.upsert(DOCUMENTS[:40], vectors=VECTORS[:40])
        assert len(store.find("d003").code) == 96
        word = TEXTS[3].split()[0]
        assert store.search(word, vector=VECTORS[3], k=1)[0].id == "d003"
        assert store.search(TEXTS[3], vector=VECTORS[3], rank="distance")[0].distance == 0
        assert store.search(vector=VECTORS[3], k=1)[0].id == "d003"
        assert store.search(word, k=1)[0].labels == (LABELS[3],)
        assert store.check() == []


def test_the_score_is_that_of_the_rule(given, joint, tmp_path):
    vector, text = VECTORS[81], TEXTS[81]
    with open_store(tmp_path / "words") as words:
        words.upsert(DOCUMENTS[:80])
        shares = {hit.id: hit.score for hit in words.search(text, 80)}
    hits = given.search(text, 80, vector=vector)
    m = np.array([shares.get(hit.id, 0) for hit in hits])
    codes = np.array([list(bytes.fromhex(hit.code)) for hit in hits], np.uint8)
    best = np.lexsort(([hit.id for hit in hits], -m))[:10]
    votes = (m[best] / m.max()) ** 6
    p = unpack(joint.topic.encode([text]))[0]
    p = (1 - m.max()) * p + m.max() * (votes @ unpack(codes[best, :16]) / votes.sum())
    agreement = np.maximum(0, 1 - 2 * expected_distances(codes[:, :16], p) / 128)
    turned = joint.second.scores_of(joint.second.rows([vector]))[0]
    cosine = np.maximum(0, (2.0 * unpack(codes[:, 16:]) - 1) @ turned)
    score = m**2 + m.max() ** 2 * (0.4 * agreement / agreement.max() + cosine / cosine.max())
    assert len(hits) == 80
    assert [hit.score for hit in hits] == pytest.approx(np.sqrt(score / 2.4), abs=1e-6)
    assert any(m == 0) and not hits[0].related


def test_without_a_vector_the_topic_is_scored_alone(given, joint, tmp_path):
    with open_store(tmp_path / "topic", joint.topic) as topic:
        topic.upsert(DOCUMENTS[:80])
        wanted = topic.search("orbit crew", 80)
    found = given.search("orbit crew", 80)
    assert {hit.id: hit.score for hit in found} == {hit.id: hit.score for hit in wanted}
    assert [hit.distance for hit in found] == [hit.distance for hit in wanted]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda store: store.search("orbit", rank="distance"), "this query has one of them"),
        (lambda store: store.search(vector=VECTORS[0], rank="distance"), "has one of them"),
        (lambda store: store.within("orbit", 9), "has one of them"),
        (lambda store: store.search("orbit", vector=VECTORS[0][:5]), "24 dimensions. Got 5"),
        (lambda store: store.search("orbit", vector=[np.nan] * 24), "not a finite number"),
        (lambda store: store.search("orbit", vector=[0] * 24), "is zero"),
        (lambda store: store.upsert(DOCUMENTS[:1]), "Give the vectors of the texts"),
        (lambda store: store.upsert(DOCUMENTS[:2], vectors=[VECTORS[0], None]), "'d001' has no v"),
        (lambda store: store.upsert(DOCUMENTS[:2], vectors=VECTORS[:2, :7]), "Got 7"),
        (lambda store: store.upsert(DOCUMENTS[:2], vectors=VECTORS[:3]), "2 documents but 3"),
        (lambda store: store.upsert(DOCUMENTS[:1], vectors=[[np.nan] * 24]), "not a finite"),
        (lambda store: store.learn(), "which it does not keep"),
        (lambda store: store.learn(embed="letters"), "named model2vec:NAME or .* Got 'letters'"),
        (lambda store: store.learn(model=store.model, embed=LETTERS), "not both"),
        (lambda store: store.model.encode_vectors(VECTORS), "or of both"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(given, ask, message):
    before = given.find("d000")
    with pytest.raises(InputError, match=message):
        ask(given)
    assert given.count() == 80 and given.find("d000") == before


def test_a_store_without_a_model_says_what_takes_vectors(tmp_path):
    with open_store(tmp_path / "new") as store:
        with pytest.raises(NotLearnedError, match="JointModel; or have texts embedded"):
            store.upsert(DOCUMENTS[:1], vectors=VECTORS[:1])
        assert store.count() == 0


def test_a_store_embeds_documents_and_queries_and_answers_without(package, tmp_path, monkeypatch):
    with open_store(tmp_path / "store") as store:
        store.upsert(DOCUMENTS)
        store.learn(bits=16, embed=LETTERS, progress=False)
        facts = store.info()["model"]
        assert (facts["topic_bits"], facts["vector_bits"], facts["embedder"]) == (16, 256, LETTERS)
        store.upsert([Document("new", "bananas and papaya orbit")])
        store.upsert(DOCUMENTS[:2], vectors=[None, np.ones(16)])
        # No document has these words, and their letters are nearly those of one.
        (near,) = store.search("papayaa bananass anda", k=1)
        assert near.id == "new"
        assert store.search("orbit", rank="distance") and store.drift().drifted is None
        store.upsert(DOCUMENTS[:2])
        assert store.check() == []
        store.learn(bits=24, progress=False)
        assert store.n_bits == 24 + 256 and store.model.embedder == LETTERS
    monkeypatch.setitem(sys.modules, "model2vec", None)
    embedding._load.cache_clear()
    with open_store(tmp_path / "store") as store:
        with pytest.warns(NoEmbedderWarning, match="by words and topic.* not installed"):
            first = store.search("orbit crew")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert store.search("orbit crew") == first and first[0].labels == ("space",)
        with pytest.raises(MissingPackageError):
            store.upsert([Document("more", "orbit")])
        store.learn(bits=16, embed="none", progress=False)
        assert store.n_bits == 16 and store.search("orbit crew")


def test_the_command_line(package, tmp_path, vdsh):
    lines = [f'{{"id": "{d.id}", "text": "{d.text}"}}\n' for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("".join(lines[:20]))
    bad = vdsh("add", "notes", "docs.jsonl", "--embed", "letters")
    assert bad.returncode == 1 and "Got 'letters'" in bad.stderr
    assert not (tmp_path / "notes").exists()
    vdsh("add", "notes", "docs.jsonl", "--embed", LETTERS, "-q")  # too few to learn from
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    vdsh("add", "notes", "docs.jsonl", "--bits", 16, "-q")
    told = vdsh("info", "notes").stdout
    assert LETTERS in told and "272" in told
    assert vdsh("learn", "notes", "--bits", 16, "--embed", "none", "-q").returncode == 0
    assert "embedder" not in vdsh("info", "notes").stdout
    np.save(tmp_path / "v.npy", VECTORS)
    given = ["docs.jsonl", "--vectors", "v.npy"]
    more = ["--vector-bits", 64, "--model", "linear", "--bits", 16, "-q", "--out", "m"]
    assert vdsh("fit", "docs.jsonl", *more).returncode == 1  # bits of what
    assert "--vectors FILE" in vdsh("fit", *given, *more).stdout
    assert vdsh("index", "m", "docs.jsonl", "--store", "s", "-q").returncode == 1
    assert vdsh("index", "m", *given, "--store", "s", "-q").returncode == 0
    with open_store(tmp_path / "s") as store:
        assert store.n_bits == 80 and store.search("orbit", vector=VECTORS[0])


def test_the_service_takes_vectors_beside_texts(given):
    with TestClient(create_app(given, writable=True), base_url="http://127.0.0.1:8000") as api:

        def ask(path, **body):
            answer = api.post(path, json=body)
            return answer.status_code, answer.json()

        vector = VECTORS[4].tolist()
        status, found = ask("/v1/search", text="goal", vector=vector, highlight=True)
        wanted = given.search("goal", vector=vector)
        assert status == 200 and [h["id"] for h in found["hits"]] == [h.id for h in wanted]
        assert len(found["explanation"]["bits"]) == 128
        assert ask("/v1/search", text="goal", highlight=True)[0] == 200
        assert ask("/v1/search", id="d004", k=1)[1]["hits"][0]["id"] == "d004"
        assert ask("/v1/search", id="d004", rank="distance")[1]["hits"][0]["distance"] == 0
        new = {"id": "e", "text": "goal", "vector": vector}
        assert ask("/v1/documents", documents=[new])[0] == 200 and given.get("e").text == "goal"
