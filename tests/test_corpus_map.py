"""The map of a store: made once, kept safely, and new texts placed on it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from conftest import toy_corpus
from vdsh import Document, TextHasher, corpus_map, open_store
from vdsh.errors import FolderError, InputError, MissingFileError, WriteError


@pytest.fixture(scope="module")
def made(fitted: TextHasher, tmp_path_factory: pytest.TempPathFactory):
    """A store of the toy corpus, one document without a label, and its map."""
    path = tmp_path_factory.mktemp("map") / "store"
    rows = enumerate(zip(*toy_corpus(), strict=True))
    documents = [Document(f"d{i}", text, (label,)) for i, (text, label) in rows]
    documents.append(Document("é/odd id", "orbit moon", None, {"title": "  A\n title "}))
    with open_store(path, fitted) as store:
        store.upsert(documents)
        corpus_map.save(path / corpus_map.FILE, corpus_map.make_map(store))
    return path


def read(path):
    return corpus_map.load(path / corpus_map.FILE)


def place(found, fitted, text):
    return found.place(fitted.hasher_.scores(fitted.vectorizer_.transform([text]))[0])


def middles(found):
    return {
        name: np.median(found.points[found.label == number], axis=0)
        for number, name in enumerate(found.labels)
    }


def test_a_map_keeps_topics_apart(made):
    found = read(made)
    assert found.labels == ["space", "sport"]
    assert len(found) == 81
    assert np.abs(found.points).max() <= 1
    middle = middles(found)
    own = np.linalg.norm(found.points - [middle[n] for n in _names(found)], axis=1)
    assert np.median(own) < np.linalg.norm(middle["space"] - middle["sport"]) / 2


def _names(found):
    return [found.labels[max(number, 0)] for number in found.label]


def test_a_document_without_label_has_minus_one_and_a_title_is_one_line(made):
    found = read(made)
    row = found.ids.index("é/odd id")
    assert found.label[row] == -1
    assert found.titles[row] == "A title"


def test_a_new_text_is_placed_among_its_topic(made, fitted):
    found = read(made)
    middle = middles(found)
    for text, topic in (("moon orbit crew rocket", "space"), ("goal team coach match", "sport")):
        at = np.array(place(found, fitted, text))
        near = {name: np.linalg.norm(at - other) for name, other in middle.items()}
        assert min(near, key=near.get) == topic


def test_a_text_between_two_groups_is_placed_inside_one_of_them():
    points = np.array([[-1, 0]] * 10 + [[1, 0]] * 5, np.float32)
    scores = np.linspace(0.9, 1.1, 15, dtype=np.float32)[:, None]
    names = [str(i) for i in range(15)]
    found = corpus_map.CorpusMap(names, names, points, scores, np.zeros(15, np.int32), ["a"])
    assert found.place(np.array([1.2], np.float32))[0] in (-1, 1)


def test_the_same_seed_gives_the_same_map(made):
    with open_store(made) as store:
        again = corpus_map.make_map(store)
        assert np.array_equal(again.points, read(made).points)
        some = [corpus_map.make_map(store, limit=20, seed=seed) for seed in (1, 1, 2)]
    assert [len(found) for found in some] == [20, 20, 20]
    assert some[0].ids == some[1].ids != some[2].ids
    assert some[0].facts["documents"] == 81


@pytest.mark.parametrize("n_documents", [1, 2, 5])
def test_a_few_documents_have_a_map_too(fitted, tmp_path, n_documents):
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert(Document(str(i), "orbit moon crew") for i in range(n_documents))
        points = corpus_map.make_map(store).points
    assert points.shape == (n_documents, 2)
    assert np.isfinite(points).all()


def test_an_empty_store_and_a_silly_limit_are_refused(fitted, tmp_path):
    with open_store(tmp_path / "store", fitted) as store:
        with pytest.raises(InputError, match="store is empty"):
            corpus_map.make_map(store)
        with pytest.raises(InputError, match="at least 1"):
            corpus_map.make_map(store, limit=0)


def test_what_is_no_map_is_told_in_a_sentence(made, tmp_path):
    with pytest.raises(MissingFileError, match="Make one: vdsh research map"):
        corpus_map.load(tmp_path / corpus_map.FILE)
    content = (made / corpus_map.FILE).read_bytes()
    for damaged in (b"", content[:100], content[:-1], b"x" + content[1:]):
        (tmp_path / corpus_map.FILE).write_bytes(damaged)
        with pytest.raises(FolderError, match="damaged. Make it again"):
            corpus_map.load(tmp_path / corpus_map.FILE)
    newer = content.replace(b'"format":"2"', b'"format":"9"')
    (tmp_path / corpus_map.FILE).write_bytes(newer)
    with pytest.raises(FolderError, match="has format 9"):
        corpus_map.load(tmp_path / corpus_map.FILE)


@pytest.mark.parametrize(
    "harm",
    [
        lambda m: {"points": m.points[:-1]},
        lambda m: {"points": m.points.astype(np.float64)},
        lambda m: {"scores": m.scores * np.nan},
        lambda m: {"scores": m.scores[:, 0]},
        lambda m: {"label": m.label + 1000},
        lambda m: {"titles": [1] * len(m)},
        lambda m: {"facts": []},
        lambda m: {"facts": {}},
        lambda m: {"facts": {"documents": 81}},
        lambda m: {"ids": m.ids[1:]},
        lambda m: {"titles": ["\ud800"] * len(m)},  # which no answer can carry
        lambda m: {"facts": m.facts | {"seed": 2**70}},
    ],
)
def test_a_hostile_map_is_told_in_a_sentence(harm, made, tmp_path):  # #16 C
    good = read(made)
    corpus_map.save(tmp_path / corpus_map.FILE, replace(good, **harm(good)))
    with pytest.raises(FolderError, match="damaged. Make it again"):
        corpus_map.load(tmp_path / corpus_map.FILE)


NAMES = np.frombuffer(b'{"ids": [], "titles": [], "labels": []}', np.uint8)
HEADERS = [None, {}, {"format": "1"}, {"facts": "{}"}, {"format": "one", "facts": "{}"}]


@pytest.mark.parametrize("header", [*HEADERS, {"format": "1", "facts": "[" * 3000}])
@pytest.mark.parametrize("arrays", [{}, {"names": NAMES}, {"names": NAMES[:-1]}])
def test_a_map_without_its_facts_is_told_in_a_sentence(tmp_path, header, arrays):
    """#31 B5: a KeyError."""
    save_file(arrays, tmp_path / corpus_map.FILE, header)
    with pytest.raises(FolderError, match="damaged. Make it again: vdsh research map"):
        corpus_map.load(tmp_path / corpus_map.FILE)


def test_a_damaged_map_is_made_again(vdsh, made):  # #31 B5
    save_file({}, made / corpus_map.FILE)
    result = vdsh("research", "map", made, "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(read(made)) == 81


def test_a_map_that_cannot_be_written_leaves_nothing(made, tmp_path):
    with pytest.raises(WriteError, match="Could not write"):
        corpus_map.save(tmp_path / "missing" / corpus_map.FILE, read(made))
    assert not list(tmp_path.iterdir())


def test_the_verb_makes_a_map_and_says_where(vdsh, made, tmp_path):
    result = vdsh("map", made, "--limit", "30", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["placed"], facts["documents"]) == (30, 81)
    result = vdsh("map", made)
    assert "Placed all 81 documents" in result.stdout
    assert f"vdsh serve {made}" in result.stdout
    result = vdsh("map", tmp_path / "nothing")
    assert result.returncode == 1
    assert "No store at" in result.stderr


def test_the_service_gives_the_map_and_places_texts(made, tmp_path, fitted):
    from fastapi.testclient import TestClient

    from vdsh.server.app import create_app

    with TestClient(create_app(made), base_url="http://127.0.0.1") as client:
        answer = client.get("/v1/map").json()
        assert {len(answer[name]) for name in ("ids", "x", "y", "label", "titles")} == {81}
        asked = {"highlight": True, "k": 1}
        at = client.post("/v1/search", json={"id": "d3", **asked}).json()["place"]
        row = answer["ids"].index("d3")
        assert at == pytest.approx({"x": answer["x"][row], "y": answer["y"][row]}, abs=1e-4)
        at = client.post("/v1/search", json={"text": "moon orbit", **asked}).json()["place"]
        assert tuple(at.values()) == place(read(made), fitted, "moon orbit")
    open_store(tmp_path / "store", fitted).close()
    with TestClient(create_app(tmp_path / "store"), base_url="http://127.0.0.1") as client:
        answer = client.get("/v1/map")
        assert answer.status_code == 404
        assert "vdsh research map" in answer.json()["error"]
