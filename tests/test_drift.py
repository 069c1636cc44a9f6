"""Whether the world has moved away from a model: documents of then beside those of now."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from fastapi.testclient import TestClient
from scipy import stats

from conftest import SPACE, toy_corpus
from vdsh import Document, Model, TextHasher, open_store
from vdsh.errors import FolderError, InputError
from vdsh.model.drift import compare, kolmogorov
from vdsh.model.profile import Histogram, make_profile
from vdsh.server.app import create_app
from vdsh.store import store as stores
from vdsh.store.engine import Engine
from vdsh.text import SMART, tokenize

NEW = ["penguin iceberg glacier orbit", "iceberg the polar penguin"]  # what nobody spoke of before


def documents(texts, name="d"):
    return [Document(f"{name}{i}", text) for i, text in enumerate(texts)]


@pytest.fixture
def model(model_folder):
    """The small model as if 200 documents had been held out when it learned."""
    model = Model.load(model_folder)
    others = model.encode(toy_corpus(100, 1)[0])
    model.profile = make_profile(model, toy_corpus(200, 2)[0], others)
    return model


@pytest.fixture
def store(tmp_path, model):
    with open_store(tmp_path / "store", model) as store:
        store.upsert(documents(toy_corpus(300, 3)[0]))
    return tmp_path / "store"


def test_documents_like_those_of_then_raise_no_alarm(model):
    others = model.encode(toy_corpus(100, 1)[0])
    for seed in range(20):
        recent = make_profile(model, toy_corpus(200, 10 + seed)[0], others)
        assert compare(model.profile, recent).drifted is False


@pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")
def test_new_documents_raise_the_hand_and_the_exit_code(vdsh, store):
    calm = vdsh("drift", store)
    assert (calm.returncode, calm.stdout.count("moved")) == (0, 0)
    assert "No drift" in calm.stdout
    with open_store(store) as opened:
        opened.upsert(documents(NEW * 100, "n"))
        opened.upsert(documents(toy_corpus(20, 4)[0], "e"))
    found = vdsh("drift", store, "--recent", 200)
    assert found.returncode == 3
    assert "share of unknown words" in found.stdout and "vdsh fit --from" in found.stdout
    told = json.loads(vdsh("drift", store, "--recent", 200, "--json").stdout)
    assert (told["drifted"], told["documents"], told["reference"]) == (True, 200, 200)
    assert list(told["measures"]) == ["unknown", "sureness", "balance", "entropy", "nearest"]
    unknown = told["measures"]["unknown"]
    assert unknown["learned"] == 0 and unknown["recent"] > 0.6 and unknown["moved"]


def test_documents_of_one_matter_alone_are_told_by_their_bits(vdsh, store, tmp_path):
    lines = [json.dumps({"id": f"s{i}", "text": " ".join(SPACE)}) for i in range(60)]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    found = json.loads(vdsh("drift", store, "new.jsonl", "--json", "-q").stdout)
    assert not found["measures"]["unknown"]["moved"]
    assert found["measures"]["balance"]["moved"] and found["measures"]["entropy"]["moved"]


def test_ten_documents_are_too_few_to_say(vdsh, store, tmp_path):
    (tmp_path / "ten.txt").write_text("penguin iceberg\n" * 10)
    found = vdsh("drift", store, "ten.txt", "-q")
    assert found.returncode == 0
    assert found.stdout == "Too few to say: 10 recent documents, of 50 that it takes.\n"
    told = json.loads(vdsh("drift", store, "ten.txt", "--json", "-q").stdout)
    assert told["drifted"] is None and told["measures"] == {}


@pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")
def test_a_model_that_kept_nothing_is_held_against_the_oldest(tmp_path, fitted):
    with open_store(tmp_path / "old", fitted) as store:
        store.upsert(documents(toy_corpus(90, 1)[0]))
        assert "Too few to say: 45 recent documents" in store.drift().verdict
        few = store.drift(documents(NEW * 50, "n"))
        assert few.drifted is None and "45 oldest documents of the store" in few.verdict
        store.upsert(documents(toy_corpus(110, 2)[0], "e"))
        assert store.drift().drifted is False
        store.upsert(documents(NEW * 50, "n"))
        found = store.drift(recent=100)
    assert found.drifted and "100 oldest documents of the store" in found.verdict
    assert "nearest" not in found.measures  # there are too few others


def test_recent_documents_are_not_their_own_nearest(store):
    with open_store(store) as opened:
        new = documents([f"{text} orbit goal" for text in toy_corpus(200, 5)[0]], "n")
        before = opened.drift(new).measures
        opened.upsert(new)
        assert opened.drift(new).measures["unknown"] == before["unknown"]
        assert opened.drift(new).measures["nearest"].recent == pytest.approx(
            before["nearest"].recent, abs=0.3
        )
        assert opened.drift(recent=200).measures == opened.drift(new).measures


def test_of_many_documents_some_are_drawn(store, monkeypatch):
    monkeypatch.setattr(stores, "MOST_DRAWN", 60)
    with open_store(store) as opened:
        assert opened.drift(iter(documents(NEW * 50, "n"))).documents == 60


@pytest.mark.parametrize("n", [5, 60, 1000])
def test_codes_of_some_documents_are_those_of_the_store(store, n):
    with open_store(store) as opened:
        opened.delete([f"d{i}" for i in range(0, 200)])
        known = {
            id: code.tobytes()
            for ids, codes in opened.codes()
            for id, code in zip(ids, codes, strict=True)
        }
        engine = opened._engine
        for found in (engine.some_codes(n), Engine.some_codes(engine, n)):
            assert len(found) == min(n, 100) and set(found) <= set(known.items())


def test_an_engine_without_an_order_asks_for_documents():
    with pytest.raises(InputError, match="Give them: vdsh drift STORE DOCS"):
        Engine.written(SimpleNamespace(shown="postgresql://x"), 5, last=True)


def test_recent_must_be_a_count(vdsh, store):
    found = vdsh("drift", store, "--recent", 0)
    assert found.returncode == 1 and "recent must be" in found.stderr


def test_a_fitted_model_keeps_what_held_out_documents_look_like(tmp_path):
    hasher = TextHasher("lsh", 8, random_state=0)
    hasher.fit(toy_corpus(80)[0], validation=NEW * 5)
    profile = hasher.model_.profile
    assert profile.documents == 10 and profile.among == 80 and profile.sureness is None
    assert profile.unknown.mean == pytest.approx((3 / 4 + 1) / 2)
    hasher.save(tmp_path / "model")
    assert Model.load(tmp_path / "model").profile == profile
    hasher.recalibrate(toy_corpus(80)[0], validation=toy_corpus(80)[0])
    assert hasher.model_.profile.documents == 80
    assert TextHasher("lsh", 8).fit(toy_corpus(80)[0]).model_.profile is None


@pytest.mark.parametrize(
    "change",
    [
        {"ones": [1]},
        {"documents": 3},
        {"documents": "many"},
        {"among": -1},
        {"entropy": [1.0]},
        {"entropy": [float("nan"), 0.0]},
        {"unknown": None},
        {"unknown": {"counts": [200], "mean": 0.5}},
        {"nearest": {"counts": ["a"], "mean": 0.5}},
        {"something": 1},
    ],
)
def test_a_damaged_profile_is_a_damaged_folder(tmp_path, model, change):
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["profile"] |= change
    file.write_text(json.dumps(manifest))
    with pytest.raises(FolderError, match="damaged"):
        Model.load(tmp_path / "model")


def test_shares_of_unknown_words_equal_a_slow_count(fitted):
    texts = ["the orbit of a Penguin", "", "the of", "goal goal GOAL iceberg", *toy_corpus(10)[0]]
    known = set(fitted.model_.words)
    for text, share in zip(texts, fitted.model_.unknown_shares(texts), strict=True):
        words = [word for word in tokenize(text) if word not in SMART]
        missing = [word for word in words if word not in known]
        assert share == pytest.approx(len(missing) / max(len(words), 1))
    assert fitted.model_.unknown_shares([]).shape == (0,)


def test_the_test_of_distributions_is_that_of_the_books(model):
    for value in (0.1, 0.5, 0.9, 1.36, 2.5):
        assert kolmogorov(value) == pytest.approx(stats.kstwobign.sf(value), abs=1e-6)
    rng = np.random.RandomState(0)
    first, second = rng.randint(0, 50, 400), rng.randint(2, 52, 300).clip(max=49)
    profiles = [
        model.profile._replace(unknown=Histogram(np.bincount(x, minlength=50).tolist(), x.mean()))
        for x in (first, second)
    ]
    ours = compare(*profiles).measures["unknown"]
    theirs = stats.ks_2samp(first, second, method="asymp")
    assert ours.effect == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=0.2)


def test_the_service_tells_it_to_prometheus(store):
    with TestClient(create_app(store), base_url="http://localhost") as api:
        lines = set(api.get("/metrics").text.splitlines())
    assert "vdsh_drifted 0.0" in lines
    assert 'vdsh_drift_value{documents="learned",measure="unknown"} 0.0' in lines
    assert any(line.startswith('vdsh_drift_effect{measure="nearest"}') for line in lines)
