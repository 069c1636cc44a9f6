"""Parquet files cut into pieces, folders of codes, and what goes wrong with them, without Ray."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vdsh.codes import to_hex
from vdsh.errors import InputError, MissingFileError, OutputExistsError, WriteError
from vdsh.scale import encode, parquet
from vdsh.scale.encode import codes_folder, encode_files
from vdsh.scale.parquet import open_files

CODE = np.zeros((1, 2), np.uint8)


@pytest.fixture
def folder(tmp_path, corpus, monkeypatch):
    """The toy corpus in two files of 48 and 32 rows, cut into pieces of 20 rows."""
    monkeypatch.setattr(parquet, "PIECE", 20)
    texts = corpus[0]
    for name, first, last in (("a", 0, 48), ("b", 48, 80)):
        rows = {"id": [f"d{i}" for i in range(first, last)], "text": texts[first:last]}
        path = tmp_path / "docs" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(rows), path, row_group_size=10)
    return tmp_path / "docs"


def rows_of(folder):
    """Read a folder of codes as pairs of id and hex."""
    tables = [pq.read_table(folder / name) for name in sorted(os.listdir(folder))]
    return [(row["id"], row["code"].hex()) for table in tables for row in table.to_pylist()]


def test_pieces_are_whole_row_groups_and_follow_from_the_files_alone(folder):
    files = open_files(str(folder))
    found = [(piece.path[-9:], piece.groups, piece.row, piece.number) for piece in files.pieces]
    assert found == [
        ("a.parquet", [0, 1], 0, 0),
        ("a.parquet", [2, 3], 20, 20),
        ("a.parquet", [4], 40, 40),
        ("b.parquet", [0, 1], 0, 48),
        ("b.parquet", [2, 3], 20, 68),
    ]
    assert files.n_rows == 80


def test_a_folder_of_parquet_gives_the_codes_of_all_texts(
    vdsh, folder, model_folder, fitted, corpus
):
    expected = [(f"d{i}", code) for i, code in enumerate(to_hex(fitted.encode(corpus[0])))]
    for number, source in enumerate(["docs", "docs/?.parquet", "d*/*.parquet", f"file://{folder}"]):
        written = vdsh("encode", model_folder, source, "--out", f"codes{number}")
        assert (written.returncode, written.stdout) == (0, "")
        assert rows_of(folder.parent / f"codes{number}") == expected


def test_one_file_is_printed_with_the_same_codes(vdsh, folder, model_folder):
    alone = vdsh("encode", model_folder, "docs/a.parquet").stdout
    assert vdsh("encode", model_folder, "docs/a*.parquet", "--out", "codes").returncode == 0
    lines = [tuple(line.split("\t")) for line in alone.splitlines()]
    assert lines == rows_of(folder.parent / "codes") != []


def test_a_missing_id_is_the_number_of_the_row_over_all_files(folder, fitted, tmp_path):
    for name in ("a", "b"):
        path = folder / f"{name}.parquet"
        pq.write_table(pq.read_table(path).drop_columns("id"), path, row_group_size=10)
    with codes_folder(str(tmp_path / "codes")) as codes:
        list(encode_files(fitted.model_, open_files(str(folder)), codes))
    ids = [id for id, _ in rows_of(tmp_path / "codes")]
    assert [int(id.partition(":")[2]) for id in ids] == list(range(1, 81))
    assert (ids[0], ids[-1]) == ("a.parquet:1", "b.parquet:80")


def test_codes_replace_only_codes(vdsh, folder, model_folder, tmp_path):
    command = ("encode", model_folder, "docs", "--out", "codes")
    assert vdsh(*command).returncode == 0
    before = rows_of(tmp_path / "codes")
    assert "exists" in vdsh(*command).stderr
    assert vdsh(*command, "--force").returncode == 0
    assert rows_of(tmp_path / "codes") == before
    (tmp_path / "codes" / "notes.txt").write_text("mine")
    assert "not a folder of codes" in vdsh(*command, "--force").stderr


def test_an_error_leaves_the_older_codes_and_no_draft(tmp_path):
    with codes_folder(str(tmp_path / "codes")) as folder:
        folder.write(0, ["old"], CODE)
    with (
        pytest.raises(InputError),
        codes_folder(str(tmp_path / "codes"), force=True) as folder,
    ):
        folder.write(0, ["new"], CODE)
        raise InputError("stop")
    assert rows_of(tmp_path / "codes") == [("old", "0000")]
    assert os.listdir(tmp_path) == ["codes"]


def test_files_that_workers_wrote_elsewhere_are_missed(tmp_path):
    with (
        pytest.raises(WriteError, match="wrote 2 files but 1 can be seen here"),
        codes_folder(str(tmp_path / "codes")) as folder,
    ):
        folder.write(0, ["a"], CODE)
        folder.check(2)
    assert os.listdir(tmp_path) == []


def test_a_bucket_has_no_drafts_but_is_cleaned_after_an_error(tmp_path, monkeypatch):
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    bucket = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(encode, "filesystem_of", lambda place: (bucket, place))
    with codes_folder("codes") as folder:
        folder.write(0, ["old"], CODE)
        assert os.listdir(tmp_path / "codes") == ["part-000000.parquet"]
    with pytest.raises(OutputExistsError, match="exists"), codes_folder("codes"):
        pass
    with pytest.raises(InputError), codes_folder("codes", force=True) as folder:
        folder.write(1, ["new"], CODE)
        raise InputError("stop")
    assert os.listdir(tmp_path / "codes") == []


def test_what_is_wrong_with_files_is_one_sentence(vdsh, folder, model_folder, tmp_path):
    (folder / "c.parquet").write_bytes(b"no Parquet")
    pq.write_table(pa.table({"body": ["orbit"]}), tmp_path / "body.parquet")
    pq.write_table(pa.table({"text": ["orbit", None]}), tmp_path / "null.parquet")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    before = sorted(os.listdir(tmp_path))
    for source, message in {
        "docs/*.orc": "No Parquet file matches 'docs/*.orc'",
        "docs": "c.parquet' as Parquet",
        "bod*.parquet": "has no column 'text'. There is 'body'",
        "nul*.parquet": "row 2: the text must be a string",
        "emp*.parquet": "holds no documents",
        "nowhere://bucket/*.parquet": "Cannot use 'nowhere://bucket/*.parquet'",
    }.items():
        result = vdsh("encode", model_folder, source, "--out", "codes")
        assert (result.returncode, result.stdout) == (1, ""), source
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert sorted(os.listdir(tmp_path)) == before
    with pytest.raises(MissingFileError):
        open_files(str(tmp_path / "nothing" / "*.parquet"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "spark"], "--engine must be local or ray. Got 'spark'"),
        (["--workers", 2], "add --engine ray"),
        (["--out", "codes", "--bits"], "leave out --bits and --json"),
        (["--json"], "Several Parquet files are encoded into a folder"),
    ],
)
def test_options_that_do_not_go_together(vdsh, folder, model_folder, arguments, message):
    result = vdsh("encode", model_folder, "docs", *arguments)
    assert result.returncode == 1
    assert message in result.stderr
