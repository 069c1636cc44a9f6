import hashlib
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from conftest import QUICK, quick, toy_corpus
from vdsh import TextHasher
from vdsh.errors import FolderError, InputError, MissingFileError, OutputExistsError
from vdsh.hashers import HASHERS
from vdsh.model.learned import check_learned
from vdsh.pipeline import EmptyDocumentWarning


@pytest.mark.parametrize("model", HASHERS)
def test_a_saved_model_gives_the_same_codes(model, corpus, tmp_path):
    texts, labels = corpus
    hasher = TextHasher(model, n_bits=16, random_state=0, **quick(model)).fit(texts, labels)
    hasher.save(tmp_path / "model")
    loaded = TextHasher.load(tmp_path / "model")
    assert (loaded.encode(texts) == hasher.encode(texts)).all()
    assert loaded.get_params() == hasher.get_params()


def test_codes_are_packed_bytes(fitted, corpus):
    codes = fitted.encode(corpus[0])
    assert codes.dtype == np.uint8
    assert codes.shape == (80, 2)
    assert (np.packbits(fitted.transform(corpus[0]), axis=1) == codes).all()
    assert fitted.encode([]).shape == (0, 2)


def test_settings_reach_vectoriser_and_hasher():
    hasher = TextHasher("vdsh", 8, vocabulary_size=12, threshold="sign", **QUICK)
    hasher.fit(toy_corpus()[0])
    assert len(hasher.vectorizer_.vocabulary_) == 12
    assert hasher.hasher_.threshold == "sign"


def test_clone_and_set_params(corpus):
    hasher = TextHasher("vdsh", 8, random_state=3, epochs=2)
    assert clone(hasher).get_params() == hasher.get_params()
    hasher.set_params(epochs=5, n_bits=16, hidden_size=4)
    assert hasher.get_params() == {
        "model": "vdsh", "n_bits": 16, "random_state": 3, "epochs": 5, "hidden_size": 4,
    }  # fmt: skip


def test_validation_texts_may_come_with_or_without_labels(corpus):
    texts, labels = corpus
    hasher = TextHasher("vdsh", 8, random_state=0, **QUICK)
    hasher.fit(texts[:60], labels[:60], validation=(texts[60:], labels[60:]))
    assert hasher.hasher_.selected_on_ == "precision"
    assert hasher.fit(texts[:60], validation=texts[60:]).hasher_.selected_on_ == ""


def test_without_labels_short_texts_keep_the_linear_start_unless_epochs_are_given(corpus):
    texts, _ = corpus
    settings = {name: value for name, value in QUICK.items() if name != "epochs"}
    kept = TextHasher("vdsh", 32, random_state=0, **settings)
    kept.fit(texts[:60], validation=texts[60:])
    assert (kept.hasher_.best_epoch_, kept.hasher_.epochs_) == (0, 1)
    assert kept.hasher_.selected_on_ == ""
    trained = TextHasher("vdsh", 32, random_state=0, **QUICK).fit(texts[:60])
    assert trained.hasher_.best_epoch_ == QUICK["epochs"]


def test_texts_without_known_words_get_one_code_and_a_counted_warning(fitted):
    with pytest.warns(EmptyDocumentWarning, match="3 of 4 documents have no known word"):
        codes = fitted.encode(["", "the of and", "xylophone", "orbit rocket"])
    assert (codes[0] == codes[1]).all()
    assert (codes[0] == codes[2]).all()


def test_the_unknown_words_of_a_text_are_named_once_and_in_order(fitted):  # 16 D2
    text = "The XYLOPHONE of the moon: xylophone's orbit, 42 and zither."
    assert fitted.model_.unknown_words(text) == ["xylophone", "42", "zither"]
    assert (
        fitted.model_.unknown_words("the moon and a goal") == fitted.model_.unknown_words("") == []
    )


def test_training_texts_without_words_are_counted(corpus):
    with pytest.warns(EmptyDocumentWarning, match="2 of 82 documents"):
        hasher = TextHasher("vdsh", 8, random_state=0, **QUICK).fit([*corpus[0], "", "the of"])
    assert hasher.model_.training["documents"] == 82


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("vdhs",), {}, "No model 'vdhs'. Did you mean 'vdsh'?"),
        (("vdsh",), {"epoch": 3}, "no setting 'epoch'. Did you mean 'epochs'?"),
        (("vdsh",), {"label_weight": 3.0}, "no setting 'label_weight'"),
    ],
)
def test_unknown_names_get_a_suggestion(arguments, settings, message, corpus):
    with pytest.raises(InputError, match=message):
        TextHasher(*arguments, **settings).fit(*corpus)


def test_encoding_before_fitting_is_refused():
    with pytest.raises(NotFittedError):
        TextHasher().encode(["orbit"])


def test_saving_over_something_needs_force(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    with pytest.raises(OutputExistsError, match="exists"):
        fitted.save(tmp_path / "m")
    fitted.save(tmp_path / "m", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]


def test_force_never_replaces_what_is_not_a_model(fitted, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(OutputExistsError, match="not a vdsh model"):
        fitted.save(tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_the_model_card_tells_what_one_wants_to_know(corpus, tmp_path):
    texts, labels = corpus
    hasher = TextHasher("vdsh-s", 16, random_state=0, **QUICK)
    hasher.fit(texts[:60], labels[:60], validation=(texts[60:], labels[60:]), source="news.jsonl")
    hasher.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text()
    for fact in ("60 documents of news.jsonl", "2 labels: space, sport", "precision on the",
                 "50%", "word_dropout: 0.2", "batch_size: 16", "TextHasher.load"):  # fmt: skip
        assert fact in card


@pytest.fixture
def broken(model_folder, tmp_path):
    """A copy of a good model to break."""
    return shutil.copytree(model_folder, tmp_path / "broken")


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "manifest.json").unlink(), "is not a vdsh model: it has no manifest.json"),
        (lambda f: cut(f / "manifest.json"), "manifest.json cannot be read"),
        (lambda f: (f / "manifest.json").write_text("[]"), "manifest.json cannot be read"),
        (lambda f: cut(f / "weights.safetensors"), "weights.safetensors has .* bytes instead of"),
        (lambda f: (f / "weights.safetensors").unlink(), "weights.safetensors is missing"),
        (
            lambda f: os.truncate(f / "weights.safetensors", 2**40),
            "has 1099511627776 bytes instead",
        ),
        (lambda f: cut(f / "vocabulary.txt"), "vocabulary.txt has .* bytes instead of"),
        (lambda f: edit_manifest(f, format=99), "has format 99; this version reads format 2. Upg"),
        (lambda f: edit_manifest(f, format=1), "reads format 2. Train the model again"),  # #32
        (lambda f: edit_manifest(f, params={"model": "magic"}), "damaged: KeyError 'magic'"),
        (lambda f: edit_manifest(f, fitted={}), "is damaged"),
    ],
)
def test_a_damaged_folder_gives_one_sentence(damage, message, broken):
    damage(broken)
    with pytest.raises(FolderError, match=message) as error:
        TextHasher.load(broken)
    assert "\n" not in str(error.value)


def change(folder, weights=None, words=None, **manifest):
    """Change a model and the sums in its manifest, as somebody would who means harm."""
    file = folder / "weights.safetensors"
    save_file(load_file(file) | (weights or {}), file)
    if words is not None:
        (folder / "vocabulary.txt").write_bytes(words)
    files = {
        name: {"bytes": (folder / name).stat().st_size,
               "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
        for name in ("weights.safetensors", "vocabulary.txt")
    }  # fmt: skip
    edit_manifest(folder, **{"files": files} | manifest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {"W1_": np.zeros((3, 32), np.float32)}}, "W1_ is float32 of shape .3, 32."),
        ({"weights": {"W2_": np.zeros((32, 32), np.float64)}}, "W2_ is float64"),
        ({"weights": {"b3_": np.full(16, np.nan, np.float32)}}, "b3_ holds numbers that are not f"),
        ({"weights": {"more_": np.zeros(3, np.float32)}}, "its weights are"),
        ({"words": b"one\ntwo\n"}, "do not belong together"),
        ({"words": b"\xff\n" * 16}, "UnicodeDecodeError"),
        ({"fitted": []}, "is damaged"),
        ({"fitted": {"n_features_in_": 16, "classes_": "ab"}}, "classes_ has the wrong type"),
        ({"fitted": {"n_features_in_": 16, "_scores": 1}}, "nothing that is learned has the name"),
        ({"fitted": {"n_features_in_": 10**400}}, "is damaged"),
        ({"hasher": {"n_bits": "16"}}, "n_bits must be"),
        ({"hasher": {"n_bits": 16, "threshold": "sign", "weighting": []}}, "no weighting"),
        ({"training": {}}, "is damaged: KeyError"),
        ({"format": "1"}, "manifest.json cannot be read"),
        ({"files": {"../../etc/passwd": {}}}, "manifest.json cannot be read"),
        ({"files": {"weights.safetensors": 3}}, "is damaged"),
    ],
)
def test_a_hostile_model_gives_one_sentence(changes, message, broken):  # #16 C
    change(broken, **changes)
    with pytest.raises(FolderError, match=message) as error:
        TextHasher.load(broken)
    assert "\n" not in str(error.value)


def test_deep_json_and_other_users_files_give_one_sentence(broken, monkeypatch):  # #16 A11, C
    (broken / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(FolderError, match=r"manifest.json cannot be read"):
        TextHasher.load(broken)

    def forbidden(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    with pytest.raises(FolderError, match="Cannot read '.*': Permission denied"):
        TextHasher.load(broken)


@pytest.mark.parametrize(
    ("model", "decoder_size"), [("vdsh", 0), *((model, 20) for model in HASHERS)]
)
def test_what_a_method_learns_is_what_it_says_it_learns(model, decoder_size, corpus):
    settings = quick(model, decoder_size=decoder_size, epochs=1) | {"n_bits": 16}
    hasher = TextHasher(model, random_state=0, **settings).fit(*corpus)
    learned = hasher.model_.learned
    arrays = {name: value for name, value in learned.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in learned.items() if name not in arrays}
    settings = hasher.model_.settings
    check_learned(model, settings, arrays, values)
    for name, array in arrays.items():
        # Of components there may be fewer than bits.
        shorter = array[:, :-1] if name == "rotation_" else array[:-1]
        with pytest.raises(ValueError, match="does not"):
            check_learned(model, settings, arrays | {name: shorter}, values)


def test_settings_of_numpy_and_sets_are_kept(corpus, tmp_path):  # #16 A4
    settings = {"n_bits": np.int64(8), "max_df": np.float32(0.75), "stop_words": {"moon", "goal"}}
    hasher = TextHasher("lsh", **settings, random_state=np.int32(3)).fit(corpus[0])
    hasher.save(tmp_path / "model")
    loaded = TextHasher.load(tmp_path / "model")
    assert loaded.get_params() == hasher.get_params()
    assert type(loaded.n_bits) is int
    for words in (frozenset({"moon"}), ("moon", "goal"), ["moon"]):
        hasher.set_params(stop_words=words).fit(corpus[0]).save(tmp_path / "model", force=True)
        kept = TextHasher.load(tmp_path / "model").vectorizer_.stop_words
        assert (type(kept), kept) == (type(words), words)


def test_a_setting_that_cannot_be_kept_is_refused_before_the_work(corpus):  # #16 A4
    with pytest.raises(InputError, match="cannot hold stop_words=.*Give numbers, texts"):
        TextHasher("lsh", 8, stop_words=np.array(["moon"])).fit(corpus[0])


def test_half_a_surrogate_pair_in_a_label_is_kept(corpus, tmp_path):
    labels = ["\ud800" if label == "space" else label for label in corpus[1]]
    TextHasher("shttm", 8, random_state=0).fit(corpus[0], labels).save(tmp_path / "model")
    assert TextHasher.load(tmp_path / "model").hasher_.classes_ == ["sport", "\ud800"]


def test_a_column_of_a_data_frame_is_encoded(fitted, corpus):  # #16 A5
    frame = pd.DataFrame({"text": corpus[0], "number": range(80)})
    assert (fitted.encode(frame["text"]) == fitted.encode(corpus[0])).all()


def test_changed_weights_are_noticed(broken):
    weights = load_file(broken / "weights.safetensors")
    weights["b3_"] = weights["b3_"] + 1
    save_file(weights, broken / "weights.safetensors")
    with pytest.raises(FolderError, match=r"checksum of weights.safetensors|instead of"):
        TextHasher.load(broken)


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(MissingFileError, match="No model at .*nowhere"):
        TextHasher.load(tmp_path / "nowhere")


def test_nothing_is_pickled(model_folder):
    files = {path.name: path.read_bytes() for path in model_folder.iterdir()}
    assert set(files) == {"manifest.json", "weights.safetensors", "vocabulary.txt", "README.md"}
    assert not any(content.startswith(b"\x80") for content in files.values())
