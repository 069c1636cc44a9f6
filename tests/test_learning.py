"""What a model learns from: all documents or a sample, and those that are held out."""

import json

import numpy as np
import pytest

from conftest import quick, toy_corpus
from vdsh import Model, TextHasher
from vdsh.cli import learning
from vdsh.cli.options import BY_DEFAULT
from vdsh.documents.document import draw
from vdsh.errors import InputError

BRIEF = quick("vdsh-s", epochs=1)


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
