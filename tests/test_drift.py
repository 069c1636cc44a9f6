"""Drift: documents newer than a model beside those that were held out when it learned."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from conftest import SPACE, quick, toy_corpus
from vdsh import Document, Model, TextHasher, open_store
from vdsh.documents import docstrings
from vdsh.errors import FolderError, InputError
from vdsh.model.drift import compare, make_profile, measure_drift
from vdsh.model.profile import Looks, hash_texts
from vdsh.persistence import Folder, read_folder, write_folder
from vdsh.store.engine import Engine
from vdsh.store.maintenance import written_last
from vdsh.text import SMART, tokenize

NEW = ["penguin iceberg glacier orbit", "iceberg the polar penguin"]  # what nobody spoke of before
QUICKLY = ("--epochs", 1, "--set", "hidden_size=64", "--device", "cpu", "-q")
FIELDS = ("--text-field", "subject", "--text-field", "body", "--labels-field", "team")


def documents(texts, name="d"):
    return [Document(f"{name}{i}", text) for i, text in enumerate(texts)]


@pytest.fixture
def model(model_folder):
    """The small model as if 200 documents had been held out when it learned."""
    model = Model.load(model_folder)
    model.profile = make_profile(model, toy_corpus(100, 1)[0], toy_corpus(200, 2)[0])
    return model


@pytest.fixture
def store(tmp_path, model):
    with open_store(tmp_path / "store", model) as store:
        store.upsert(documents(toy_corpus(300, 3)[0]))
    return tmp_path / "store"


@pytest.fixture(scope="session")
def tickets():
    """Real texts in the order of what they are about, as files often are."""
    modules = ("email", "numpy.lib", "numpy.ma", "scipy.stats", "sklearn.utils")
    return docstrings.collect(modules=modules)


def write_csv(path, tickets):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "subject", "body", "team"])
        rows.writerows([one.id, one.id, one.text, one.labels[0]] for one in tickets)


@pytest.mark.filterwarnings("ignore::vdsh.model.health.BitHealthWarning")  # one epoch, few areas
@pytest.mark.parametrize("method", ["vdsh", "vdsh-s", "itq"])
def test_documents_that_a_store_was_just_made_of_have_not_drifted(vdsh, tmp_path, tickets, method):
    """#31: README's own sequence ended with 3: trained documents, the last of a sorted file."""
    write_csv(tmp_path / "tickets.csv", tickets)
    settings = QUICKLY if method != "itq" else ("-q",)
    vdsh("fit", "tickets.csv", *FIELDS, "--model", method, *settings, "--out", "model")
    vdsh("index", "model", "tickets.csv", *FIELDS, "--store", "tickets", "-q")
    found = vdsh("drift", "tickets")
    assert found.returncode == 0
    assert found.stdout.startswith("Nothing to compare: all of these documents were there when")
    assert vdsh("drift", "tickets", "tickets.csv", *FIELDS, "-q").stdout == found.stdout
    assert vdsh("drift", "tickets", "--recent", 100).stdout == found.stdout


@pytest.mark.filterwarnings("ignore::vdsh.model.health.BitHealthWarning")
@pytest.mark.filterwarnings("ignore::vdsh.model.model.EmptyDocumentWarning")
def test_of_a_sorted_file_that_half_was_learned_from_nothing_has_drifted(tmp_path, tickets):
    """#31: the last written were taken for recent; new ones of another matter raise the alarm."""
    half = [tickets[i] for i in np.random.RandomState(0).permutation(len(tickets))[::2]]
    hasher = TextHasher("vdsh", 32, random_state=0, **quick("vdsh", epochs=1))
    hasher.fit([one.text for one in half], progress=False)
    with open_store(tmp_path / "store", hasher) as store:
        store.upsert(tickets)
        found = store.drift()
        assert found.drifted is False and found.documents > 700
        store.upsert(docstrings.collect(modules=("asyncio", "http", "logging")))
        assert store.drift(recent=300).drifted


def test_documents_like_those_of_then_raise_no_alarm(model):
    for seed in range(20):
        found = measure_drift(model, toy_corpus(200, 10 + seed)[0])
        assert found.drifted is False and found.documents > 190


@pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")
def test_new_documents_raise_the_alarm_and_the_exit_code(vdsh, store):
    calm = vdsh("drift", store)
    assert (calm.returncode, calm.stdout.count("moved")) == (0, 0)
    assert "No drift" in calm.stdout
    with open_store(store) as opened:
        opened.upsert(documents(toy_corpus(20, 4)[0] + NEW * 100, "n"))
    assert vdsh("drift", store).returncode == 3
    found = vdsh("drift", store, "--recent", 200)
    assert found.returncode == 3
    assert "share of unknown words" in found.stdout and "vdsh learn STORE" in found.stdout
    told = json.loads(vdsh("drift", store, "--recent", 200, "--json").stdout)
    assert (told["drifted"], told["documents"], told["reference"]) == (True, 200, 200)
    assert list(told["measures"]) == ["unknown", "certainty", "balance", "nearest"]
    unknown = told["measures"]["unknown"]
    assert unknown["learned"] == 0 and unknown["recent"] > 0.6 and unknown["moved"]


def test_documents_of_one_matter_alone_are_told_by_their_bits(vdsh, store, tmp_path):
    lines = [json.dumps({"id": f"s{i}", "text": " ".join(SPACE)}) for i in range(60)]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    found = json.loads(vdsh("drift", store, "new.jsonl", "--json", "-q").stdout)
    moved = [name for name, measure in found["measures"].items() if measure["moved"]]
    assert moved == ["balance"]


def test_only_the_worse_side_of_a_measure_is_drift(model):
    """#31: fewer unknown words than the held-out documents had was an alarm."""
    old = model.profile.held_out
    old = old._replace(unknown=np.full(200, 0.2), certainty=np.full(200, 0.8))
    old = old._replace(nearest=np.full(200, 3.0))
    better = {"unknown": 0.0, "certainty": 0.99, "nearest": 0.0}
    worse = {"unknown": 0.4, "certainty": 0.6, "nearest": 5.0}
    for name in better:
        calm = compare(old, old._replace(**{name: np.full(200, better[name])}))
        assert calm.drifted is False and calm.measures[name].effect == 0
        found = compare(old, old._replace(**{name: np.full(200, worse[name])}))
        assert found.measures[name].moved and found.measures[name].effect == 1


def test_ten_documents_are_too_few_to_say(vdsh, store, tmp_path):
    (tmp_path / "ten.txt").write_text("penguin iceberg\n" * 10)
    found = vdsh("drift", store, "ten.txt", "-q")
    assert found.returncode == 0
    assert found.stdout == "Too few to say: 10 new documents, of 50 that it takes.\n"
    told = json.loads(vdsh("drift", store, "ten.txt", "--json", "-q").stdout)
    assert told["drifted"] is None and told["measures"] == {}


def test_a_model_without_held_out_documents_says_so(vdsh, tmp_path, fitted):
    with open_store(tmp_path / "old", fitted) as store:
        store.upsert(documents(toy_corpus(90, 1)[0]))
    found = vdsh("drift", "old")
    assert found.returncode == 0 and "the model kept no held-out documents" in found.stdout
    model = TextHasher("lsh", 8).fit(toy_corpus(80)[0], validation=toy_corpus(40, 1)[0]).model_
    few = measure_drift(model, toy_corpus(100, 2)[0])
    assert few.verdict == "Too few to say: 40 held-out documents, of 50 that it takes."


def test_of_many_documents_some_are_drawn_from_all_over(model, monkeypatch):
    monkeypatch.setattr("vdsh.model.drift.MOST", 60)
    texts = [f"orbit {i}" for i in range(500)] + [f"goal {i}" for i in range(500)]
    found = measure_drift(model, iter(texts))
    assert found.documents == 60 and 0 < found.measures["balance"].recent < 1


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


def test_a_store_of_any_engine_tells(place, model):
    with open_store(place, model) as store:
        store.upsert(documents([*toy_corpus(100, 1)[0], *toy_corpus(100, 5)[0]]))
        found = store.drift()
        assert found.drifted is False and 90 < found.documents <= 100


def test_an_engine_without_an_order_asks_for_documents():
    with pytest.raises(InputError, match="Give them: vdsh drift STORE DOCS"):
        written_last(SimpleNamespace(shown="postgresql://x", written=None), 5)


def test_recent_is_a_count_of_stored_documents(vdsh, store, docs):
    found = vdsh("drift", store, "--recent", 0)
    assert found.returncode == 1 and "recent must be" in found.stderr
    found = vdsh("drift", store, docs, "--recent", 5, "-q")
    assert found.returncode == 1 and "Give documents, or recent" in found.stderr


def test_a_fitted_model_keeps_what_held_out_documents_look_like(tmp_path):
    hasher = TextHasher("lsh", 8, random_state=0)
    hasher.fit(toy_corpus(80)[0], validation=NEW * 5)
    held_out, landmarks, seen = profile = hasher.model_.profile
    assert held_out.codes.shape == (10, 1) and landmarks.shape == (80, 1)
    assert held_out.unknown.mean() == pytest.approx((3 / 4 + 1) / 2)
    assert (held_out.certainty == 1).all(), "lsh has no posterior"
    assert set(seen) == {*hash_texts(toy_corpus(80)[0] + NEW)}
    assert profile.unseen(["iceberg", *NEW, "\ud800"]) == ["iceberg", "\ud800"]
    hasher.save(tmp_path / "model")
    again = Model.load(tmp_path / "model").profile
    for name, part in profile.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], part, strict=True)
    assert TextHasher("lsh", 8).fit(toy_corpus(80)[0]).model_.profile is None


def test_the_nearest_equals_a_slow_search(model):
    codes, near = model.profile.held_out.codes, model.profile.held_out.nearest
    for code, distance in zip(codes[:20], near, strict=False):
        apart = [int(np.unpackbits(code ^ other).sum()) for other in model.profile.landmarks]
        assert min(apart) == distance


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.zeros((200, 3), np.uint8)},
        {"codes": np.zeros((200, 2), np.float32)},
        {"landmarks": np.zeros((0, 2), np.uint8)},
        {"unknown": np.zeros(199, np.float32)},
        {"certainty": np.full(200, np.nan, np.float32)},
        {"nearest": None},
        {"seen": np.zeros(0, np.uint32)},
        {"seen": np.zeros(200, np.float32)},
        {"something": np.zeros(200, np.float32)},
    ],
)
def test_a_damaged_profile_is_a_damaged_folder(tmp_path, model, change):
    model.save(tmp_path / "model")
    manifest, weights, words = read_folder(tmp_path / "model")
    weights |= {f"profile_{name}": array for name, array in change.items()}
    weights = {name: array for name, array in weights.items() if array is not None}
    write_folder(tmp_path / "model", Folder(manifest, weights, words), "", force=True)
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


def test_the_tests_are_those_of_the_books():
    rng = np.random.RandomState(0)
    values = [rng.normal(size=400).round(1), rng.normal(0.2, size=300).round(1)]
    bits = [rng.random((n, 16)) < p for n, p in ((400, 0.5), (300, 0.4))]
    looks = [Looks(np.packbits(b, axis=1), x, x, x) for b, x in zip(bits, values, strict=True)]
    found = compare(*looks).measures
    for name, side in (("unknown", "greater"), ("certainty", "less")):
        theirs = stats.ks_2samp(*values, alternative=side, method="asymp")
        assert found[name].effect == pytest.approx(theirs.statistic)
        assert found[name].p_value == pytest.approx(theirs.pvalue, rel=0.2)
    shares = [b.mean(axis=0) for b in bits]
    bit = np.abs(shares[0] - shares[1]).argmax()
    ones = np.array([b[:, bit].sum() for b in bits])
    table = np.stack([ones, np.array([400, 300]) - ones])
    assert (found["balance"].learned, found["balance"].recent) == (shares[0][bit], shares[1][bit])
    p_value = stats.chi2_contingency(table, correction=False).pvalue  # the square of a z-test
    assert found["balance"].p_value == pytest.approx(min(1, 16 * p_value))
