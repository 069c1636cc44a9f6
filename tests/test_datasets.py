import gzip
import json

import pytest

from vdsh.datasets import docstrings, load
from vdsh.errors import InputError, MissingFileError


@pytest.fixture
def root(tmp_path):
    """A data folder in the layout the corpora come in, with a few documents of our own."""

    def write(name, rows):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "documents.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    post = "From: a@b\nOrganization: Leaky Inc\nSubject: moon\n\nThe orbit\nLines: kept here"
    write(
        "20newsgroups",
        [{"id": f"sci.space/{i}", "text": post, "labels": ["sci.space"]} for i in range(20)],
    )
    stories = [{"id": str(i), "text": "grain", "labels": [f"c{i % 25}", "earn"]} for i in range(50)]
    write("reuters", [*stories, {"id": "rare", "text": "x", "labels": ["rare"]}])
    return tmp_path


def test_posts_keep_from_and_subject_only(root):
    data = load("20newsgroups", root=root)
    assert [len(part.ids) for part in (data.train, data.validation, data.test)] == [16, 2, 2]
    assert data.train.texts[0] == "From: a@b\nSubject: moon\n\nThe orbit\nLines: kept here"
    assert "From and Subject" in data.note


def test_reuters20_keeps_the_most_frequent_categories(root):
    full, cut = load("reuters", root=root), load("reuters20", root=root)
    assert len(full.train.ids + full.validation.ids + full.test.ids) == 51
    parts = (cut.train, cut.validation, cut.test)
    assert len({label for part in parts for labels in part.labels for label in labels}) == 20
    assert "rare" not in [name for part in parts for name in part.ids]


def test_splits_depend_on_the_seed_alone(root, monkeypatch):
    monkeypatch.setenv("VDSH_DATA", str(root))
    ids = [load("reuters", seed=seed).test.ids for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


def test_unknown_and_absent_corpora_get_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("VDSH_DATA", raising=False)
    with pytest.raises(InputError, match="No dataset '20newsgroup'. Did you mean '20newsgroups'?"):
        load("20newsgroup")
    with pytest.raises(MissingFileError, match="root= or the environment variable VDSH_DATA"):
        load("reuters")
    with pytest.raises(MissingFileError, match="not here"):
        load("reuters", root=tmp_path)


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
    few = docstrings.collect(areas=2, each=30)
    assert len(few) == 60
    assert {document.labels[0] for document in few} == {"scipy.optimize", "scipy.signal"}
