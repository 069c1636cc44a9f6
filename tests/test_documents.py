import codecs
import csv
import gzip
import io
import json
import math
import os
import random
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdsh.documents import Document, read_documents, source, values
from vdsh.documents.folder import FoundFile, Skipped, SkippedFilesWarning, find_files
from vdsh.documents.ignore import Patterns
from vdsh.documents.markup import text_of
from vdsh.errors import InputError, MissingFileError, MissingPackageError, VdshError

DOCUMENTS = [
    Document("1", "Żółw 東京 🚀 naïve", ("space", "日本"), {"source": "wire"}),
    Document("2", 'a "quoted", text', (), {"source": "blog"}),
    Document("3", "no labels known", None, {"source": "blog"}),
]


def rows():
    for document in DOCUMENTS:
        labels = None if document.labels is None else list(document.labels)
        yield {"id": document.id, "text": document.text, "labels": labels, **document.metadata}


def as_jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_table(rows, delimiter):
    out = io.StringIO()
    writer = csv.DictWriter(out, ["id", "text", "labels", "source"], delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        labels = row["labels"]
        writer.writerow({**row, "labels": "" if labels is None else json.dumps(labels)})
    return out.getvalue().encode()


MAKERS = {
    "jsonl": as_jsonl,
    "csv": lambda rows: as_table(rows, ","),
    "tsv": lambda rows: as_table(rows, "\t"),
}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def write_parquet(path, rows, **options):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path, **options)
    return path


def error_of(source, **options):
    with pytest.raises(InputError) as caught:
        list(read_documents(source, **options))
    return str(caught.value)


def read_one(tmp_path, data, name="x.jsonl", **options):
    (document,) = read_documents(write(tmp_path / name, data), **options)
    return document


# Formats


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("form", MAKERS)
def test_each_format_gives_the_same_documents(tmp_path, form, packed):
    data = MAKERS[form](rows())
    name = f"news.{form}.gz" if packed else f"news.{form}"
    path = write(tmp_path / name, gzip.compress(data) if packed else data)
    assert list(read_documents(path)) == DOCUMENTS


def test_parquet_gives_the_same_documents(tmp_path):
    path = write_parquet(tmp_path / "news.parquet", rows())
    assert list(read_documents(path)) == DOCUMENTS


@pytest.mark.parametrize("ending", ["ndjson", "json", "JSONL"])
def test_other_endings_of_json_lines_are_known(tmp_path, ending):
    assert read_one(tmp_path, '{"text": "a"}', f"x.{ending}").text == "a"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_text_file_holds_one_document_a_line(tmp_path, pack):
    path = write(tmp_path / "x.txt", pack("první řádek\r\n\n  second 🚀 \n".encode()))
    assert list(read_documents(path)) == [
        Document("x.txt:1", "první řádek"),
        Document("x.txt:2", "  second 🚀 "),
    ]


def test_format_overrides_the_ending_and_gzip_is_known_by_its_bytes(tmp_path):
    path = write(tmp_path / "dump.bin", gzip.compress(as_jsonl(rows())))
    assert list(read_documents(path, format="jsonl")) == DOCUMENTS


def test_a_source_can_be_read_twice(tmp_path):
    reader = read_documents(write(tmp_path / "x.jsonl", as_jsonl(rows())))
    assert list(reader) == list(reader)


def test_a_folder_holds_one_document_a_file(tmp_path):
    write(tmp_path / "sci.space/2.txt", gzip.compress("měsíc\n".encode()))
    write(tmp_path / "rec.autos/sport/9", codecs.BOM_UTF8 + b"fast\ncar")
    write(tmp_path / "readme", "top")
    write(tmp_path / ".hidden", "no")
    write(tmp_path / ".git/config", "no")
    name = tmp_path.name
    assert list(read_documents(str(tmp_path))) == [
        Document(f"{name}/readme", "top"),
        Document(f"{name}/rec.autos/sport/9", "fast\ncar", None, {"folder": "rec.autos/sport"}),
        Document(f"{name}/sci.space/2.txt", "měsíc\n", None, {"folder": "sci.space"}),
    ]


def test_the_folder_can_be_the_label(tmp_path):
    write(tmp_path / "sci.space/2.txt", "moon")
    write(tmp_path / "stray", "moon")
    read = list(read_documents(tmp_path, labels_field="folder"))
    assert [document.labels for document in read] == [("sci.space",), None]
    assert all(document.metadata == {} for document in read)


def test_stdin_is_json_lines_plain_or_gzip_through_a_real_pipe():
    code = (
        "from vdsh.documents import *\nr = read_documents('-')\nprint(ascii(list(r)), r.fraction)"
    )
    for data in (as_jsonl(rows()), gzip.compress(as_jsonl(rows()))):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], input=data, capture_output=True, check=True
        )
        assert ran.stdout.decode().strip() == f"{ascii(DOCUMENTS)} None"


def test_stdin_can_be_replaced_by_a_stream_in_memory(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    reader = read_documents("-", format="text")
    assert [document.text for document in reader] == ["one", "two"]
    assert reader.name == "<stdin>"


# Fields


def test_fields_can_be_renamed_and_are_not_repeated_in_metadata(tmp_path):
    line = '{"key": 7, "subject": "Hi", "body": "there", "topic": "a", "labels": "kept", "n": 1.5}'
    options = {"id_field": "key", "text_field": ["subject", "body"], "labels_field": "topic"}
    expected = Document("7", "Hi\nthere", ("a",), {"labels": "kept", "n": 1.5})
    assert read_one(tmp_path, line, **options) == expected


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"subject": null, "body": "b"}', "b"),
        ('{"body": "b"}', "b"),
        ('{"subject": "", "body": "b"}', "b"),
        ('{"subject": "", "body": ""}', ""),
    ],
)
def test_missing_parts_of_the_text_are_skipped(tmp_path, line, text):
    assert read_one(tmp_path, line, text_field=("subject", "body")).text == text


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ('"a;b"', ("a;b",)),
        ('["a", 2]', ("a", "2")),
        ("3", ("3",)),
        ("true", ("true",)),
        ("[]", ()),
        ("null", None),
        ("NaN", None),
        ('""', None),
    ],
)
def test_labels_of_json_lines(tmp_path, value, labels):
    assert read_one(tmp_path, f'{{"text": "x", "labels": {value}}}').labels == labels


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("a", ("a",)),
        ("a; b;", ("a", "b")),
        ('"[""a;b"", 1]"', ("a;b", "1")),
        ("[]", ()),
        (" ", None),
        ("", None),
    ],
)
def test_labels_of_a_table(tmp_path, cell, labels):
    assert read_one(tmp_path, f"text,labels\nx,{cell}\n", "x.csv").labels == labels


def test_labels_of_parquet_keep_lists_and_nulls(tmp_path):
    values = [["a", "b"], [], None]
    path = write_parquet(tmp_path / "x.parquet", [{"text": "t", "labels": v} for v in values])
    assert [document.labels for document in read_documents(path)] == [("a", "b"), (), None]


def ids_of(source, **options):
    return [document.id for document in read_documents(source, **options)]


def test_a_missing_id_is_the_file_and_the_record_number(tmp_path):  # #31 A1
    path = write(tmp_path / "x.jsonl", '{"text": "a"}\n\n{"text": "b", "id": null}\n')
    assert ids_of(path) == ["x.jsonl:1", "x.jsonl:2"]


def test_files_of_two_folders_have_different_ids(tmp_path, monkeypatch):  # #31 A1
    for folder in ("one", "two"):
        write(tmp_path / folder / "README.md", folder)
    assert ids_of(tmp_path / "one") == ["one/README.md"] != ids_of(f"{tmp_path}/two/")
    monkeypatch.chdir(tmp_path / "one")
    assert ids_of(".") == ["one/README.md"]


def test_two_streams_have_different_ids_and_one_the_same_again(monkeypatch):  # #31 A1
    def read(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return ids_of("-", format="text")

    first = read(b"one\ntwo\ntwo\n")
    assert [id.partition(":")[2] for id in first] == ["1", "2", "3"]
    assert read(b"one\ntwo\ntwo\n") == first
    assert not set(first) & set(read(b"three\nfour\nfive\n"))


@pytest.mark.parametrize("id", ["true", '["a"]', "1.5", '{"a": 1}'])
def test_an_id_is_a_string_or_a_whole_number(tmp_path, id):  # #31 B6
    path = write(tmp_path / "x.jsonl", f'{{"text": "a", "id": {id}}}')
    assert "line 1: an id must be a string or a whole number. Got " in error_of(path)


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028"])
def test_an_id_has_no_control_characters(tmp_path, character):  # #31 A4
    path = write(tmp_path / "x.jsonl", json.dumps({"text": "a", "id": f"a{character}b"}))
    assert "line 1: An id must have no line breaks and no other control" in error_of(path)
    fine = json.dumps({"text": "a", "id": "日本\u3000é ¨\xa0"})
    assert ids_of(write(path, fine)) == ["日本\u3000é ¨\xa0"]


def test_a_document_can_be_made_with_two_arguments_and_shares_nothing():
    first, second = Document("1", "a"), Document("2", "b")
    first.metadata["x"] = 1
    assert second == Document("2", "b", None, {})


def test_half_an_emoji_in_json_becomes_a_replacement_character(tmp_path):
    line = r'{"text": "\ud83d\ude80 \ud83d. \uDE80 \\ud83d"}'
    assert read_one(tmp_path, line).text == "🚀 \ufffd. \ufffd \\ud83d"


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt"])
def test_a_byte_order_mark_is_accepted(tmp_path, name):
    body = {"x.jsonl": '{"text": "a"}', "x.csv": "text\na", "x.txt": "a"}[name]
    assert read_one(tmp_path, codecs.BOM_UTF8 + body.encode(), name).text == "a"


def test_other_encodings_are_read_when_named(tmp_path):
    assert read_one(tmp_path, b"caf\xe9", "x.txt", encoding="latin-1").text == "café"


def test_a_table_takes_line_breaks_and_texts_of_any_length(tmp_path):
    long = "line\n" * 100_000
    document = read_one(tmp_path, f'text,n\n"{long}",1\n', "x.csv")
    assert document == Document("x.csv:1", long, None, {"n": 1})


def test_a_short_row_lacks_its_last_fields(tmp_path):
    assert read_one(tmp_path, "text,labels,n\nx\n", "x.csv") == Document("x.csv:1", "x")


@pytest.mark.parametrize(
    "line", ['{"text": "a", "x": NaN}', '{"text": "a",}', "[1", '{"text": "\\ud83d"}', '"a" "b"']
)
def test_json_without_orjson_behaves_the_same(tmp_path, monkeypatch, line):
    def outcome():
        try:
            return repr(read_one(tmp_path, line))
        except InputError as error:
            return str(error)

    fast = outcome()
    monkeypatch.setattr(values, "orjson", json)
    assert outcome() == fast


# Streaming


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv", "x.parquet", "folder"])
def test_fraction_grows_from_0_to_1(tmp_path, name):
    path, noise = tmp_path / name, random.Random(0)  # noise, so that gzip leaves something to read
    many = [{**row, "source": noise.randbytes(200).hex()} for row in list(rows()) * 500]
    if name == "folder":
        for number in range(20):
            write(path / f"{number}.txt", "text")
    elif name == "x.parquet":
        write_parquet(path, many)
    else:
        data = MAKERS[name.split(".")[1]](many)
        write(path, gzip.compress(data) if name.endswith("gz") else data)
    reader = read_documents(path)
    seen = [reader.fraction, *(reader.fraction for _ in reader), reader.fraction]
    assert seen == sorted(seen)
    assert seen[0] == 0 and seen[-1] == 1 and len(set(seen)) > 2


@pytest.mark.parametrize("form", MAKERS)
def test_ten_times_the_documents_take_no_more_memory(tmp_path, form):
    def peak(times):
        path = write(tmp_path / f"x.{form}", MAKERS[form](list(rows()) * times))
        tracemalloc.start()
        for _ in read_documents(path):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)  # warm caches
    assert min(peak(1_000) for _ in range(3)) < peak(100) + 50_000  # threads of others allocate too


@pytest.mark.parametrize("form", MAKERS)
def test_the_file_is_closed_when_reading_is_abandoned_or_fails(tmp_path, form, monkeypatch):
    opened = []

    def spy(*args, **kwargs):
        opened.append(open(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(source, "open", spy, raising=False)
    path = write(tmp_path / f"x.{form}", MAKERS[form](rows()))
    for _ in read_documents(path):
        break
    with pytest.raises(InputError) as caught:
        list(read_documents(path, text_field="nope"))
    assert len(opened) == 2 and all(file.closed for file in opened), caught


# Bad input


def test_a_missing_file_is_named_at_once():
    with pytest.raises(MissingFileError, match="No file or folder 'nope.jsonl'"):
        read_documents("nope.jsonl")


def test_an_unknown_ending_names_the_formats_at_once(tmp_path):
    with pytest.raises(InputError, match=r"\.jsonl.*\.csv.*format=.*parquet"):
        read_documents(write(tmp_path / "x.doc", "a"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format must be one of jsonl, csv, tsv, parquet, text. Got 'xml'."),
        ({"encoding": "utf-99"}, "No encoding 'utf-99'"),
        ({"max_document_size": 0}, "max_document_size must be 1 or more. Got 0."),
        ({"format": "parquet"}, "Parquet cannot be read from stdin"),
    ],
)
def test_settings_are_checked_at_once(options, message):
    with pytest.raises(InputError) as caught:
        read_documents("-", **options)
    assert message in str(caught.value)


def test_a_folder_takes_no_format(tmp_path):
    with pytest.raises(InputError, match="leave out format='csv'"):
        read_documents(tmp_path, format="csv")


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.tsv", "x.txt", "x.jsonl.gz"])
@pytest.mark.parametrize("data", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_a_source_without_documents_is_an_error(tmp_path, name, data):
    path = write(tmp_path / name, data)
    assert error_of(path, id_field="key") == f"'{path}' holds no documents."


def test_a_table_with_a_header_only_holds_no_documents(tmp_path):
    assert "holds no documents" in error_of(write(tmp_path / "x.csv", "id,text\n"))


def test_a_folder_without_files_holds_no_documents(tmp_path):
    write(tmp_path / ".hidden", "a")
    assert error_of(tmp_path) == f"'{tmp_path}' holds no documents."


def test_empty_parquet_holds_no_documents(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", [{"text": "a"}])
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert error_of(path) == f"'{path}' holds no documents."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "line 3: broken JSON (Expecting ',' delimiter: column 13 (char 12))."),
        ("[", "line 3: broken JSON"),
        ("[" * 100_000, "line 3: broken JSON"),
        ('["a"]', "line 3: not a JSON object: ['a']. Write one JSON object a line"),
        ('{"txt": "a", "id": 1}', "line 3: no field 'text'. Did you mean 'txt'? There are 'txt', "),
        ("{}", "no field 'text'. There is nothing. Name it with text_field= (--text-field)."),
        ('{"text": null}', "line 3: the text must be a string. Got 'text': None."),
        ('{"text": 5}', "line 3: the text must be a string. Got 'text': 5."),
        ('{"text": "a", "labels": {"b": 1}}', "line 3: labels must be strings or numbers. Got {"),
        ('{"text": "a", "labels": ["b", null]}', "Got ['b', None]."),
        (b'{"text": "caf\xe9"}', "line 3: byte 0xe9 is not utf-8. Name the encoding"),
    ],
)
def test_a_bad_line_of_json_is_named(tmp_path, line, message):
    line = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / "x.jsonl", b'{"text": "good"}\n\n' + line + b"\n")
    error = error_of(path)
    assert error.startswith(f"'{path}', line 3: ") and message in error


def test_documents_before_a_bad_line_are_given(tmp_path):
    reader = iter(read_documents(write(tmp_path / "x.jsonl", '{"text": "a"}\noops\n')))
    assert next(reader).text == "a"
    with pytest.raises(InputError, match="line 2"):
        next(reader)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,a,b,c", "line 3: 4 cells under 3 columns."),
        ("1", "line 3: no field 'text'. There is 'id'."),
        ("1,a,\"['b']\"", 'line 3: "[\'b\']" is not a JSON array. Write ["a", "b"] or a;b.'),
        ('1,"never closed', "line 3: broken table (unexpected end of data)."),
        (b"1,caf\xe9,b", "line 3: byte 0xe9 is not utf-8."),
    ],
)
def test_a_bad_row_is_named(tmp_path, row, message):
    row = row if isinstance(row, bytes) else row.encode()
    path = write(tmp_path / "x.csv", b"id,text,labels\n1,good,b\n" + row)
    assert message in error_of(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has no column 'text'. Did you mean 'Text'? There are 'id', 'Text', 'topic'."),
        ({"text_field": "Text", "labels_field": "topics"}, "Did you mean 'topic'?"),
        ({"text_field": "Text", "id_field": "key"}, "Name it with id_field= (--id-field)."),
        ({"text_field": ["Text", "body"]}, "has no column 'body'."),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_missing_column_is_named(tmp_path, name, options, message):
    path = tmp_path / name
    if name == "x.csv":
        write(path, "id,Text,topic\n1,a,b\n")
    else:
        write_parquet(path, [{"id": 1, "Text": "a", "topic": "b"}])
    assert message in error_of(path, **options)


def test_a_bad_row_of_parquet_is_named(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", [{"text": "a"}, {"text": None}])
    assert "row 2: the text must be a string. Got 'text': None." in error_of(path)


def test_bytes_of_another_encoding_are_named(tmp_path):
    path = write(tmp_path / "x.txt", b"one\ntwo\nc\xf4t\xe9\n")
    assert f"'{path}', line 3: byte 0xf4 is not utf-8." in error_of(path)


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:30] + bytes(50)])
def test_damaged_gzip_is_an_error(tmp_path, damage):
    path = write(tmp_path / "x.jsonl.gz", damage(gzip.compress(as_jsonl(list(rows()) * 100))))
    assert error_of(path) == f"'{path}' is cut off or damaged gzip. Copy or pack it again."


@pytest.mark.parametrize("data", [b"", b"not parquet at all", b"PAR1" + bytes(50) + b"PAR1"])
def test_damaged_parquet_is_an_error(tmp_path, data):
    pytest.importorskip("pyarrow")
    path = write(tmp_path / "x.parquet", data)
    assert error_of(path).startswith(f"Cannot read '{path}' as Parquet: ")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'vdsh\[parquet\]'"):
        list(read_documents(write(tmp_path / "x.parquet", "a")))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_may_not_be_read_is_an_error(tmp_path, kind):
    path = write(tmp_path / "docs/x.txt", "a")
    locked = path if kind == "file" else path.parent
    locked.chmod(0)
    try:
        assert error_of(locked).endswith("Permission denied.")
    finally:
        locked.chmod(0o755)


# Folders (#31 A8)

NO_TEXTS = {
    "photo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "photo.jpg": b"\xff\xd8\xff\xe1\x02Exif\x03\x81",
    "cut.gz": gzip.compress(b"some words that are cut")[:-9],
    "wide": "no mark".encode("utf-16-le"),
    "large.bin": bytes(2000),
}


def test_files_of_a_folder_that_are_no_text_are_skipped_and_counted(tmp_path):
    for name, data in NO_TEXTS.items():
        write(tmp_path / name, data)
    write(tmp_path / "note.md", "moon")
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")  # would be waited for
    write(tmp_path / "two\nlines", "could be no id")
    with pytest.warns(SkippedFilesWarning) as caught:
        (document,) = read_documents(tmp_path, max_document_size=1000)
    assert document.text == "moon"
    name = tmp_path.name
    assert sorted(str(warning.message) for warning in caught) == [
        f"Skipped 1 of 9 files ('{name}/broken'): it cannot be read (No such file or directory).",
        f"Skipped 1 of 9 files ('{name}/cut.gz'): it is damaged gzip.",
        f"Skipped 1 of 9 files ('{name}/pipe'): it is not a regular file.",
        f"Skipped 1 of 9 files ('{name}/two�lines'): it has a name that is not UTF-8, or has "
        "control characters.",
        f"Skipped 4 of 9 files ('{name}/large.bin', '{name}/photo.jpg', '{name}/photo.png' and "
        "1 more): each is not text. Name the encoding of texts with encoding= (--encoding).",
    ]
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_the_encoding_of_a_file_in_a_folder_is_found(tmp_path, encoding):
    write(tmp_path / "docs/x", "côté “ouest”\n".encode(encoding))
    assert [document.text for document in read_documents(tmp_path / "docs")] == ["côté “ouest”\n"]


def test_the_encoding_of_a_folder_can_be_named(tmp_path):
    write(tmp_path / "x", "東京".encode("shift_jis"))
    assert [document.text for document in read_documents(tmp_path, encoding="sjis")] == ["東京"]


@pytest.fixture
def linked(tmp_path):
    """A folder with links to a file and a folder outside, which leads back, and into itself."""
    write(tmp_path / "docs/sub/inside", "a")
    write(tmp_path / "other/outside", "b")
    for name, target in {
        "docs/file": "other/outside",
        "docs/folder": "other",
        "docs/again": "docs/sub/inside",
        "docs/sub/circle": "docs",
        "docs/sub/itself": "docs/sub/itself",
        "other/back": ".",
    }.items():
        (tmp_path / name).symlink_to(tmp_path / target)
    return tmp_path / "docs"


def test_links_that_leave_a_folder_are_left_alone(linked):
    with pytest.warns(SkippedFilesWarning) as caught:
        assert ids_of(linked) == ["docs/again", "docs/sub/inside"]
    left, circle = (str(warning.message) for warning in caught)
    assert "('docs/sub/itself'): it cannot be read (Too many levels of symbolic links)." in circle
    assert left == (
        "Skipped 2 of 5 files ('docs/file', 'docs/folder/'): each is a link that leads out of its "
        "folder. Follow links with follow=True (--follow)."
    )


def test_links_are_followed_when_asked_each_folder_once(linked):
    with pytest.warns(SkippedFilesWarning, match="sub/itself"):
        found = ids_of(linked, follow=True)
    assert found == ["docs/again", "docs/file", "docs/folder/outside", "docs/sub/inside"]


def found_in(*roots, **options):
    """Sort what `find_files` gives into ids of files, and ids with their reasons."""
    found = list(find_files(roots, **options))
    files = [each.id for each in found if isinstance(each, FoundFile)]
    return files, {each.id: each.reason for each in found if isinstance(each, Skipped)}


def make_tree(root, *names):
    for name in names:
        write(root / name, "text")
    return root


def test_files_are_found_in_the_order_of_their_ids_with_size_and_time(tmp_path):  # #35
    root = make_tree(tmp_path / "notes", "b/c/d", "b/a", "b-a", "b.md", "a", ".git/x", "é/🚀 x")
    os.utime(root / "a", ns=(1, 1_234_567_890_123_456_789))
    ids, skipped = found_in(root)
    assert ids == sorted(ids) and not skipped
    assert ids == [f"notes/{name}" for name in ("a", "b-a", "b.md", "b/a", "b/c/d", "é/🚀 x")]
    first = next(find_files([root]))
    facts = os.stat(root / "a")
    times = (1_234_567_890_123_456_789, facts.st_ctime_ns)
    assert first == ("notes/a", root / "a", 4, *times, facts.st_ino)


def test_gitignore_is_honoured_at_every_level(tmp_path):  # #35
    names = "a.log keep.log build/x sub/a.log sub/deep/b.log sub/deep/c.tmp sub/top src/build/y"
    root = make_tree(tmp_path / "n", *names.split())
    write(root / ".gitignore", "# comment\n*.log\r\n!keep.log\nbuild/\n/top\n!\n[z-a]\n")
    write(root / "sub/.gitignore", "!b.log\n*.tmp")
    assert found_in(root)[0] == ["n/keep.log", "n/sub/deep/b.log", "n/sub/top"]


def test_includes_and_excludes_are_patterns_of_paths(tmp_path):  # #35
    root = make_tree(tmp_path / "n", "a.md", "a.py", "old/b.md", "docs/c.txt", "docs/old/d.md")
    assert found_in(root, include=["*.md"])[0] == ["n/a.md", "n/docs/old/d.md", "n/old/b.md"]
    assert found_in(root, include=["docs/"])[0] == ["n/docs/c.txt", "n/docs/old/d.md"]
    assert found_in(root, exclude=["old/", "*.py"])[0] == ["n/a.md", "n/docs/c.txt"]
    assert found_in(root, include=["*.md"], exclude=["/old"])[0] == ["n/a.md", "n/docs/old/d.md"]


GLOBS = st.sampled_from(["a", "b", "*", "?", "**", "a*", "*b", "[ab]", "[!a]", "a*b*a"])
RULES = st.builds(
    lambda root, globs, end: root + "/".join(globs) + end,
    st.sampled_from(["", "/"]),
    st.lists(GLOBS, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
).filter(lambda rule: not rule.endswith("**/"))
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "aab"]), min_size=1, max_size=4).map("/".join)


@given(rules=st.lists(RULES, max_size=3), path=PATHS, end=st.sampled_from(["", "/"]))
def test_patterns_agree_with_another_library(rules, path, end):  # #35; mypy brings it
    pathspec = pytest.importorskip("pathspec")
    ours, theirs = Patterns(rules), pathspec.GitIgnoreSpec.from_lines(rules)
    ends = [place for place, sign in enumerate(path) if sign == "/"]
    if end and any(rule.endswith("/**") for rule in rules):
        return  # the other library takes the folder for one of those inside
    if not any(ours.leave_out(path[: place + 1]) for place in ends):
        assert bool(ours.leave_out(path + end)) == theirs.match_file(path + end)


def test_a_rule_for_all_inside_a_folder_is_not_for_the_folder():
    """As git does it: else nothing inside could be taken back."""
    patterns = Patterns(["b/**", "!b/a"])
    assert not patterns.leave_out("b/") and not patterns.leave_out("b/a")
    assert patterns.leave_out("b/c")


def test_a_rule_that_takes_a_folder_back_does_not_take_back_what_is_in_it():
    """As git does it; the other library takes all back."""
    patterns = Patterns(["b", "!a"])
    assert patterns.leave_out("a/b/")
    assert not patterns.leave_out("a/")


def test_a_rule_of_folders_at_any_depth_leaves_files_alone():
    """As git does it; the other library leaves the file out too."""
    patterns = Patterns(["b/**/"])
    assert patterns.leave_out("b/c/")
    assert not patterns.leave_out("b/a")


def test_names_that_cannot_be_ids_are_skipped_with_a_reason(tmp_path):  # #35
    root = make_tree(tmp_path / "n", "fine")
    for name in (b"caf\xe9", b"caf\xe8", b"two\nlines", b"d\xff/inside"):
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x")
    files, skipped = found_in(root)
    assert files == ["n/fine"]
    assert sorted(skipped) == ["n/caf�", "n/d�/", "n/two�lines"]
    assert {*skipped.values()} == {"has a name that is not UTF-8, or has control characters"}


def test_pipes_sockets_and_stores_are_skipped_and_never_opened(tmp_path):  # #35
    root = make_tree(tmp_path / "n", "a", "store/store.sqlite", "store/examples.txt")
    os.mkfifo(root / "pipe")
    (root / "null").symlink_to("/dev/null")
    files, skipped = found_in(root, follow=True)
    assert files == ["n/a"]
    no_file = "is not a regular file"
    assert skipped == {"n/null": no_file, "n/pipe": no_file, "n/store/": "is a store of vdsh"}


def test_several_roots_may_be_files_and_are_read_once(tmp_path):  # #35
    root = make_tree(tmp_path / "n", "a", "sub/b")
    assert found_in(root / "a", root, root, root / "sub")[0] == ["a", "n/a", "n/sub/b"]
    make_tree(tmp_path / "other/n", "a")
    with pytest.raises(InputError, match="have the same name, so their ids would be the same"):
        found_in(root, tmp_path / "other/n")
    with pytest.raises(MissingFileError, match="No file or folder"):
        found_in(root, tmp_path / "gone")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
def test_a_folder_below_that_may_not_be_read_is_skipped(tmp_path):  # #35
    root = make_tree(tmp_path / "n", "a", "locked/b")
    (root / "locked").chmod(0)
    try:
        assert found_in(root) == (["n/a"], {"n/locked/": "cannot be read (Permission denied)"})
    finally:
        (root / "locked").chmod(0o755)


# Values, sizes and encodings (#16 A7, A9, C, D4)


def test_a_cell_of_400_digits_stays_text(tmp_path):
    digits = "9" * 400
    assert read_one(tmp_path, f"text,n\na,{digits}\n", "x.csv").metadata == {"n": digits}
    assert read_one(tmp_path, f'{{"text": "a", "n": {digits}}}').metadata == {"n": digits}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_not_finite_are_missing(tmp_path, number):
    line = f'{{"text": "a", "id": {number}, "labels": {number}, "x": {number}, "y": [{number}]}}'
    assert read_one(tmp_path, line) == Document("x.jsonl:1", "a", None, {"x": None, "y": [None]})


def test_dates_bytes_and_decimals_of_parquet_become_plain(tmp_path):
    pa = pytest.importorskip("pyarrow")
    moment = datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC)
    row = {
        "id": b"a", "text": b"caf\xc3\xa9", "day": moment.date(), "hour": moment.time(),
        "took": timedelta(minutes=1), "price": Decimal("1.50"), "inner": [{"day": moment.date()}],
        "nothing": math.nan,
    }  # fmt: skip
    table = pa.Table.from_pylist([row])
    for name, kind in (("at", pa.timestamp("us", "UTC")), ("nanos", pa.timestamp("ns"))):
        table = table.append_column(name, pa.array([moment.replace(tzinfo=None)], kind))
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    (document,) = read_documents(tmp_path / "x.parquet")
    assert (document.id, document.text) == ("a", "café")
    assert document.metadata == {
        "day": "1969-07-20", "hour": "20:17:40", "took": 60, "price": 1.5,
        "inner": [{"day": "1969-07-20"}], "nothing": None, "at": "1969-07-20T20:17:40+00:00",
        "nanos": "1969-07-20T20:17:40",
    }  # fmt: skip


def test_bytes_that_are_no_text_name_the_way_out(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", [{"text": "a", "thumb": b"\xff\xd8"}])
    assert error_of(path) == (
        f"'{path}', row 1: field 'thumb' holds bytes that are no UTF-8 text. "
        "Leave it out with drop_field='thumb' (--drop-field thumb)."
    )
    assert list(read_documents(path, drop_field="thumb")) == [Document("x.parquet:1", "a")]


def test_a_date_that_python_cannot_hold_names_its_field(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["a"], "far": pa.array([2**40], pa.timestamp("s"))})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    assert "rows 1 to 1: field 'far' cannot be read" in error_of(tmp_path / "x.parquet")


@pytest.mark.parametrize("form", MAKERS)
def test_dropped_fields_are_gone(tmp_path, form):
    path = write(tmp_path / f"x.{form}", MAKERS[form](rows()))
    read = list(read_documents(path, drop_field=["source", "labels"]))
    assert read == [Document(document.id, document.text) for document in DOCUMENTS]


def test_a_column_to_drop_that_is_not_there_is_named(tmp_path):
    path = write(tmp_path / "x.csv", "text,email\na,b\n")
    assert "no column 'emial'. Did you mean 'email'?" in error_of(path, drop_field="emial")


def test_json_nested_too_deep_names_its_line_and_field(tmp_path):
    line = '{"text": "a", "x": ' + "[" * 500 + "]" * 500 + "}"
    path = write(tmp_path / "x.jsonl", line)
    assert "line 1: field 'x' is nested deeper than 100 levels. Leave it out" in error_of(path)


LONG = "word " * 300
TOO_LONG = {
    "x.jsonl": f'{{"text": "a"}}\n{{"text": "{LONG}"}}\n',
    "x.txt": f"a\n{LONG}\n",
    "x.csv": f"text,n\n{LONG},1\n",
    "quoted.csv": 'text,n\n"' + "word\n" * 300 + '",1\n',
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_document_over_the_limit_names_its_place(tmp_path, name):
    path = write(tmp_path / name, TOO_LONG[name])
    error = error_of(path, max_document_size=1000)
    assert error.startswith(f"'{path}', line 2: a document of more than 1,000 bytes. Cut it, or")
    assert list(read_documents(path, max_document_size=2000))


def test_files_of_a_folder_over_the_limit_are_skipped_and_counted(tmp_path):  # #32
    write(tmp_path / "docs/large.txt", "word\n" * 300)
    write(tmp_path / "docs/small.txt", "moon")
    with pytest.warns(SkippedFilesWarning) as caught:
        (document,) = read_documents(tmp_path / "docs", max_document_size=1000)
    assert document.text == "moon"
    assert [str(warning.message) for warning in caught] == [
        "Skipped 1 of 2 files ('docs/large.txt'): it has more than 1,000 bytes. "
        "Allow more with max_document_size= (--max-document-size)."
    ]
    assert len(list(read_documents(tmp_path / "docs", max_document_size=2000))) == 2


def test_rows_below_the_limit_add_up_to_any_size(tmp_path):
    path = write(tmp_path / "x.csv", "text\n" + "some words\n\n" * 200)
    assert len(list(read_documents(path, max_document_size=20))) == 200


def test_a_row_of_parquet_over_the_limit_is_named(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", [{"text": "a"}, {"text": LONG}])
    assert "row 2: a document of more than 1,000 bytes" in error_of(path, max_document_size=1000)


@pytest.mark.filterwarnings("ignore::vdsh.documents.folder.SkippedFilesWarning")
@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv.gz", "folder/x.gz"])
def test_an_endless_line_takes_no_more_memory_than_a_document(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'text\n"' if "csv" in name else b'{"text": "')
        for _ in range(20):
            file.write((b"word" * 24 + b"\n   " if "csv" in name else b"words" * 20) * 10_000)
    tracemalloc.start()
    error = error_of(path.parent if "folder" in name else path, max_document_size=10**6)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ("more than 1,000,000 bytes" if "folder" not in name else "no documents") in error
    assert most < 12 * 10**6  # the file has 20 MB; csv keeps four bytes a character, and grows


@pytest.mark.parametrize("header", ["id;text;n", "id\ttext\tn", "id|text|n", '"id";"text";"n"'])
def test_the_delimiter_of_a_table_is_found(tmp_path, header):
    mark = next(mark for mark in ";\t|" if mark in header)
    data = f"\n{header}\n7{mark}a, b{mark}1\n"
    assert read_one(tmp_path, data, "x.csv") == Document("7", "a, b", None, {"n": 1})


def test_a_header_that_is_no_table_is_told(tmp_path):  # found by benchmarks/fuzz.py
    (tmp_path / "t.csv").write_bytes(b'id,te"x\rt\n1,one\n')
    with pytest.raises(VdshError):
        list(read_documents(tmp_path / "t.csv"))


def test_the_delimiter_can_be_named(tmp_path):
    data = "id:text;x\n7:a;b\n"
    for delimiter, text_field in ((":", "text;x"), (None, "x")):
        read = read_one(tmp_path, data, "x.csv", delimiter=delimiter, text_field=text_field)
        assert read.text == {"x": "b", "text;x": "a;b"}[text_field]
    assert read_one(tmp_path, "id\ttext\n7\ta", "x.csv", delimiter=r"\t").id == "7"
    with pytest.raises(InputError, match="delimiter must be one character"):
        read_documents(tmp_path, delimiter="::")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("form", MAKERS)
def test_utf_16_is_recognised_by_its_mark(tmp_path, form, encoding):
    data = MAKERS[form](rows()).decode().encode(encoding)
    assert list(read_documents(write(tmp_path / f"x.{form}", data))) == DOCUMENTS
    plain = MAKERS[form](rows()).decode().encode(f"{encoding}-le")
    path = write(tmp_path / f"x.{form}", gzip.compress(plain))
    assert list(read_documents(path, encoding=f"{encoding}-le")) == DOCUMENTS
    assert "line 1: zero bytes, as UTF-16 has them" in error_of(path)


def test_broken_utf_16_and_a_long_line_of_it_are_errors(tmp_path):
    path = write(tmp_path / "x.txt", "a\n".encode("utf-16") + b"\x00\xd8\x00\x00")
    assert f"'{path}', line 1 or soon after: 'utf-16" in error_of(path)
    path = write(tmp_path / "x.txt", LONG.encode("utf-16"))
    assert "line 1: a document of more than" in error_of(path, max_document_size=1000)


def test_html_gives_words_only(tmp_path):
    page = "<!doctype html><style>p {}</style><p>Caf&eacute;&nbsp;<b>b</b>old<!-- no --><td>x</td>y"
    path = write(tmp_path / "x.txt", page)
    (document,) = read_documents(path, html=True)
    assert document.text.split() == ["Café", "bold", "x", "y"]
    assert read_one(tmp_path, page, "x.txt").text == page


@pytest.mark.parametrize("part", ["<!--", "<a ", "<script", "<p>&amp", "</", "<"])
def test_html_that_never_ends_is_read_at_once(part):
    assert len(text_of(part * 200_000)) <= len(part) * 200_000
