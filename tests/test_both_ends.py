"""Words and vectors hashed together: learned, saved, stored, searched and served (#19)."""

import json

import numpy as np
import onnxruntime
import pytest
from fastapi.testclient import TestClient

from conftest import QUICK, toy_corpus
from vdsh import Client, Document, Model, TextHasher, open_store
from vdsh.client.connection import Connection
from vdsh.codes import unpack
from vdsh.errors import InputError
from vdsh.explain import explain_text
from vdsh.export import export_encoder
from vdsh.server.app import create_app

TEXTS, LABELS = toy_corpus(120)


def heaps(n_docs=120, n_dimensions=12):
    """Vectors in three heaps, of which words know nothing."""
    rng = np.random.RandomState(0)
    middle = rng.normal(size=(3, n_dimensions))
    return middle[np.arange(n_docs) % 3] + 0.2 * rng.normal(size=(n_docs, n_dimensions))


VECTORS = heaps()


def documents():
    return [Document(f"d{i:03}", text, (LABELS[i],)) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def hasher():
    """A small model of words and vectors; tests must not change it."""
    made = TextHasher("vdsh", 16, random_state=0, **(QUICK | {"neighbor_share": 0.5}))
    return made.fit(TEXTS, LABELS, vectors=VECTORS, both_ends=True, vectors_source="a drawer")


@pytest.fixture(scope="module")
def folder(hasher, tmp_path_factory):
    path = tmp_path_factory.mktemp("both") / "model"
    hasher.save(path)
    return path


@pytest.fixture
def store(hasher, tmp_path):
    with open_store(tmp_path / "store", hasher) as opened:
        opened.upsert(iter(documents()), vectors=VECTORS)
        yield opened


def apart(codes, groups):
    """Say how much nearer the codes of one group are than those of several, in bits."""
    bits = unpack(codes).astype(int)
    distances = np.abs(bits[:, None] - bits).sum(axis=2)
    same = np.equal.outer(groups, groups)
    return distances[~same].mean() - distances[same].mean()


def test_a_code_tells_words_and_vector_and_either_does_alone(hasher):
    rows = np.arange(120)
    together, words = hasher.encode(TEXTS, VECTORS), hasher.encode(TEXTS)
    vectors = hasher.model_.encode_vectors(VECTORS)
    assert apart(together, rows % 3) > 1 and apart(together, rows % 2) > 1
    assert apart(words, rows % 2) > 1 and apart(words, rows % 3) < 0.5
    assert apart(vectors, rows % 3) > 1


def test_codes_are_the_same_alone_among_others_saved_and_with_longer_vectors(hasher, folder):
    codes, loaded = hasher.encode(TEXTS, VECTORS), TextHasher.load(folder)
    assert loaded.model_.fingerprint == hasher.model_.fingerprint
    assert (loaded.encode(TEXTS, 3 * VECTORS) == codes).all()
    pairs = zip(TEXTS[:20], VECTORS, strict=False)
    alone = [hasher.encode([text], vector[None]) for text, vector in pairs]
    assert (np.vstack(alone) == codes[:20]).all()
    some = [*VECTORS[:2].tolist(), None, VECTORS[3]]
    wanted = [*codes[:2], hasher.encode(TEXTS[2:3])[0], codes[3]]
    assert (hasher.encode(TEXTS[:4], some) == wanted).all()
    card = (folder / "README.md").read_text()
    assert "vectors of 12 dimensions from a drawer, which it sees beside words" in card


def test_a_store_takes_texts_vectors_and_both(store, hasher):
    code = hasher.encode(TEXTS[:1], VECTORS[:1])[0]
    assert store.find("d000").code == code.tobytes().hex()
    hits = store.search(TEXTS[0], vector=VECTORS[0], rank="distance", k=1)
    assert hits[0].distance == 0
    assert store.search("satellite", vector=VECTORS[0])[0].words == ("satellite",)
    assert store.search("satellite")[0].words == ("satellite",)
    assert store.search("satellite", rank="distance")
    near = store.search(vector=VECTORS[0], k=20)
    assert near[0].expected is not None
    assert np.mean([int(hit.id[1:]) % 3 == 0 for hit in near]) > 0.6
    store.upsert(documents()[:2], vectors=[None, VECTORS[1]])
    assert store.find("d000").code == hasher.encode(TEXTS[:1])[0].tobytes().hex()
    assert store.check() == []
    with pytest.raises(InputError, match="takes vectors, but .* keeps texts"):
        store.reindex(hasher)
    assert "nearest" not in store.drift(recent=60).measures


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (VECTORS[:119], "Got 120 documents but 119 vectors"),
        (VECTORS[:, :11], "takes vectors of 12 dimensions. Got 11"),
        (
            np.where(np.arange(120)[:, None] == 7, np.nan, VECTORS),
            "Vector 8 has a value that is no",
        ),
        (np.where(np.arange(120)[:, None] == 7, 0, VECTORS), "Vector 8 is zero"),
        ([*VECTORS[:119], ["a"] * 12], "array of numbers"),
    ],
)
def test_bad_vectors_are_one_sentence_and_nothing_is_written(hasher, tmp_path, vectors, message):
    with open_store(tmp_path / "store", hasher) as opened:
        with pytest.raises(InputError, match=message):
            opened.upsert(documents(), vectors=vectors)
        assert opened.count() == 0


def test_what_does_not_go_together_is_said(hasher, fitted, folder):
    with pytest.raises(InputError, match="both_ends needs the vectors"):
        TextHasher("vdsh", 8, **QUICK).fit(TEXTS, both_ends=True)
    with pytest.raises(InputError, match="embedder belongs to both_ends"):
        TextHasher("vdsh", 8, **QUICK).fit(TEXTS, vectors=VECTORS, embedder="model2vec:x")
    with pytest.raises(InputError, match="hashes texts, and no vectors"):
        fitted.encode(TEXTS, VECTORS)
    with pytest.raises(InputError, match="cannot be recalibrated"):
        TextHasher.load(folder).recalibrate(TEXTS)
    with pytest.raises(InputError, match="sees vectors of 12 dimensions beside words"):
        TextHasher(**hasher.get_params()).fit(TEXTS, start=hasher)


def test_onnx_encodes_as_the_model_does(hasher, tmp_path):
    export_encoder(hasher, tmp_path / "both.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "both.onnx")
    counts = hasher.model_.count_words(TEXTS).to_csr().toarray().astype(np.float32)
    given = {"counts": counts, "vectors": VECTORS.astype(np.float32)}
    given["vectors"][3] = 0  # has none
    (codes,) = session.run(["codes"], given)
    wanted = hasher.encode(TEXTS, [None if i == 3 else v for i, v in enumerate(VECTORS)])
    assert (codes != wanted).any(axis=1).sum() <= 1  # a score may lie on the threshold


def test_it_learns_on_and_its_words_are_explained(hasher):
    later = TextHasher(**(hasher.get_params() | {"epochs": 2}))
    later.fit(TEXTS, LABELS, vectors=VECTORS, both_ends=True, start=hasher)
    assert later.model_.n_beside == 12
    told = explain_text(hasher, "orbit moon")
    assert told.code == hasher.encode(["orbit moon"])[0].tobytes().hex()


def test_the_service_and_its_client_take_vectors(store, hasher, monkeypatch):
    with TestClient(create_app(store, writable=True), base_url="http://127.0.0.1:8000") as api:

        def ask(_, method, path, body=None):
            kind = {"Content-Type": "application/json"} if body else {}
            answer = api.request(method, path, content=body, headers=kind)
            if answer.status_code != 200:
                raise InputError(answer.json()["error"])
            return answer.json()

        monkeypatch.setattr(Connection, "ask", ask)
        client, codes = Client("http://127.0.0.1:8000"), hasher.encode(TEXTS, VECTORS)
        assert (client.encode(TEXTS[:3], VECTORS[:3]) == codes[:3]).all()
        alone = {"vectors": VECTORS[:2].tolist()}
        found = api.post("/v1/encode", json=alone).json()["codes"]
        assert found[0] == hasher.model_.encode_vectors(VECTORS[:1])[0].tobytes().hex()
        new = [Document("new", TEXTS[3]), Document("bare", TEXTS[3])]
        assert client.upsert(new, vectors=[VECTORS[3], None]) == 2
        assert store.find("new").code == codes[3].tobytes().hex()
        assert store.find("bare").code == hasher.encode(TEXTS[3:4])[0].tobytes().hex()
        assert client.search(TEXTS[0], vector=VECTORS[0]) == store.search(
            TEXTS[0], vector=VECTORS[0]
        )
        lines = [{"id": "line", "text": TEXTS[5], "vector": VECTORS[5].tolist(), "n": 1}]
        kind = {"Content-Type": "application/x-ndjson"}
        api.post("/v1/documents", content="\n".join(map(json.dumps, lines)), headers=kind)
        assert store.find("line").code == codes[5].tobytes().hex()
        assert store.get("line").metadata == {"n": 1}
        for bad, said in (([1.0], "12 dimensions. Got 1"), ([0.0] * 12, "Vector 1 is zero")):
            with pytest.raises(InputError, match=said):
                client.upsert([Document("bad", "moon")], vectors=[bad])
        with pytest.raises(InputError, match="1 documents but 2 vectors"):
            client.upsert([Document("bad", "moon")], vectors=VECTORS[:2])
        with pytest.raises(InputError, match="Got 2 documents but 1 vectors"):
            client.encode(["a", "b"], VECTORS[:1])
        assert store.get("bad") is None


@pytest.fixture
def files(tmp_path):
    rows = [
        {"id": d.id, "text": d.text, "labels": d.labels, "place": VECTORS[i].tolist()}
        for i, d in enumerate(documents())
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    np.save(tmp_path / "v.npy", VECTORS)
    np.save(tmp_path / "one.npy", VECTORS[0])
    np.save(tmp_path / "narrow.npy", VECTORS[:, :4])
    return tmp_path


def test_the_command_line_learns_encodes_indexes_and_searches(vdsh, files):
    settings = ("--bits", 16, "--epochs", 2, "--set", "hidden_size=16", "--device", "cpu", "-q")
    given = ("fit", "docs.jsonl", "--both-ends", *settings)
    assert "--vectors FILE --store" in vdsh(*given, "--vectors", "v.npy", "--out", "m").stdout
    assert vdsh(*given, "--vectors", "place", "--out", "n").returncode == 0
    model = Model.load(files / "m")
    assert model.fingerprint == Model.load(files / "n").fingerprint
    codes = model.encode(TEXTS, VECTORS)
    named = vdsh("encode", "m", "docs.jsonl", "--vectors", "place").stdout.splitlines()
    assert named[5] == f"d005\t{codes[5].tobytes().hex()}"
    alone = vdsh("encode", "m", "--vectors", "v.npy").stdout.splitlines()
    assert alone[5] == f"6\t{model.encode_vectors(VECTORS[5:6])[0].tobytes().hex()}"
    vdsh("index", "m", "docs.jsonl", "--vectors", "v.npy", "--store", "s")
    found = vdsh("search", "s", TEXTS[0], "--vector", "one.npy", "--rank", "distance", "--json")
    assert json.loads(found.stdout.splitlines()[0])["distance"] == 0
    again = vdsh("search", "s", "--vector", json.dumps(VECTORS[0].tolist()), "-k", 3)
    assert again.returncode == 0 and again.stdout.count("\n") >= 3
    assert "by their words alone" in vdsh("index", "m", "docs.jsonl", "--store", "t").stderr
    for more, said in (
        (("--vector", "[1, 2]"), "12 dimensions. Got 2"),
        (("--vector", "[1, 2"), "list of numbers such as"),
        (("--vector", "v.npy"), "one list of numbers"),
        (("--vector", "one.npy", "--code", "00ff"), "not with --code"),
        (("-", "--vector", "one.npy"), "standard input"),
    ):
        result = vdsh("search", "s", *more)
        assert result.returncode == 1 and said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--both-ends", "give vectors with --vectors FILE"),
        ("--both-ends --no-text --vectors v.npy", "leave --no-text out"),
        ("--both-ends --vectors v.npy --validation docs.jsonl", "no vectors of the documents of"),
        ("--both-ends --vectors v.npy --model itq", "takes no vectors"),
    ],
)
def test_mistakes_on_the_command_line_write_nothing(vdsh, files, arguments, message):
    result = vdsh("fit", "docs.jsonl", *arguments.split(), "--out", "m", "-q")
    assert result.returncode == 1 and message in result.stderr
    assert not (files / "m").exists()
