"""The verbs on a store, as a user types them."""

import json
import os
import re
import select
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import numpy as np
import pytest

from vdsh import Document
from vdsh.cli import cleanup, output
from vdsh.store import open_store
from vdsh.store.check_sums import sum_of


@pytest.fixture
def store(vdsh, model_folder, docs, tmp_path):
    """A store of the toy corpus; ids d0 ... d79, labels space and sport, field year."""
    rows = [json.loads(line) for line in docs.read_text().splitlines()]
    lines = [json.dumps(row | {"year": 1980 + i}) for i, row in enumerate(rows)]
    docs.write_text("\n".join(lines))
    result = vdsh("index", model_folder, docs, "--store", "s")
    assert result.returncode == 0, result.stderr
    assert "Wrote 80 documents; the store s holds 80." in result.stdout
    return tmp_path / "s"


def test_search_shows_score_id_labels_and_passage(vdsh, store):
    result = vdsh("search", store, "rocket to the moon with a crew in orbit", "-k", 5)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert len(rows) == 5
    assert all(label == "space" and id.startswith("d") for _, id, label, *_ in rows)
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    nearest = vdsh("search", store, "rocket moon", "--rank", "distance").stdout.splitlines()
    assert all(line.split()[0].isdecimal() for line in nearest)


@pytest.fixture
def terminal(monkeypatch):
    """Let verbs print as at a terminal."""
    monkeypatch.setattr(output, "at_terminal", lambda: True)
    monkeypatch.setattr(cleanup, "at_terminal", lambda: True)


def test_related_hits_stand_below_a_line_and_strict_leaves_them_out(vdsh, store, terminal):  # 33
    query = ("search", store, "rocket", "-k", 80)
    hits = [json.loads(line) for line in vdsh(*query, "--json").stdout.splitlines()]
    with_words = [hit for hit in hits if not hit["related"]]
    assert 0 < len(with_words) < len(hits) == 80
    lines = vdsh(*query).stdout.splitlines()
    assert lines.index("Related, without these words:") == len(with_words) and len(lines) == 81
    strict = vdsh(*query, "--strict", "--json").stdout.splitlines()
    assert [json.loads(line) for line in strict] == with_words


@pytest.mark.parametrize("options", [[], ["--radius", 2]])
def test_words_need_no_quotes(options, vdsh, store):  # 18
    joined = vdsh("search", store, "rocket moon", "--json", *options).stdout
    assert vdsh("search", store, "rocket", "--json", "moon", *options).stdout == joined != ""


@pytest.mark.parametrize("query", ["moon|-rocket", "moon -rocket", "--|moon|-rocket"])
def test_a_word_behind_a_dash_is_left_out(query, vdsh, store):  # 18
    found = vdsh("search", store, "-k", 30, "--json", *query.split("|"))
    texts = [json.loads(line)["text"] for line in found.stdout.splitlines()]
    assert texts and "moon" in texts[0]
    assert not any("rocket" in text for text in texts)


def test_a_phrase_in_quotes_is_looked_for_as_it_is(vdsh, store, model_folder, tmp_path):  # 18
    (tmp_path / "p.jsonl").write_text('{"id": "p", "text": "the crew saw a red moon rise"}')
    assert vdsh("index", model_folder, "p.jsonl", "--store", store).returncode == 0
    found = vdsh("search", store, 'crew "red moon"', "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in found] == ["p"]


@pytest.mark.parametrize("query", [["moon", "--where", "id=nobody"], ["-"]])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_search_that_finds_nothing_says_so_as_grep_does(query, as_json, vdsh, store):  # #32
    result = vdsh("search", store, *query, *as_json, input="the of\n")
    assert result.returncode == 1
    if query == ["-"]:
        assert (json.loads(result.stdout)["hits"] == []) if as_json else "counts" in result.stdout
    else:
        assert (result.stdout, result.stderr) == ("", "Nothing found.\n")
    assert vdsh("search", store, "-", input="the of\nmoon\n").returncode == 0


@pytest.mark.parametrize("option", ["-json", "-where"])
def test_an_option_with_one_dash_is_not_taken_for_a_word(option, vdsh, store):  # 18
    result = vdsh("search", store, "moon", option)
    assert result.returncode == 2
    assert f"Did you mean -{option}?" in " ".join(result.stderr.replace("\u2502", " ").split())


def test_the_best_passage_is_shown_and_its_words_marked(vdsh, store, model_folder, tmp_path):  # 18
    text = (
        "nothing to see here " * 20 + "then the satellite fell\n\n on the moon " + "and so on " * 50
    )
    (tmp_path / "long.jsonl").write_text(json.dumps({"id": "long", "text": text}))
    assert vdsh("index", model_folder, "long.jsonl", "--store", store).returncode == 0
    for rank in ("relevance", "distance"):
        query = ("search", store, "satellite", "moon", "--where", "id=long", "--rank", rank)
        assert "the satellite fell on the moon and" in vdsh(*query).stdout
        (hit,) = map(json.loads, vdsh(*query, "--json").stdout.splitlines())
        assert "the satellite fell on the moon and" in hit["passage"]
        assert len(hit["passage"]) <= 240
    assert hit.keys() == {"id", "distance", "text", "labels", "metadata", "code", "passage"}


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, 140])
def test_the_table_is_as_wide_as_the_terminal(width, store):  # 18
    import pty

    with open_store(store) as opened:
        opened.upsert([Document("far/away/" * 5, "a moon " + "of many words " * 50, ("space",))])
    read = bytearray()

    def listen(terminal):
        read.extend(some := os.read(terminal, 1 << 16))
        return some

    size = f"import os; os.environ['COLUMNS'] = '{width}'; from vdsh.cli import main; import sys; "
    run = f"{size}sys.argv = ['vdsh', 'search', {str(store)!r}, 'moon', '-k', '81']; main()"
    saved, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # what pty copies to standard output
    try:
        assert pty.spawn([sys.executable, "-c", run], listen) == 0
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)
    assert b"\x1b[1mmoon\x1b[0m" in read
    lines = re.sub(r"\x1b\[\d+m", "", read.decode()).splitlines()
    longest = max(map(len, lines))
    assert longest <= width
    assert longest > width - 20
    lines = [line for line in lines if not line.startswith("Related")]
    assert (len(lines) > 81) == (width == 60)  # the passages have lines of their own


def test_texts_cannot_command_the_terminal(vdsh, store, model_folder, tmp_path):  # 18
    odd = {"id": "o\u202e", "text": "moon \x1b]0;title\x07 \u202eorbit", "labels": ["\x9b1m"]}
    (tmp_path / "odd.jsonl").write_text(json.dumps(odd))
    assert vdsh("index", model_folder, "odd.jsonl", "--store", store).returncode == 0
    for query in (("moon",), ("-",)):
        shown = vdsh("search", store, *query, "-k", 81, input="moon\x1b[2J\n").stdout
        assert "moon ]0;title orbit" in shown
        assert not set(shown) & set("\x1b\x07\x9b\u202e")


def test_queries_come_from_standard_input(vdsh, store):  # 18
    given = "rocket moon\n\n  goal xylophone \r\nthe of"
    result = vdsh("search", store, "-", "-k", 2, "--json", input=given)
    assert (result.returncode, result.stderr) == (0, "")
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert first["query"] == "rocket moon"
    alone = vdsh("search", store, "rocket", "moon", "-k", 2, "--json").stdout.splitlines()
    assert first["hits"] == [json.loads(line) for line in alone]
    assert first.keys() == {"query", "hits"}
    assert (second["query"], second["unknown"]) == ("goal xylophone", ["xylophone"])
    assert (third["hits"], "no word that counts" in third["warning"]) == ([], True)
    lines = vdsh("search", store, "-", "-k", 2, input=given).stdout.splitlines()
    assert [lines[i] for i in (0, 4, 9)] == ["rocket moon", "goal xylophone", "the of"]
    assert "xylophone" in lines[5]


def test_queries_that_are_not_text_are_one_sentence(vdsh, store):  # 18
    result = vdsh("search", store, "-", "--json", input=b"moon\n\xff\xfe\n")
    assert result.returncode == 1
    assert "Line 2 of standard input is not UTF-8" in result.stderr
    assert vdsh("search", store, "-", input="").stdout == ""


def test_each_query_is_answered_when_it_comes(store):  # 18
    command = [sys.executable, "-m", "vdsh", "search", str(store), "-", "--json", "-k", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, **pipes) as process:
        for query in ("moon", "goal"):
            process.stdin.write(f"{query}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["query"] == query
        process.stdin.close()
        assert process.wait(60) == 0


def test_search_filters_and_prints_json(vdsh, store):
    options = ("--where", "label=sport", "--where", "year>=2000", "--json")
    result = vdsh("search", store, "rocket moon orbit", "-k", 3, *options)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(found) == 3
    assert all(hit["labels"] == ["sport"] and hit["metadata"]["year"] >= 2000 for hit in found)
    fields = {
        "id",
        "distance",
        "text",
        "labels",
        "metadata",
        "code",
        "score",
        "words",
        "related",
        "passage",
    }
    assert set(found[0]) == fields


def test_search_by_code_and_by_expected_distance(vdsh, store, model_folder):
    code = vdsh("encode", model_folder, "-", input='{"text": "rocket moon orbit"}').stdout.split()[
        1
    ]
    text = vdsh("search", store, "rocket moon orbit", "--rank", "distance", "--json").stdout
    by_code = vdsh("search", store, "--code", code, "--json").stdout
    without = [
        [{k: v for k, v in json.loads(line).items() if k != "passage"} for line in one.splitlines()]
        for one in (text, by_code)
    ]
    assert without[0] == without[1] != []
    ranked = vdsh("search", store, "rocket moon orbit", "--rank", "expected", "--json").stdout
    expected = [json.loads(line)["expected"] for line in ranked.splitlines()]
    assert expected == sorted(expected)


def test_a_radius_finds_everything_in_it(vdsh, store):
    everything = vdsh("search", store, "rocket moon orbit", "--radius", 16, "--json").stdout
    distances = [json.loads(line)["distance"] for line in everything.splitlines()]
    assert len(distances) == 80
    assert distances == sorted(distances)
    near = vdsh("search", store, "rocket moon orbit", "--radius", 3, "--json").stdout
    assert len(near.splitlines()) == sum(distance <= 3 for distance in distances)
    few = vdsh("search", store, "rocket moon orbit", "--radius", 16, "-k", 3, "--json").stdout
    assert few.splitlines() == everything.splitlines()[:3]


def test_index_replaces_the_same_ids(vdsh, store, model_folder):
    again = vdsh("index", model_folder, "docs.jsonl", "--store", store, "--json")
    facts = json.loads(again.stdout)
    assert (facts["written"], facts["documents"]) == (80, 80)


def count(vdsh, store):
    return json.loads(vdsh("info", store, "--json").stdout)["documents"]


@pytest.mark.parametrize("source", ["csv", "jsonl", "txt", "folder", "-"])
def test_sources_without_ids_do_not_overwrite_each_other(source, vdsh, model_folder, tmp_path):
    """#31 A1: the second file took the place of the first one."""
    for name, words in {"a": "moon orbit", "b": "goal match"}.items():
        lines = [f"{words} {i}" for i in range(5)]
        texts = {"csv": "text\n" + "\n".join(lines), "txt": "\n".join(lines)}
        texts["jsonl"] = "\n".join(json.dumps({"text": line}) for line in lines)
        if source == "folder":
            (tmp_path / name).mkdir()
            (tmp_path / name / "README.md").write_text(words)
        elif source != "-":
            (tmp_path / f"{name}.{source}").write_text(texts[source])
        given = {"folder": name, "-": "-"}.get(source, f"{name}.{source}")
        done = vdsh("index", model_folder, given, "--store", "new", input=texts["jsonl"])
        assert done.returncode == 0, done.stderr
    assert count(vdsh, "new") == (2 if source == "folder" else 10)


@pytest.fixture
def other(tmp_path):
    """Other texts under most of the ids of the store, and two new ones."""
    lines = [json.dumps({"id": f"d{i}", "text": "moon"}) for i in range(41)]
    lines += [json.dumps({"id": f"n{i}", "text": "moon"}) for i in range(2)]
    (tmp_path / "other.jsonl").write_text("\n".join(lines))
    return tmp_path / "other.jsonl"


@pytest.mark.parametrize("stdin", [False, True])
def test_most_of_a_store_is_not_replaced_unasked(stdin, vdsh, store, model_folder, other):
    """#31 A1."""
    source, text = ("-", other.read_text()) if stdin else (other, None)
    command = ("index", model_folder, source, "--store", store)
    result = vdsh(*command, input=text)
    assert (result.returncode, result.stdout) == (1, "")
    assert "Replace 41 of 80 documents by others with the same ids? That is much" in result.stderr
    assert "Nothing was replaced; add --replace if it is meant" in result.stderr
    with open_store(store) as opened:
        assert opened.get("d0").text != "moon"
    done = vdsh(*command, "--replace", input=text)
    assert "Wrote 43 documents, 41 in place of older ones with the same ids; the" in done.stdout
    assert count(vdsh, store) == 82


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_no_bar_is_drawn_below_a_question(store, model_folder, other):  # #32
    import pty

    command = ["index", str(model_folder), str(other), "--store", str(store)]
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-m", "vdsh", *command])
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 1 << 16)
    assert shown.rstrip().endswith(b"with the same ids? [y/N]")
    still, _, _ = select.select([terminal], [], [], 0.5)  # a bar is drawn ten times a second
    assert not still
    os.write(terminal, b"y\n")
    with suppress(OSError):  # at its end
        while some := os.read(terminal, 1 << 16):
            shown += some
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0
    assert b"Wrote 43 documents, 41 in place of older ones" in shown


def test_many_batches_are_written_but_none_replaces_unasked(vdsh, store, model_folder, tmp_path):
    lines = [json.dumps({"id": f"n{i}", "text": "moon"}) for i in range(8500)]
    lines += [json.dumps({"id": f"d{i}", "text": "moon"}) for i in range(80)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    result = vdsh("index", model_folder, "many.jsonl", "--store", store)
    assert result.returncode == 1
    assert "8,000 documents were committed before and are kept." in result.stderr
    with open_store(store) as opened:
        assert not any(opened.get(f"d{i}").text == "moon" for i in range(80))


def test_less_than_half_is_replaced_and_counted(vdsh, store, model_folder, tmp_path):
    texts = {"d1": "moon", "d2": "orbit", "new": "crew"}
    lines = [json.dumps({"id": id, "text": "rocket"}) for id in texts]
    lines += [json.dumps({"id": id, "text": text}) for id, text in texts.items()]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    done = vdsh("index", model_folder, "few.jsonl", "--store", store, "--json")
    facts = json.loads(done.stdout)
    assert (facts["replaced"], facts["documents"]) == (2, 81)
    with open_store(store) as opened:  # of the same id, the last one stays
        assert {id: opened.get(id).text for id in texts} == texts


def test_a_folder_of_all_kinds_is_indexed(vdsh, model_folder, tmp_path):  # #31 A8
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (tmp_path / "notes/old.txt").write_bytes("Rakete zum Mond, orbit für alle".encode("latin-1"))
    (tmp_path / "notes/secret").symlink_to(tmp_path / "docs.jsonl")
    done = vdsh("index", model_folder, "notes", "--store", "new", timeout=100)
    assert done.returncode == 0, done.stderr
    assert "Skipped 1 of 3 files ('notes/photo.png'): it is not text." in done.stderr
    assert "Skipped 1 of 3 files ('notes/secret')" in done.stderr
    with open_store(tmp_path / "new") as opened:
        assert "für" in opened.get("notes/old.txt").text


@pytest.fixture
def copies(vdsh, store, model_folder, tmp_path):
    """Two texts, each with copies that differ in a word; ids below those of the other documents."""
    texts = {"a": "moon " + " ".join(f"w{i}" for i in range(50)), "b": "orbit of a goal"}
    texts |= {"a1": texts["a"], "a2": texts["a"].replace("w7 ", "orbit "), "b1": texts["b"] + "!"}
    lines = [json.dumps({"id": f"{id}", "text": text}) for id, text in texts.items()]
    (tmp_path / "copies.jsonl").write_text("\n".join(lines))
    assert vdsh("index", model_folder, "copies.jsonl", "--store", store).returncode == 0
    return {"a": ["a1", "a2"], "b": ["b1"]}


def test_duplicates_feed_delete(vdsh, store, copies):
    groups = [json.loads(x) for x in vdsh("duplicates", store, "--json").stdout.splitlines()]
    assert {g["keep"]: [other["id"] for other in g["others"]] for g in groups} == copies
    first, second = groups[0]["others"]
    assert set(first) == {"id", "distance", "similarity"}
    assert (first["similarity"], second["similarity"]) == (1, pytest.approx(48 / 52))
    others = ["a1", "a2", "b1"]
    listed = vdsh("duplicates", store, "--keep", "first")
    assert listed.stdout.split() == others
    deleted = vdsh("delete", store, "-", input=listed.stdout)
    assert "Deleted 3 of 3; 82 documents are left." in deleted.stdout
    assert vdsh("duplicates", store).stdout == ""


def test_ids_travel_from_duplicates_to_delete_as_json(vdsh, store, copies):  # #31 A4
    listed = vdsh("duplicates", store, "--keep", "first", "--json")
    deleted = vdsh("delete", store, "-", "--json", input=listed.stdout)
    assert ("3" in deleted.stdout, count(vdsh, store)) == (True, 82)
    plain = vdsh("delete", store, "-", "--json", input="d1\n")
    assert (plain.returncode, count(vdsh, store)) == (1, 82)
    assert "Nothing was deleted; leave --json out" in plain.stderr


def test_an_id_of_a_foreign_store_cannot_name_other_documents(vdsh, store, copies):  # #31 A4
    with closing(sqlite3.connect(store / "store.sqlite")) as base, base:
        id = "a1\nd1\r\x1b[2Kd2"
        query = "SELECT text, labels, metadata FROM documents WHERE id = 'a1'"
        (columns,) = base.execute(query).fetchall()
        change = "UPDATE documents SET id = ?, check_sum = ? WHERE id = 'a1'"
        base.execute(change, (id, sum_of(id, *columns)))
    listed = vdsh("duplicates", store, "--keep", "first")
    assert listed.returncode == 1
    assert "has control characters. List ids with --json." in listed.stderr
    vdsh("delete", store, "-", input=listed.stdout)
    assert "\x1b" not in vdsh("duplicates", store).stdout
    listed = vdsh("duplicates", store, "--keep", "first", "--json")
    assert "a1\nd1\r\x1b[2Kd2" in map(json.loads, listed.stdout.splitlines())
    with open_store(store) as opened:
        assert {"d1", "d2"} <= {document.id for document in opened}


def test_duplicates_may_be_asked_to_be_the_same(vdsh, store, copies):
    listed = vdsh("duplicates", store, "--similarity", 1, "--keep", "first")
    assert listed.stdout.split() == ["a1", "b1"]
    assert "2 groups; 2 documents are at least 1 similar" in listed.stderr


def test_much_of_a_store_is_not_deleted_unasked(vdsh, store):  # 16 D1
    ids = "".join(f"d{i}\n" for i in range(9))
    for result in (vdsh("delete", store, "-", input=ids), vdsh("delete", store, *ids.split())):
        assert (result.returncode, result.stdout) == (1, "")
        assert "Delete 9 of 80 documents?" in result.stderr
        assert "Nothing was deleted; add --yes" in result.stderr
    assert json.loads(vdsh("info", store, "--json").stdout)["documents"] == 80
    assert "71 documents are left" in vdsh("delete", store, "-", "--yes", input=ids).stdout


def test_a_tenth_may_be_deleted_and_unknown_ids_do_not_count(vdsh, store):
    ids = "".join(f"d{i}\n" for i in range(8)) + "".join(f"nobody{i}\n" for i in range(50))
    assert "Deleted 8 of 58; 72" in vdsh("delete", store, "-", input=ids).stdout


@pytest.mark.parametrize(("answer", "left"), [("y", 60), ("n", 80), ("", 80)])
def test_a_person_is_asked_on_the_terminal(answer, left, vdsh, store, monkeypatch):  # 16 D1
    question = "Delete 20 of 80 documents? [y/N]"
    ours, theirs = os.openpty()
    monkeypatch.setattr("vdsh.cli.output.TERMINAL", os.ttyname(theirs))
    os.write(ours, f"{answer}\n".encode())
    result = vdsh("delete", store, "-", input="".join(f"d{i}\n" for i in range(20)))
    os.set_blocking(ours, False)
    screen = "".join(os.read(ours, 1).decode() for _ in f"{answer}\r\n{question}")
    assert screen.endswith(question)
    assert (result.returncode == 0) == (answer == "y")
    assert "Nothing was deleted" in result.stderr or answer == "y"
    assert json.loads(vdsh("info", store, "--json").stdout)["documents"] == left
    os.close(ours)
    os.close(theirs)


def test_delete_passes_over_unknown_ids(vdsh, store):
    result = vdsh("delete", store, "d3", "nobody")
    assert "Deleted 1 of 2; 79 documents are left." in result.stdout


def test_info_tells_documents_and_model(vdsh, store):
    facts = json.loads(vdsh("info", store, "--json").stdout)
    assert (facts["documents"], facts["bits"]) == (80, 16)
    assert "documents" in vdsh("info", store).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "nowhere", "moon"), "nowhere"),
        (("search", "s", "--code", "0000", "--rank", "relevance"), "a code has no words"),
        (("search", "s", "-", "--code", "0000"), "not both"),
        (("search", "s"), "Give a text to look for"),
        (("search", "s", "moon", "--code", "00"), "not both"),
        (("search", "s", "moon", "-k", 0), "k must be"),
        (("search", "s", "--code", "00"), "16-bit codes but the query has 8"),
        (("search", "s", "--code", "zz"), "hexadecimal"),
        (("search", "s", "moon", "--where", "yaer=1990"), "Did you mean 'year'?"),
        (("search", "s", "moon", "--where", "{year"), "broken JSON"),
        (("search", "s", "moon", "--where", "year"), "field=value"),
        (("search", "s", "moon", "--where", "year>abc"), "'year' is a number, such as 5"),
        (("search", "s", "moon", "--where", "year>2024 and label=x"), "A filter is one comparison"),
        (("search", "s", "moon", "--where", "year>1 || label=x"), "A filter is one comparison"),
        (("search", "s", "moon", "--rank", "luck"), "rank"),
        (("search", "s", "moon", "--radius", -1), "radius must be"),
        (("search", "s", "moon", "--radius", 2, "--rank", "distance"), "--radius takes words"),
        (("duplicates", "s", "--keep", "last"), "--keep knows only first"),
        (("duplicates", "s", "--similarity", 1.5), "similarity must be a number from 0.1 to 1"),
        (("delete", "nowhere", "d1"), "nowhere"),
        (("info", "nowhere"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, vdsh, store, tmp_path):
    result = vdsh(*arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()


def test_bad_documents_leave_the_earlier_ones(vdsh, store, model_folder, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"id": "new", "text": "moon"}\n{broken\n')
    result = vdsh("index", model_folder, "bad.jsonl", "--store", store)
    assert result.returncode == 1
    assert "line 2: broken JSON" in result.stderr
    assert json.loads(vdsh("info", store, "--json").stdout)["documents"] in (80, 81)


def test_documents_without_known_words_are_counted(vdsh, store, model_folder, tmp_path):
    (tmp_path / "odd.txt").write_text("orbit rocket\nxylophone\nthe of and\n")
    indexed = vdsh("index", model_folder, "odd.txt", "--store", store, timeout=100)
    assert indexed.returncode == 0
    assert indexed.stderr.startswith("Warning: 2 of 3 documents have no known word")


@pytest.mark.parametrize("options", [[], ["--radius", 2]])
def test_words_that_are_not_known_are_said(options, vdsh, store):  # 16 D2
    def search(*arguments):
        return vdsh("search", store, *arguments, *options)

    some = search("xylophone moon orbit", "--json")
    *hits, last = map(json.loads, some.stdout.splitlines())
    assert hits == [json.loads(x) for x in search("moon orbit", "--json").stdout.split("\n")[:-1]]
    assert some.stderr == f"{last['warning']}\n"
    assert (last["unknown"], "xylophone" in last["warning"]) == (["xylophone"], True)
    none = search("xylophone")
    assert (none.returncode, none.stdout) == (1, "")
    said = "No word" if options else "No document has a word"
    assert none.stderr.startswith(f"{said} of the text")
    assert len(none.stderr.splitlines()) == 1


@pytest.mark.parametrize("model", ["the model", "nowhere"])
def test_a_failed_index_leaves_no_empty_store(model, vdsh, model_folder, tmp_path):  # #16 A9
    good = "" if model == "the model" else "\n".join(['{"text": "moon"}'] * 3)
    (tmp_path / "bad.jsonl").write_text(good or '{"text": "moon"}\n{broken\n')
    folder = model_folder if model == "the model" else model
    result = vdsh("index", folder, "bad.jsonl", "--store", "new")
    assert result.returncode == 1
    assert not (tmp_path / "new").exists()


def test_parquet_of_a_store_is_indexed_again(vdsh, store, model_folder, tmp_path):  # #16 A9
    odd = {"id": "odd", "text": "moon", "labels": [], "code": 7, "metadata": {"text": [None, 1.5]}}
    (tmp_path / "odd.jsonl").write_text(json.dumps(odd) + '\n{"text": "orbit"}')
    assert vdsh("index", model_folder, "odd.jsonl", "--store", store).returncode == 0
    assert vdsh("export", store, "--to", "parquet", "--out", "s.parquet").returncode == 0
    again = vdsh("index", model_folder, "s.parquet", "--store", "again")
    assert again.returncode == 0, again.stderr
    with open_store(store) as first, open_store(tmp_path / "again") as second:
        (documents, codes), (copied, same) = (list(next(s.entries())) for s in (first, second))
    assert len(documents) == 82 and documents == copied
    assert np.array_equal(codes, same)
    dropped = vdsh("index", model_folder, "s.parquet", "--store", "less", "--drop-field", "year")
    assert dropped.returncode == 0, dropped.stderr
    assert json.loads(vdsh("info", "less", "--json").stdout)["fields"] == ["code", "metadata"]


def test_info_tells_what_a_model_learned(vdsh, model_folder):  # #16 D4
    facts = json.loads(vdsh("info", model_folder, "--json").stdout)
    assert (facts["model"], facts["bits"], facts["labels"]) == ("vdsh-s", 16, ["space", "sport"])
    assert facts["training"]["documents"] == 80
    lines = [line.split() for line in vdsh("info", model_folder).stdout.splitlines()]
    assert ["settings", "epochs", "12"] in lines


def test_labels_that_look_like_numbers_can_be_filtered(vdsh, store, model_folder, tmp_path):
    (tmp_path / "n.jsonl").write_text('{"id": "1", "text": "moon orbit", "labels": ["1990"]}')
    assert vdsh("index", model_folder, "n.jsonl", "--store", store).returncode == 0
    for filter_ in ("label=1990", "id=1"):
        found = vdsh("search", store, "moon orbit", "--where", filter_, "--json").stdout
        assert [json.loads(line)["id"] for line in found.splitlines()] == ["1"]


def test_an_interrupted_index_says_what_is_kept(vdsh, store, model_folder, docs, tmp_path):
    lines = [json.dumps({"id": f"n{i}", "text": "moon orbit"}) for i in range(8500)]
    (tmp_path / "cut.jsonl").write_text("\n".join([*lines, "{broken"]))
    result = vdsh("index", model_folder, "cut.jsonl", "--store", store)
    assert result.returncode == 1
    assert "8,000 documents were committed before and are kept." in result.stderr
    assert json.loads(vdsh("info", store, "--json").stdout)["documents"] == 8080


@pytest.fixture
def damaged_store(store, monkeypatch):
    """A store whose word index is lost, of more documents than are few."""
    with open_store(store) as opened:
        opened.upsert(Document(f"n{i}", "moon orbit") for i in range(8500))
    with sqlite3.connect(store / "store.sqlite") as connection:
        for statement in (
            "DELETE FROM words",
            "DELETE FROM meta WHERE key = 'words'",
        ):
            connection.execute(statement)
    connection.close()
    monkeypatch.setattr("vdsh.store.searching.MANY", 100)
    monkeypatch.setattr("vdsh.progress.SECONDS", 0)
    return store


def test_the_model_of_a_store_is_written_to_a_folder(vdsh, store, model_folder, tmp_path):
    done = vdsh("export", store, "--to", "model", "--out", "copy")
    assert done.returncode == 0, done.stderr
    ours, theirs = (
        json.loads(vdsh("info", path, "--json").stdout) for path in ("copy", model_folder)
    )
    assert ours["fingerprint"] == theirs["fingerprint"]
    assert "exists" in vdsh("export", store, "--to", "model", "--out", "copy").stderr


def test_the_first_search_makes_a_lost_word_index_anew(vdsh, damaged_store):  # 18
    first = vdsh("search", damaged_store, "astronaut", "--json")
    assert first.returncode == 0
    assert "indexing words" in first.stderr and "580/580" in first.stderr
    assert "astronaut" in json.loads(first.stdout.splitlines()[0])["text"]
    again = vdsh("search", damaged_store, "astronaut", "--json")
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_few_words_are_indexed_in_silence(vdsh, damaged_store, monkeypatch):  # 18
    monkeypatch.setattr("vdsh.store.searching.MANY", 20_000)
    found = vdsh("search", damaged_store, "astronaut", "-k", 2)
    assert (len(found.stdout.splitlines()), found.stderr) == (2, "")


def test_a_damaged_word_index_is_made_anew_with_a_bar(vdsh, store, monkeypatch):  # 18
    with open_store(store) as opened:
        opened.upsert(Document(f"n{i}", "moon orbit") for i in range(8500))
    before = vdsh("search", store, "astronaut", "--json").stdout
    with sqlite3.connect(store / "store.sqlite") as connection:
        connection.execute("UPDATE words SET data = x'00'")
    connection.close()
    monkeypatch.setattr("vdsh.store.searching.MANY", 100)
    monkeypatch.setattr("vdsh.progress.SECONDS", 0)
    result = vdsh("search", store, "astronaut", "--json")
    assert "indexing words" in result.stderr
    assert result.stdout == before
