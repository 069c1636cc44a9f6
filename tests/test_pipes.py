"""What verbs print where a program or a file reads it: whole ids, and a line for each hit."""

import json

import pytest

from vdsh import Document, open_store

LONG = "reports/2024/" + "a folder with a long name/" * 12 + "the  very end.txt"
LABELS = ("space and what is in it " * 5, "two\twords\non lines")
TEXT = "moon\torbit\r\ncrew\u2028shuttle " + "of many words\n" * 200


@pytest.fixture
def store(tmp_path):
    """Documents with a long id, labels that have tabs, and copies; without codes."""
    with open_store(tmp_path / "s") as opened:
        opened.upsert(
            [
                Document(LONG, TEXT, LABELS),
                Document("b", "moon and stars"),
                Document("copy/of " + LONG, TEXT, ("other",)),
                Document("unrelated", "goal keeper"),
            ]
        )
    return "s"


def cells(result):
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("\n")
    return [line.split("\t") for line in result.stdout[:-1].split("\n")]


def test_a_hit_is_one_line_of_number_id_labels_and_passage(vdsh, store):
    rows = cells(vdsh("search", store, "moon stars", env=None))  # a process, and a real pipe
    assert [len(row) for row in rows] == [4, 4]
    assert rows[0][1:] == ["b", "", "moon and stars"]
    assert rows[1][1] == "copy/of " + LONG
    assert rows[1][3].endswith("(1 more like it)")
    assert float(rows[0][0]) > float(rows[1][0])


def test_labels_are_whole_and_keep_to_their_cell(vdsh, store):
    where = json.dumps({"id": LONG})
    (row,) = cells(vdsh("search", store, "moon", "--where", where))
    assert row[1] == LONG
    assert row[2] == "space and what is in it " * 5 + ", two words on lines"


@pytest.mark.parametrize("columns", ["20", "40", "1000"])
def test_the_width_of_a_terminal_means_nothing_in_a_pipe(vdsh, store, columns, monkeypatch):
    usual = vdsh("search", store, "moon").stdout
    monkeypatch.setenv("COLUMNS", columns)
    assert vdsh("search", store, "moon").stdout == usual


def test_no_heading_stands_between_hits(vdsh, model_folder, docs):
    vdsh("index", model_folder, docs, "--store", "toy")
    query = ("search", "toy", "rocket", "-k", 80)
    found = [json.loads(line) for line in vdsh(*query, "--json").stdout.splitlines()]
    assert {hit["related"] for hit in found} == {True, False}
    assert {len(row) for row in cells(vdsh(*query))} == {4}


def test_hits_within_a_radius_are_lines_too(vdsh, model_folder, docs):
    vdsh("index", model_folder, docs, "--store", "toy")
    rows = cells(vdsh("search", "toy", "rocket moon", "--radius", 3))
    assert all(len(row) == 4 and row[0].isdecimal() and row[2] for row in rows)


def test_hits_of_several_queries_are_lines_below_each_query(vdsh, store):
    said = vdsh("search", store, "-", input="moon\ngoal\n").stdout
    first, second = said.removesuffix("\n\n").split("\n\n")
    assert first.split("\n")[0] == "moon" and second.split("\n")[0] == "goal"
    assert [line.count("\t") for line in first.split("\n")[1:]] == [3, 3, 3]
    assert [line.count("\t") for line in second.split("\n")[1:]] == [3]


def test_a_duplicate_is_one_line_with_the_document_that_is_kept(vdsh, store):
    rows = cells(vdsh("duplicates", store, "--quiet"))
    assert rows == [["0", "1.000", LONG, "copy/of " + LONG]]


def test_ids_of_a_pipe_are_those_that_delete_takes(vdsh, store):
    found = cells(vdsh("search", store, "moon"))
    ids = "\n".join(row[1] for row in found)
    deleted = vdsh("delete", store, "-", "--yes", input=ids)
    assert deleted.stdout.startswith("Deleted 2 of 2;"), deleted.stderr


def test_data_sets_are_lines_with_tabs(vdsh):
    rows = cells(vdsh("research", "datasets"))
    assert rows[0] == ["name", "documents", "labels", "where", "licence"]
    assert {len(row) for row in rows} == {5}
