"""Embedding models of other packages: named, loaded, kept in the cache, used to learn and search.

`model2vec` and `sentence-transformers` are not installed for the tests; a module under the first
name stands for them here, and `docs/vectors.md` says with which real models it was tried.
"""

import sys

import numpy as np
import pytest

from vdsh import embed as embedding
from vdsh.embed import embed
from vdsh.errors import InputError, MissingPackageError
from vdsh.model import Model
from vdsh.store import open_store

SOME = [f"the moon and mars in orbit {i}" if i % 2 else f"a recipe of soup {i}" for i in range(130)]


def test_what_was_embedded_is_kept_and_an_interrupted_run_goes_on(package, monkeypatch):
    monkeypatch.setattr(embedding, "AT_ONCE", 50)
    seen = []
    first = embed(SOME, "model2vec:letters", progress=lambda *each: seen.append(each))
    assert first.shape == (130, 16) and first.dtype == np.float32
    assert (package, seen) == ([50, 50, 30], [(50, 130), (100, 130), (130, 130)])
    file = next(embedding._kept("model2vec:letters").iterdir())
    file.write_bytes(file.read_bytes()[:100])  # cut short
    assert np.array_equal(embed(SOME, "model2vec:letters"), first)
    assert len(package) == 4
    embed(["a query"], "model2vec:letters")
    assert len(list(file.parent.iterdir())) == 3  # queries are not worth a file


def test_names_that_cannot_be_loaded(package, monkeypatch):
    with pytest.raises(InputError, match="named model2vec:NAME or .* Got 'letters'"):
        embed(["a"], "letters")
    with pytest.raises(InputError, match="model2vec could not load 'others': no such model. Give"):
        embed(["a"], "model2vec:others")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'vdsh\[embed\]'"):
        embed(["a"], "sentence-transformers:x")


def test_a_teacher_and_a_model_of_vectors(package, tmp_path, vdsh):
    (tmp_path / "docs.txt").write_text("\n".join(SOME))
    given = ["docs.txt", "--embed", "model2vec:letters", "--bits", 16, "-q"]
    assert vdsh("fit", *given, "--epochs", 1, "--out", "taught").returncode == 0
    taught = Model.load(tmp_path / "taught")
    assert not taught.takes_vectors and "model2vec:letters" in str(taught.training)
    assert vdsh("fit", *given, "--no-text", "--out", "itq").returncode == 0
    assert vdsh("index", "itq", "docs.txt", "--store", "store", "-q").returncode == 0
    with open_store(tmp_path / "store") as store:
        assert store.model.embedder == "model2vec:letters"
        hits = store.search("orbit of mars", k=5)
        assert all("mars" in hit.text for hit in hits)
        near = store.search(SOME[0], k=1, rank="distance")
        assert near[0].text == SOME[0] or near[0].distance == 0
        assert store.check() == []


def test_embed_and_vectors_do_not_go_together(package, tmp_path, vdsh):
    (tmp_path / "docs.txt").write_text("\n".join(SOME))
    for more, told in (
        (["docs.txt", "--vectors", "x.npy"], "not both"),
        (["--no-text"], "Give some"),
        (["docs.txt", "--embed", "letters"], "Got 'letters'"),
    ):
        found = vdsh("fit", "--embed", "model2vec:letters", *more, "--out", "model", "-q")
        assert found.returncode == 1 and told in found.stderr
        assert not (tmp_path / "model").exists()
