"""Vectors as documents: learned from, stored, searched and served (#19)."""

import json

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import toy_corpus
from vdsh import Document, Model, TextHasher, VectorHasher, open_store
from vdsh.codes import expected_distances, unpack
from vdsh.errors import InputError
from vdsh.explain import explain_bits
from vdsh.hashers import ITQ, LSH, SpectralHashing
from vdsh.hashers.vector_hasher import METHODS, ZeroVectorWarning
from vdsh.server.app import create_app

every_method = pytest.mark.parametrize("model", METHODS)


def heaps(n_docs=80, n_dimensions=12):
    """Vectors in two heaps, as the topics of the toy corpus are; negative numbers among them."""
    rng = np.random.RandomState(0)
    middle = rng.normal(size=(2, n_dimensions))
    return middle[np.arange(n_docs) % 2] + 0.3 * rng.normal(size=(n_docs, n_dimensions))


VECTORS = heaps()
TEXTS, LABELS = toy_corpus()


@pytest.fixture(scope="module")
def hasher():
    """A small model of vectors; tests must not change it."""
    return VectorHasher(16, random_state=0).fit(VECTORS, source="a drawer")


@pytest.fixture(scope="module")
def folder(hasher, tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "model"
    hasher.save(path)
    return path


@pytest.fixture
def store(hasher, tmp_path):
    with open_store(tmp_path / "store", hasher) as opened:
        opened.upsert(documents(), vectors=VECTORS)
        yield opened


def documents():
    return [Document(f"d{i:02}", text, (LABELS[i],)) for i, text in enumerate(TEXTS)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::vdsh.hashers.vector_hasher.ZeroVectorWarning")
@parametrize_with_checks([VectorHasher(8, model=model) for model in METHODS])
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


@every_method
def test_near_vectors_get_near_codes_saved_or_not_alone_or_together(model, tmp_path):
    fitted = VectorHasher(16, model=model, random_state=0).fit(VECTORS)
    bits = fitted.transform(VECTORS).astype(int)
    distances = np.abs(bits[:, None] - bits).sum(axis=2)
    same = np.equal.outer(np.arange(80) % 2, np.arange(80) % 2)
    assert distances[same].mean() < distances[~same].mean() - 1
    codes = fitted.encode(VECTORS)
    fitted.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert loaded.takes_vectors and loaded.fingerprint == fitted.model_.fingerprint
    assert (loaded.encode_vectors(VECTORS.astype(np.float64)) == codes).all()
    assert (np.vstack([loaded.encode_vectors([row]) for row in VECTORS]) == codes).all()
    assert (VectorHasher.load(tmp_path / "model").encode(3 * VECTORS) == codes).all()  # length 1
    again = VectorHasher(16, model=model, random_state=0).fit(VECTORS).encode(VECTORS)
    assert (again == codes).all()


@pytest.mark.parametrize("kind", [LSH, ITQ, SpectralHashing])
def test_baselines_take_vectors_as_they_are(kind):
    fitted = kind(8, weighting="given", random_state=0).fit(VECTORS)
    assert fitted.encode(VECTORS).shape == (80, 1)
    with pytest.raises(ValueError, match="Negative values"):
        kind(8).fit(VECTORS)  # by counts, which tf-idf is of


def test_a_model_of_vectors_is_itq_and_has_no_words_to_explain_bits(hasher, folder):
    assert hasher.model == "itq" and not Model.load(folder).words
    assert "from a drawer" in (folder / "README.md").read_text()
    with pytest.raises(InputError, match="knows no words to explain bits with"):
        explain_bits(hasher.model_)


def test_a_model_of_vectors_takes_no_texts_and_one_of_texts_no_vectors(hasher, fitted, folder):
    with pytest.raises(InputError, match="hashes vectors of 12 dimensions, and no texts"):
        hasher.model_.encode(["orbit"])
    with pytest.raises(InputError, match="hashes texts, and no vectors"):
        fitted.model_.encode_vectors(VECTORS)
    with pytest.raises(InputError, match="hashes vectors. Load it with VectorHasher"):
        TextHasher.load(folder)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (VECTORS[:79], "Got 80 documents but 79 vectors"),
        (VECTORS[:, :11], "takes vectors of 12 dimensions. Got 11"),
        (np.where(np.arange(80)[:, None] == 7, np.nan, VECTORS), "Vector 8 has a value that is no"),
        (np.where(np.arange(80)[:, None] == 7, 0, VECTORS), "Vector 8 is zero"),
        ([["a"] * 12] * 80, "must be numbers"),
    ],
)
def test_bad_vectors_are_one_sentence_and_nothing_is_written(hasher, tmp_path, vectors, message):
    with open_store(tmp_path / "store", hasher) as opened:
        with pytest.raises(InputError, match=message):
            opened.upsert(documents(), vectors=vectors)
        assert opened.count() == 0


def test_documents_without_vectors_and_other_mistakes(hasher, store):
    with pytest.raises(InputError, match="Give the vectors of the texts"):
        store.upsert([Document("new", "orbit")])
    with pytest.raises(InputError, match="codes or vectors, and not both"):
        store.upsert(documents(), np.zeros((80, 2), np.uint8), vectors=VECTORS)
    with pytest.raises(InputError, match=r"No model 'pca' of vectors"):
        VectorHasher(8, model="pca").fit(VECTORS)
    with pytest.warns(ZeroVectorWarning, match="1 of 2 vectors are zero"):
        hasher.encode([[0.0] * 12, [1.0] * 12])
    with pytest.raises(InputError, match="takes vectors, but .* keeps texts"):
        store.reindex(hasher)
    assert store.count() == 80 and store.check() == []


def test_a_query_stays_floats_and_documents_are_bits(hasher, store):
    model, vector = hasher.model_, VECTORS[3]
    codes, chances = model.codes_and_weights(model.rows([vector]))
    every = hasher.encode(VECTORS)
    expected = expected_distances(every, chances[0])
    hits = store.search(vector=vector, k=80)
    assert [hit.expected for hit in hits] == sorted(expected.tolist())
    by_distance = store.search(vector=vector.tolist(), k=80, rank="distance")
    exact = (unpack(every) != unpack(codes)).sum(axis=1)
    assert [hit.distance for hit in by_distance] == sorted(exact.tolist())
    (same,) = store.search(vector=vector, k=1, rank="distance", where={"label": LABELS[3]})
    assert same.distance == 0


def test_a_text_beside_a_vector_adds_its_words_and_alone_is_answered_by_them(store):
    hits = store.search("satellite", vector=VECTORS[0])
    assert hits[0].words == ("satellite",) and hits[0].labels == ("space",)
    alone = store.search("satellite")
    assert alone and all("satellite" in hit.text for hit in alone[:3]) and alone.warning is None
    assert not store.search("xyzzy") and "xyzzy" in store.search("xyzzy").warning


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda store: store.search("orbit", rank="distance"), "so a text has no code"),
        (lambda store: store.within("orbit", 2), "so a text has no code"),
        (lambda store: store.search(vector=VECTORS[0], rank="relevance"), "a vector has no words"),
        (lambda store: store.search(vector=VECTORS[0][:5]), "12 dimensions. Got 5"),
        (lambda store: store.search(vector=VECTORS[:2]), "one list of numbers"),
        (lambda store: store.search(vector=3), "one list of numbers"),
        (lambda store: store.search(vector=np.zeros(12)), "is zero"),
        (lambda store: store.search(vector=[np.nan] * 12), "not a finite number"),
        (lambda store: store.search(np.zeros(2, np.uint8), vector=VECTORS[0]), "Leave the code"),
    ],
)
def test_bad_questions_are_one_sentence(store, ask, message):
    with pytest.raises(InputError, match=message):
        ask(store)


def test_the_service_takes_a_vector(store):
    with TestClient(create_app(store), base_url="http://127.0.0.1:8000") as api:

        def ask(**body):
            answer = api.post("/v1/search", json=body)
            return answer.status_code, answer.json()

        vector = VECTORS[4].tolist()
        status, found = ask(vector=vector, k=3)
        assert status == 200
        assert [h["id"] for h in found["hits"]] == [h.id for h in store.search(vector=vector, k=3)]
        status, found = ask(vector=vector, text="goal", highlight=True)
        assert status == 200 and found["hits"][0]["words"] == ["goal"]
        assert ask(text="goal", highlight=True)[0] == 200
        assert ask(id="d04", rank="distance")[1]["hits"][0]["id"] == "d04"
        assert "12 dimensions. Got 1" in ask(vector=[1.0])[1]["error"]
        assert "Give one of text, code, id and vector" in ask(vector=vector, id="d04")[1]["error"]


@pytest.fixture
def files(tmp_path):
    rows = [
        {"id": d.id, "text": d.text, "labels": d.labels, "place": VECTORS[i].tolist()}
        for i, d in enumerate(documents())
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    np.save(tmp_path / "v.npy", VECTORS)
    return tmp_path


def test_the_command_line_learns_encodes_and_indexes_vectors(vdsh, files, folder):
    settings = ("--bits", 8, "-q")
    result = vdsh("fit", "--vectors", "v.npy", "--no-text", "--out", "m", *settings)
    assert "Learned 8-bit codes from 80 vectors of 12 dimensions" in result.stdout
    assert Model.load(files / "m").name == "itq"
    vdsh("fit", "docs.jsonl", "--vectors", "place", "--no-text", "--out", "n", *settings)
    assert Model.load(files / "n").fingerprint == Model.load(files / "m").fingerprint
    lines = vdsh("encode", folder, "--vectors", "v.npy").stdout.splitlines()
    named = vdsh("encode", folder, "docs.jsonl", "--vectors", "place").stdout.splitlines()
    codes = Model.load(folder).encode_vectors(VECTORS)
    assert lines[0] == f"1\t{codes[0].tobytes().hex()}" and len(lines) == 80
    assert "knows no words to explain bits with" in vdsh("explain", folder).stderr
    assert named[5] == f"d05\t{codes[5].tobytes().hex()}"
    vdsh("index", folder, "docs.jsonl", "--vectors", "place", "--store", "s")
    with open_store(files / "s") as opened:
        assert opened.count() == 80 and opened.info()["fields"] == []
        assert opened.find("d05").code == codes[5].tobytes().hex()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit --no-text --out m", "give them with --vectors"),
        ("fit --out m", "Give documents to learn from"),
        ("fit --vectors cut.npy --no-text --out m", "not a complete array"),
        ("fit --vectors v.npy --no-text --out m --model ksh", "No model 'ksh' of vectors"),
        ("fit --vectors v.npy --no-text --out m --set weighting=tf", "for models of texts"),
        ("fit --vectors v.npy --no-text --out m --model vdsh", "No model 'vdsh' of vectors"),
        ("fit --vectors v.npy --no-text --out m --epochs 3", "for models of texts"),
        ("fit --vectors v.npy --no-text --out m --validation d", "for models of texts"),
        ("fit few.jsonl --vectors v.npy --no-text --out m", "3 documents but 80 vectors"),
        ("fit none.jsonl --vectors v.npy --no-text --out m", "no documents"),
        ("encode MODEL --vectors narrow.npy --out m", "12 dimensions. Got 4"),
        ("encode MODEL --vectors place --out m", "is not a file of vectors"),
        ("encode MODEL docs.jsonl --out m", "Give the vectors"),
        ("encode MODEL --out m", "--vectors FILE"),
        ("index MODEL docs.jsonl --store m", "hashes vectors. Give them"),
        ("index MODEL docs.jsonl --vectors narrow.npy --store m", "12 dimensions. Got 4"),
        ("index MODEL docs.jsonl --vectors nan.npy --store m", "not a finite number"),
        ("index MODEL few.jsonl --vectors v.npy --store m", "3 documents but 80 vectors"),
    ],
)
def test_mistakes_on_the_command_line_write_nothing(vdsh, files, folder, arguments, message):
    (files / "cut.npy").write_bytes((files / "v.npy").read_bytes()[:-100])
    np.save(files / "narrow.npy", VECTORS[:, :4])
    np.save(files / "nan.npy", np.where(VECTORS > 1, np.nan, VECTORS))
    (files / "few.jsonl").write_text("\n".join((files / "docs.jsonl").read_text().split("\n")[:3]))
    (files / "none.jsonl").write_text("")
    result = vdsh(*(folder if word == "MODEL" else word for word in arguments.split()))
    assert result.returncode == 1, result.stdout
    assert message in " ".join(result.stderr.split()) and "Traceback" not in result.stderr
    assert not (files / "m").exists()
