"""Learning on from a trained model, and learning from a sample of more documents than fit."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from conftest import QUICK, quick, toy_corpus
from vdsh import Document, Model, TextHasher, open_store
from vdsh.cli import learning
from vdsh.cli.options import BY_DEFAULT
from vdsh.documents.document import draw
from vdsh.errors import InputError
from vdsh.hashers.vdsh.warm_start import WarmStart, grown_weights
from vdsh.model.health import count_changes

BRIEF = quick("vdsh-s", epochs=1)


def test_weights_grow_by_rows_of_the_company(fitted):
    old = fitted.model_
    words = sorted([*old.words, "aardvark", "zebra"])
    start = WarmStart.of(old, words)
    dense = np.zeros((3, len(words)), np.float32)
    dense[0, [words.index(w) for w in ("aardvark", "moon", "orbit")]] = [9, 1, 3]
    dense[1, [words.index(w) for w in ("aardvark", "zebra", "goal")]] = [5, 7, 2]
    grown = grown_weights(start, csr_array(dense), ["sport", "weather"])
    row = {word: old.learned["W1_"][column] for column, word in enumerate(old.words)}
    new = {word: grown["W1"][column] for column, word in enumerate(words)}
    assert all((new[word] == row[word]).all() for word in old.words)
    np.testing.assert_allclose(
        new["aardvark"], (row["moon"] + 3 * row["orbit"] + 2 * row["goal"]) / 6, rtol=1e-5
    )
    np.testing.assert_allclose(new["zebra"], row["goal"], rtol=1e-5)
    assert np.isnan(grown["b_words"]).sum() == 2
    learned = old.learned["U_"][:, old.learned["classes_"].index("sport")]
    assert (grown["U"][:, 0] == learned).all() and np.isnan(grown["U"][:, 1]).all()


def test_a_word_without_company_has_no_row_yet(fitted):
    words = sorted([*fitted.model_.words, "zebra"])
    dense = np.zeros((1, len(words)), np.float32)
    dense[0, words.index("zebra")] = 1
    grown = grown_weights(WarmStart.of(fitted.model_, words), csr_array(dense), ["space", "sport"])
    assert np.isnan(grown["W1"][words.index("zebra")]).all()


STILL = BRIEF | {"learning_rate": 1e-9, "threshold": "sign"}


def test_begun_by_chance_learning_on_begins_where_the_model_was(fitted, corpus):
    still = STILL | {"start": "random"}
    again = TextHasher("vdsh-s", 16, random_state=1, **still).fit(*corpus, start=fitted)
    np.testing.assert_allclose(
        again.model_.scores(corpus[0]), fitted.model_.scores(corpus[0]), atol=1e-4
    )
    other = TextHasher("vdsh-s", 16, random_state=1, **still).fit(*corpus)
    assert np.abs(other.model_.scores(corpus[0]) - fitted.model_.scores(corpus[0])).max() > 0.1


def test_learning_on_begins_at_the_new_places_near_the_old_codes(fitted, corpus):
    changed = {}
    for start in (fitted, None):
        hasher = TextHasher("vdsh-s", 16, random_state=1, **STILL).fit(*corpus, start=start)
        changed[start] = count_changes(fitted.encode(corpus[0]), hasher.encode(corpus[0])).bits
    assert changed[fitted] < 0.2 < 0.3 < changed[None]


def test_half_of_the_epochs_is_enough(fitted, corpus):
    fewer = {name: value for name, value in BRIEF.items() if name != "epochs"} | {"batch_size": 80}
    on = TextHasher("vdsh-s", 16, random_state=0, **fewer).fit(*corpus, start=fitted)
    assert on.model_.learned["epochs_"] == 14  # of 28, for a short code


@pytest.mark.parametrize(
    ("model", "n_bits", "settings", "sentence"),
    [
        ("vdsh", 16, BRIEF, "start from is 'vdsh-s', but this one is 'vdsh'"),
        ("vdsh-s", 8, BRIEF, "has n_bits=16, but this one has 8"),
        ("vdsh-s", 16, BRIEF | {"hidden_size": 8}, "has hidden_size=32, but this one has 8"),
    ],
)
def test_another_kind_of_model_cannot_learn_on(fitted, corpus, model, n_bits, settings, sentence):
    settings = {name: value for name, value in settings.items() if name in QUICK}
    with pytest.raises(InputError, match=sentence):
        TextHasher(model, n_bits, **settings).fit(*corpus, start=fitted)


def test_a_method_without_epochs_cannot_learn_on(corpus):
    hasher = TextHasher("lsh", 8, random_state=0).fit(corpus[0])
    with pytest.raises(InputError, match="LSH cannot learn on from a model"):
        TextHasher("lsh", 8).fit(corpus[0], start=hasher)


def test_changes_are_counted(fitted, corpus):
    codes = fitted.encode(corpus[0])
    assert count_changes(codes, codes) == (80, 0.0, 0.0)
    assert count_changes(codes[:0], codes[:0]) == (0, 0.0, 0.0)
    turned = TextHasher("vdsh-s", 16)
    turned.model_ = Model(
        "vdsh-s",
        fitted.model_.words,
        fitted.model_.learned | {"thresholds_": fitted.model_.thresholds + np.eye(16)[0] * 1e9},
        settings=fitted.model_.settings,
        text_settings=fitted.model_.text_settings,
        given={},
        training={},
    )
    share = fitted.transform(corpus[0])[:, 0].mean()
    found = count_changes(fitted.encode(corpus[0]), turned.encode(corpus[0]))
    assert found == (80, pytest.approx(share), pytest.approx(share / 16))


def test_fit_from_says_how_many_stored_codes_would_change(vdsh, docs, model_folder, tmp_path):
    with open_store(tmp_path / "store", model_folder) as store:
        store.upsert(Document(f"{i}", text) for i, text in enumerate(toy_corpus()[0]))
    with docs.open("a") as file:
        file.write('{"id": "z", "text": "orbit of a zebra", "labels": ["weather"]}\n')
    brief = ("--epochs", 1, "--out", "new", "-q")
    found = vdsh("fit", docs, "--from", model_folder, "--store", "store", *brief)
    assert found.returncode == 0, found.stderr
    assert "It has 1 new words;" in found.stdout and "80 documents would change" in found.stdout
    assert "vdsh reindex store --model new" in found.stdout
    model, old = Model.load(tmp_path / "new"), Model.load(model_folder)
    assert (model.name, model.n_bits) == (old.name, old.n_bits)
    assert set(model.words) - set(old.words) == {"zebra"}
    assert "learned on from a model of 80 documents" in (tmp_path / "new/README.md").read_text()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--from", "MODEL", "--bits", "8"), "has --bits 16. Got 8"),
        (("--from", "MODEL", "--model", "vdsh"), "has --model vdsh-s. Got vdsh"),
        (("--from", "nowhere"), "No model at 'nowhere'"),
        (("--store", "somewhere"), "--store belongs to --from"),
    ],
)
def test_wrong_options_of_fit_are_told_early(vdsh, docs, model_folder, options, sentence):
    given = [model_folder if word == "MODEL" else word for word in options]
    found = vdsh("fit", docs, *given, "--out", "new", "-q")
    assert found.returncode == 1 and sentence in found.stderr


def test_another_store_is_refused(vdsh, docs, model_folder, tmp_path):
    other = TextHasher("lsh", 16, random_state=0).fit(toy_corpus()[0])
    open_store(tmp_path / "other", other).close()
    found = vdsh("fit", docs, "--from", model_folder, "--store", "other", "--out", "new")
    assert found.returncode == 1 and "was made with another model" in found.stderr


# More documents than memory


def test_fit_of_a_sample_says_so(vdsh, tmp_path):
    lines = [json.dumps({"id": f"{i}", "text": t}) for i, t in enumerate(toy_corpus(400)[0])]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    found = vdsh("fit", "many.jsonl", "--model", "lsh", "--sample", 200, "--out", "m", "--json")
    told = json.loads(found.stdout)
    assert (told["documents"], told["validation_documents"], told["sampled_from"]) == (180, 20, 400)
    card = (tmp_path / "m/README.md").read_text()
    assert ", a random sample of 400" in card


def test_a_sample_knows_its_rows_and_bounds_held_out_documents(tmp_path):
    for name in ("docs.txt", "others.txt"):
        (tmp_path / name).write_text("\n".join(toy_corpus(100)[0]))
    docs, others = str(tmp_path / "docs.txt"), str(tmp_path / "others.txt")
    chosen = learning.choose(docs, BY_DEFAULT, others, 0, sample=50)
    assert (len(chosen.documents), len(chosen.held_out), chosen.total) == (50, 50, 100)
    texts = toy_corpus(100)[0]
    assert [document.text for document in chosen.documents] == [texts[row] for row in chosen.rows]
    assert learning.choose(docs, BY_DEFAULT, None, 0, sample=100).sampled_from is None


def test_a_stream_is_drawn_from_all_over():
    drawn = draw(iter(range(10_000)), 1000)
    assert len(set(drawn)) == 1000 and 4700 < np.mean(drawn) < 5300
    assert draw("abc", 3) == ["a", "b", "c"]


def test_python_holds_a_tenth_out_as_the_command_line_does(vdsh, tmp_path):  # 20
    texts = toy_corpus(200)[0]
    hasher = TextHasher("itq", 8, random_state=0).fit(texts)
    facts = hasher.model_.training
    assert (facts["documents"], facts["validation_documents"]) == (180, 20)
    lines = [json.dumps({"id": f"{i}", "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    vdsh("fit", "docs.jsonl", "--model", "itq", "--bits", 8, "--out", "m", "-q")
    assert Model.load(tmp_path / "m").fingerprint == hasher.model_.fingerprint
    assert TextHasher("lsh", 8).fit(texts, validation=None).model_.training["documents"] == 200
    for share in (1.0, -0.1, True):
        with pytest.raises(InputError, match="a share from 0 to below 1"):
            TextHasher("lsh", 8).fit(texts, validation=share)


def test_labels_and_vectors_are_divided_with_their_texts():
    texts, labels = toy_corpus(200)
    vectors = np.array([[i, text.count("o")] for i, text in enumerate(texts)], np.float32)
    one = TextHasher("vdsh-s", 8, random_state=0, **BRIEF | {"neighbor_share": 0.5})
    one.fit(texts, np.array(labels), vectors=vectors)
    assert one.model_.training["documents"] == 180 and one.model_.learned["calibration_"]
