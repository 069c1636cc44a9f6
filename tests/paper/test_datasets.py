import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from vdsh.datasets import DATASETS, load, random_split
from vdsh.documents import Document, docstrings
from vdsh.errors import InputError, MissingFileError

_SHARED = Path(__file__).parents[3] / "shared" / "data"
REAL = Path(os.environ.get("VDSH_DATA") or _SHARED)
real = pytest.mark.skipif(
    not (REAL / "reuters").is_dir(), reason="no real corpora: VDSH_DATA is not set"
)


def write_lines(path, lines):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(f"{line}\n" for line in lines)


def parts_of(data):
    return data.train, data.validation, data.test


@pytest.fixture
def root(tmp_path):
    """A data folder in the layout the corpora come in, with a few documents of our own."""

    def write(name, rows):
        write_lines(tmp_path / name / "documents.jsonl.gz", map(json.dumps, rows))

    post = "From: a@b\nOrganization: Leaky Inc\nSubject: moon\n\nThe orbit\nLines: kept here"
    write(
        "20newsgroups",
        [
            {"id": f"s/{i}", "text": post, "labels": ["s"], "split": "test" if i > 14 else "train"}
            for i in range(20)
        ],
    )
    stories = [{"id": str(i), "text": "grain", "labels": [f"c{i % 25}", "earn"]} for i in range(50)]
    write("reuters", [*stories, {"id": "rare", "text": "x", "labels": ["rare"]}])
    reports = [f"{i % 3} {i + 1}:2 12:1 # {'test' if i < 4 else 'train'}/{i}" for i in range(10)]
    write_lines(tmp_path / "tmc" / "counts.svm.gz", reports)
    (tmp_path / "tmc" / "labels.txt").write_text("class01\nclass02\nclass03\n")
    (tmp_path / "tmc" / "counts_features.txt").write_text("word\n" * 15)
    write(
        "titles",
        [{"id": str(i), "text": "effects of age", "labels": [str(i % 2)]} for i in range(30)],
    )
    vectors = [f"0,{i % 2} {i + 1}:0.6 40:0.8 # subset1/{i}" for i in range(10)]
    write_lines(tmp_path / "rcv1" / "documents.svm.gz", vectors)
    (tmp_path / "rcv1" / "labels.txt").write_text("C11\nGCAT\n")
    return tmp_path


def test_posts_keep_from_and_subject_only(root):
    data = load("20newsgroups", root=root)
    assert [len(part.ids) for part in parts_of(data)] == [16, 2, 2]
    assert data.train.texts[0] == "From: a@b\nSubject: moon\n\nThe orbit\nLines: kept here"
    assert (
        "20 posts, headers From and Subject kept; random 80/10/10 split, one test part, seed 0"
        in data.note
    )


def test_reuters20_keeps_the_most_frequent_categories(root):
    full, cut = load("reuters", root=root), load("reuters20", root=root)
    assert len(full.train.ids + full.validation.ids + full.test.ids) == 51
    parts = parts_of(cut)
    assert len({label for part in parts for labels in part.labels for label in labels}) == 20
    assert "rare" not in [name for part in parts for name in part.ids]


def test_titles_are_short_texts_with_one_label_each(root):
    data = load("titles", root=root)
    assert [len(part.ids) for part in parts_of(data)] == [24, 3, 3]
    assert data.train.texts[0] == "effects of age"
    assert {len(labels) for part in parts_of(data) for labels in part.labels} == {1}
    assert "titles of biomedical papers, 2 classes, 30 titles; random 80/10/10" in data.note


def test_corpora_without_text_give_counts(root):
    data = load("tmc", root=root)
    assert data.train.texts is None
    assert data.train.features.shape == (8, 15)
    assert data.train.features.dtype == np.int32
    row = data.test.features[[0]].toarray()[0]
    number = int(data.test.ids[0].partition("/")[2])
    assert row[number] == 2 and row[11] == 1 and row.sum() == 3
    assert data.test.labels[0] == (f"class0{number % 3 + 1}",)
    assert "counts of 15 terms, 10 of 28,596 documents" in data.note


def test_rcv1_weights_become_counts(root):
    data = load("rcv1", root=root)
    assert data.train.features.shape == (8, 47_236)
    assert data.train.features.data.min() >= 1
    assert set(data.train.labels) == {("C11", "C11"), ("C11", "GCAT")}
    assert "recovered from the published weights" in data.note
    assert "10 of 804,414 documents" in data.note


def test_splits_depend_on_the_seed_alone(root, monkeypatch):
    monkeypatch.setenv("VDSH_DATA", str(root))
    ids = [load("reuters", seed=seed).validation.ids for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize("n_docs", [10, 57, 9855])
def test_no_test_document_of_any_seed_has_ever_tuned_anything(n_docs):  # #31 C2
    """Neither validation documents of another seed, nor those of the splits of version 0.2."""
    documents = [Document(str(i), "word") for i in range(n_docs)]
    splits = [random_split("x", documents, seed, "") for seed in range(8)]
    (test,) = {tuple(split.test.ids) for split in splits}
    assert len(test) == n_docs - int(0.9 * n_docs)
    for seed, split in enumerate(splits):
        parts = [split.train.ids, split.validation.ids, split.test.ids]
        assert sorted(sum(parts, [])) == sorted(str(i) for i in range(n_docs))
        then = np.random.RandomState(seed).permutation(n_docs)
        tuned = then[int(0.8 * n_docs) : int(0.9 * n_docs)] if seed < 6 else []
        assert not {str(i) for i in tuned} & set(test)


def test_unknown_and_absent_corpora_get_a_sentence(tmp_path):
    with pytest.raises(InputError, match="No dataset '20newsgroup'. Did you mean '20newsgroups'?"):
        load("20newsgroup")
    with pytest.raises(MissingFileError, match="not here: no '.*reuters/documents.jsonl.gz'.*root"):
        load("reuters", root=tmp_path)


@pytest.mark.parametrize(
    "break_it, sentence",
    [
        (lambda folder: (folder / "labels.txt").unlink(), "No '.*labels.txt'"),
        (lambda folder: (folder / "labels.txt").write_text("one\n"), "beyond the 1 names"),
        (lambda folder: write_lines(folder / "counts.svm.gz", ["1 2:x"]), "line 1: not LIBSVM"),
        (lambda folder: (folder / "counts.svm.gz").write_bytes(b"\x1f\x8b"), "cut off or damaged"),
    ],
)
def test_broken_vectors_get_a_sentence(root, break_it, sentence):
    break_it(root / "tmc")
    with pytest.raises((InputError, MissingFileError), match=sentence):
        load("tmc", root=root)


def test_docstrings_are_labelled_by_their_area(monkeypatch):
    packages = ("asyncio", "email", "json", "scipy.optimize", "scipy.signal")
    files = [source for source in docstrings.find_sources() if source[1].startswith(packages)]
    monkeypatch.setattr(docstrings, "find_sources", lambda: files)
    reports = []
    documents = docstrings.collect(progress=lambda done, total: reports.append((done, total)))
    areas = {document.labels[0] for document in documents}
    assert {"asyncio", "email", "scipy.optimize", "scipy.signal"} <= areas
    assert len({document.text for document in documents}) == len(documents)
    assert all(len(document.text.split()) >= 20 for document in documents)
    assert reports[-1] == (len(files), len(files))


def test_a_property_and_its_setter_are_one_document(monkeypatch, tmp_path):
    names = ["x", "x", *(f"f{i}" for i in range(50))]
    words = " ".join(["word"] * 20)
    path = tmp_path / "some.py"
    path.write_text(
        "".join(f'def {name}():\n    """{words} {i}"""\n' for i, name in enumerate(names))
    )
    monkeypatch.setattr(docstrings, "find_sources", lambda: [(path, "some")])
    ids = [document.id for document in docstrings.collect()]
    assert len(ids) == len(set(ids)) == 51


def test_docstrings_of_some_modules_are_read_in_a_moment():
    documents = docstrings.collect(modules=["turtle", "email"], each=50)
    assert {document.labels for document in documents} == {("turtle",), ("email",)}
    assert len(documents) == 100
    assert docstrings.collect(modules=["no_such_module"]) == []


@real
@pytest.mark.parametrize(
    "name, documents, labels, cardinality",
    [
        ("20newsgroups", 18_846, 20, 1),
        ("reuters", 10_788, 90, 1.235),
        ("reuters20", 9_855, 20, None),
        ("tmc", 12_153, 22, 2.059),
        ("titles", 20_000, 20, 1),
    ],
)
def test_the_real_corpora_have_their_known_sizes(name, documents, labels, cardinality):
    data = load(name, root=REAL)
    found = [row for part in parts_of(data) for row in part.labels]
    assert len(found) == documents
    assert len({label for row in found for label in row}) == labels
    assert len(data.test.ids) == documents - int(0.9 * documents)
    if cardinality:
        assert round(np.mean([len(row) for row in found]), 3) == cardinality
    if name != "tmc":
        assert (DATASETS[name].documents, DATASETS[name].labels) == (documents, labels)


@real
@pytest.mark.slow
def test_nearly_all_weights_of_the_real_rcv1_are_explained_by_counts():
    data = load("rcv1", root=REAL)
    parts = parts_of(data)
    assert sum(len(part.ids) for part in parts) == 27_695
    assert len({label for part in parts for row in part.labels for label in row}) == 102
    assert "(99.98% of them reproduced)" in data.note
