"""Files for other programs, read by those programs."""

import json

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest

from engines import doc
from vdsh.codes import from_hex
from vdsh.errors import InputError, OutputExistsError
from vdsh.export import export_codes
from vdsh.store import open_store

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")


@pytest.fixture
def codes():
    return np.random.default_rng(0).integers(0, 256, (500, 2), dtype=np.uint8)


@pytest.fixture
def store(tmp_path, fitted, codes):
    documents = [doc(f"d{i:03}", f"text {i}", ("a",) if i % 2 else None, n=i) for i in range(500)]
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert(documents, codes)
        yield store


def read_ids(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_faiss_answers_as_the_store_does(store, tmp_path, codes):
    done = export_codes(store, "faiss", tmp_path / "news.faiss")
    assert (done.documents, done.ids) == (500, str(tmp_path / "news.ids.jsonl"))
    index = faiss.read_index_binary(str(tmp_path / "news.faiss"))
    names = read_ids(tmp_path / "news.ids.jsonl")
    distances, rows = index.search(codes[:20], 500)
    for query, d, r in zip(codes[:20], distances.tolist(), rows.tolist(), strict=True):
        theirs = sorted(zip(d, [names[row] for row in r], strict=True))
        assert theirs == [(hit.distance, hit.id) for hit in store.search(query, k=500)]


def test_npy_holds_the_codes_in_the_order_of_ids(store, tmp_path, codes):
    export_codes(store, "npy", tmp_path / "news.npy")
    assert np.array_equal(np.load(tmp_path / "news.npy"), codes)
    assert read_ids(tmp_path / "news.ids.jsonl") == [f"d{i:03}" for i in range(500)]


def test_hex_is_what_encode_prints(store, tmp_path, codes):
    seen = []
    export_codes(store, "hex", tmp_path / "news.hex", progress=seen.append)
    lines = [line.split("\t") for line in (tmp_path / "news.hex").read_text().splitlines()]
    assert [id for id, _ in lines] == [f"d{i:03}" for i in range(500)]
    assert np.array_equal(from_hex([text for _, text in lines]), codes)
    assert seen == [500]


def test_parquet_holds_the_documents(store, tmp_path, codes):
    export_codes(store, "parquet", tmp_path / "news.parquet")
    rows = pq.read_table(tmp_path / "news.parquet").to_pylist()
    assert rows[3] == {
        "id": "d003", "code": codes[3].tobytes(), "text": "text 3", "labels": ["a"],
        "metadata": '{"n": 3}',
    }  # fmt: skip
    assert rows[2]["labels"] is None
    assert len(rows) == 500


@pytest.mark.parametrize("to", ["faiss", "npy", "hex", "parquet"])
def test_nothing_is_overwritten_and_nothing_is_left_half_done(store, tmp_path, to, monkeypatch):
    target = tmp_path / "out" / f"news.{to}"
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(OutputExistsError, match="exists"):
        export_codes(store, to, target)
    assert target.read_text() == "mine"
    monkeypatch.setattr(type(store), "codes", broken)
    monkeypatch.setattr(type(store), "entries", broken)
    with pytest.raises(InputError, match="broke"):
        export_codes(store, to, target, force=True)
    assert [file.name for file in target.parent.iterdir()] == [target.name]
    monkeypatch.undo()
    assert export_codes(store, to, target, force=True).documents == 500
    assert target.read_bytes() != b"mine"


def broken(self, *arguments, **options):
    raise InputError("It broke.")
    yield


def test_an_unknown_format(store, tmp_path):
    with pytest.raises(InputError, match="No format 'fais'. Did you mean 'faiss'"):
        export_codes(store, "fais", tmp_path / "x")


def test_bit_0_is_the_highest_bit_of_the_first_byte(fitted, corpus):
    codes = fitted.encode(corpus[0])
    bits = fitted.transform(corpus[0])
    assert np.array_equal(codes[:, 0] >> 7, bits[:, 0])
    assert np.array_equal(codes[:, 1] & 1, bits[:, 15])


# -- on the command line ---------------------------------------------------------------------------


def test_export_on_the_command_line(vdsh, store, model_folder, tmp_path):
    done = vdsh("export", tmp_path / "store", "--to", "npy", "--out", "news.npy")
    assert done.stdout == "Wrote 500 codes to news.npy, their ids in news.ids.jsonl.\n"
    done = vdsh("export", tmp_path / "store", "--to", "model", "--out", "m", "--json")
    assert json.loads(done.stdout) == {"path": "m", "terms": 16, "bits": 16}
    for arguments, sentence in [
        ((model_folder, "--to", "npy"), "is a model, which holds no codes"),
        ((tmp_path / "store", "--to", "csv"), "--to must be one of faiss, npy, parquet, hex"),
        ((tmp_path / "store", "--to", "npy"), "'news.npy' exists"),
    ]:
        done = vdsh("export", *arguments, "--out", "news.npy")
        assert done.returncode == 1
        assert sentence in done.stderr
