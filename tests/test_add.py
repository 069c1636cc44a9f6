"""Files into a store, and what changes in them; a store that learns by itself (#35)."""

import json
import os
import random
import subprocess
import sys
import threading

import pytest

import vdsh.documents.folder as folder_module
from engines import full_disk, ids
from vdsh import Document, open_store
from vdsh.adding import add_files
from vdsh.documents.unreadable import UnreadableNowError
from vdsh.errors import InputError, MissingFileError, VdshError, WriteError

SKY = "orbit moon rocket launch mars probe crater comet lunar shuttle".split()
BALL = "goal match league striker penalty keeper referee stadium coach club".split()


@pytest.fixture
def notes(tmp_path):
    """A folder of three notes."""
    folder = tmp_path / "notes"
    (folder / "2024").mkdir(parents=True)
    (folder / "keys.md").write_text("how to rotate the signing keys")
    (folder / "moon.txt").write_text("the red moon")
    (folder / "2024" / "may.md").write_text("what happened in may")
    return folder


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as store:
        yield store


def many(folder, n=120):
    """Write n files of two topics."""
    rng = random.Random(0)
    folder.mkdir(exist_ok=True)
    for i in range(n):
        words = rng.choices(SKY if i % 2 else BALL, k=12)
        (folder / f"{i:03}.txt").write_text(" ".join(words))


def counts(found):
    return found[:4]  # added, changed, removed, unchanged


def test_only_what_changed_is_taken_and_what_vanished_goes(place, notes):
    with open_store(place) as store:
        assert counts(add_files(store, [notes])) == (3, 0, 0, 0)
        assert counts(add_files(store, [notes])) == (0, 0, 0, 3)
        (notes / "keys.md").write_text("keys are rotated by robots now")
        (notes / "moon.txt").unlink()
        (notes / "new.md").write_text("a new note")
        assert counts(add_files(store, [notes])) == (1, 1, 1, 1)
        assert ids(store.search("robots")) == ["notes/keys.md"]
        assert "notes/moon.txt" not in store
        assert store.get("notes/2024/may.md").metadata == {"folder": "2024"}


def test_a_file_that_was_only_touched_is_not_written_again(store, notes):
    add_files(store, [notes])
    os.utime(notes / "keys.md", ns=(1, 1))
    assert counts(add_files(store, [notes])) == (0, 0, 0, 3)


def test_keep_leaves_what_has_vanished(store, notes):
    add_files(store, [notes])
    (notes / "moon.txt").unlink()
    assert counts(add_files(store, [notes], keep=True)) == (0, 0, 0, 2)
    assert "notes/moon.txt" in store


def test_only_what_the_same_root_brought_is_removed(store, notes, tmp_path):
    add_files(store, [notes, notes / "keys.md"])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("more")
    assert counts(add_files(store, [tmp_path / "more"])) == (1, 0, 0, 0)
    assert store.count() == 5


def test_records_of_a_table_are_documents_and_go_with_their_rows(store, tmp_path):
    table = tmp_path / "news.csv"
    table.write_text("id,text,year\n1,red moon,2020\n2,green cheese,2021\n")
    assert counts(add_files(store, [table])) == (2, 0, 0, 0)
    table.write_text("id,text,year\n1,red moon,2022\n3,blue sky,2021\n")
    assert counts(add_files(store, [table])) == (1, 1, 1, 0)
    assert store.get("1").metadata == {"year": 2022}


STORY = "the crew has landed on the far side"


@pytest.mark.parametrize(
    ("name", "table", "fields"),
    [
        ("a.csv", f"nr,title,summary,city\n1,Moon,{STORY},Rome", ("summary",)),
        ("b.csv", f"url;question;answer\nhttp://a;Who landed on the moon?;{STORY}",
         ("question", "answer")),
        ("c.jsonl", json.dumps({"id": 1, "when": "Mon, 3 May 2004 12:00", "body": STORY}),
         ("body",)),
        ("d.tsv", "name\tkind\nred moon\tx\nblue moon\tx", ("name",)),
        ("e.csv", f"title,year\n{STORY},1990", ("title",)),
    ],
)  # fmt: skip
def test_the_text_of_a_table_is_guessed_and_the_guess_remembered(
    store, tmp_path, name, table, fields
):
    (tmp_path / name).write_text(table)
    assert add_files(store, [tmp_path / name]).guessed == {str(tmp_path / name): fields}
    assert counts(again := add_files(store, [tmp_path / name]))[0] == 0 and not again.guessed
    taken = add_files(store, [tmp_path / name], reading={"text_field": fields[-1]})
    assert taken.guessed == {}


def test_of_records_with_one_id_the_last_stays(store, tmp_path):
    table = tmp_path / "news.csv"
    table.write_text("id,text\n1,red moon\n1,green cheese\n")
    for expected in ((1, 0, 0, 0), (0, 0, 0, 1)):
        assert counts(add_files(store, [table])) == expected
        assert store.get("1").text == "green cheese"


def test_an_empty_folder_removes_nothing(store, notes):
    """As where a disk is not mounted."""
    add_files(store, [notes])
    for file in [*notes.rglob("*.*")]:
        file.unlink()
    with pytest.raises(InputError, match="3 documents that it had are kept"):
        add_files(store, [notes])
    assert len(store) == 3
    with pytest.raises(MissingFileError):
        add_files(store, [notes / "none"])


def test_a_file_that_is_no_document_any_more_is_removed_and_named(store, notes, tmp_path):
    add_files(store, [notes])
    (notes / "moon.txt").write_bytes(b"\0\1\2")
    (notes / "keys.md").unlink()
    (notes / "keys.md").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("a secret")
    found = add_files(store, [notes])
    assert sorted(found.dropped) == ["notes/keys.md", "notes/moon.txt"] and not found.kept
    assert found.removed == 2 and found.skipped["is not text"] == ["notes/moon.txt"]
    assert ids(store) == ["notes/2024/may.md"]


def test_a_single_file_that_is_no_text_any_more_is_removed(store, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("the red moon")
    add_files(store, [path])
    path.write_bytes(b"\0\1\2")
    assert counts(add_files(store, [path])) == (0, 0, 1, 0)


def test_what_cannot_be_read_just_now_stays_as_it_was_read(store, notes, monkeypatch):
    def fail(path, **how):
        if path.name == "moon.txt":
            raise UnreadableNowError("cannot be read (Input/output error)")
        return read_file(path, **how)

    read_file = folder_module.read_file
    add_files(store, [notes])
    (notes / "moon.txt").write_text("a blue moon")
    monkeypatch.setattr(folder_module, "read_file", fail)
    found = add_files(store, [notes])
    assert (found.removed, found.kept, found.dropped) == (0, ["notes/moon.txt"], [])
    assert store.get("notes/moon.txt").text == "the red moon"


@pytest.mark.posix("takes rights away")
def test_what_may_not_be_read_just_now_stays_and_is_named(store, notes, monkeypatch):
    """The tests may run as root, who may read anything."""

    def scandir(path):
        if os.path.basename(path) in denied:
            raise PermissionError(13, "Permission denied")
        return really(path)

    really, denied = os.scandir, {"2024"}
    add_files(store, [notes])
    monkeypatch.setattr(folder_module.os, "scandir", scandir)
    found = add_files(store, [notes])
    assert (found.removed, found.kept, found.dropped) == (0, ["notes/2024/"], [])
    assert len(store) == 3
    denied.add("notes")
    with pytest.raises(InputError, match="Cannot read folder"):
        add_files(store, [notes])


def test_a_link_whose_target_is_away_keeps_its_document(store, notes):
    (notes / "link.txt").symlink_to(notes / "moon.txt")
    add_files(store, [notes])
    (notes / "moon.txt").rename(notes / ".moon")
    found = add_files(store, [notes])
    assert found.kept == ["notes/link.txt"] and found.removed == 1  # moon.txt is gone


def test_links_in_circles_odd_names_and_empty_files_do_no_harm(store, notes):
    (notes / "loop").symlink_to(notes)
    (notes / "self").symlink_to("self")
    (notes / "2024" / "up").symlink_to("..")
    with open(os.fsencode(notes) + b"/caf\xe9.txt", "w") as file:
        file.write("coffee")
    for i in range(300):
        (notes / f"empty{i}").touch()
    found = add_files(store, [notes])
    assert found.added == 303 and len(store) == 303
    assert sum(map(len, found.skipped.values())) == 2


@pytest.mark.linux("names are bytes")
@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines", b'a\'b "c" %'])
def test_a_folder_may_have_an_odd_name_itself(place, tmp_path, name):
    folder = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(folder)
    with open(folder + b"/a.txt", "w") as file:
        file.write("the red moon")
    with open_store(place) as store:
        assert counts(add_files(store, [os.fsdecode(folder)])) == (1, 0, 0, 0)
        assert counts(add_files(store, [os.fsdecode(folder)])) == (0, 0, 0, 1)


def test_a_store_inside_the_folder_is_not_added(notes):
    with open_store(notes / "store") as store:
        assert counts(add_files(store, [notes])) == (3, 0, 0, 0)
        assert counts(add_files(store, [notes])) == (0, 0, 0, 3)


def test_a_folder_inside_a_store_is_refused(store, tmp_path):
    inside = tmp_path / "store" / "files"
    inside.mkdir()
    for path in (inside, tmp_path / "store"):
        with pytest.raises(InputError, match="inside the store"):
            add_files(store, [path])


# Several sources


def lines_of(path, **texts):
    """Write a file of JSON lines: texts by their ids."""
    lines = [json.dumps({"id": id, "text": text}) for id, text in texts.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def other(tmp_path):
    """A folder of the same name as `notes`, elsewhere."""
    folder = tmp_path / "other" / "notes"
    folder.mkdir(parents=True)
    (folder / "keys.md").write_text("other keys")
    return folder


def test_two_folders_of_one_name_do_not_replace_each_other(store, notes, other):
    add_files(store, [notes])
    with pytest.raises(InputError, match="which was added before.* --id-prefix other/"):
        add_files(store, [other])
    for replace in (False, True):  # both are there
        with pytest.raises(InputError, match="which was added before"):
            add_files(store, [other], replace=replace)
    assert counts(add_files(store, [other], id_prefix="other/")) == (1, 0, 0, 0)
    assert "other/notes/keys.md" in store
    assert counts(add_files(store, [notes, other])) == (0, 0, 0, 4)


def test_a_folder_that_is_away_keeps_its_documents(store, notes, other, tmp_path):
    """As one on a disk that is not there, or that was renamed."""
    add_files(store, [notes])
    notes.rename(tmp_path / "away")
    with pytest.raises(InputError, match="is not there now; its documents are kept.*--replace"):
        add_files(store, [other])
    assert len(store) == 3
    assert counts(add_files(store, [other], replace=True)) == (0, 1, 2, 0)
    assert counts(add_files(store, [other])) == (0, 0, 0, 1)


@pytest.mark.parametrize("name", ["personal", "sub/notes"])
def test_a_folder_that_was_moved_is_recognised(place, notes, tmp_path, name):
    with open_store(place) as store:
        add_files(store, [notes], exclude=["2024"])
        moved = tmp_path / name
        moved.parent.mkdir(exist_ok=True)
        notes.rename(moved)
        said = []
        add_files(store, [moved], notice=said.append)
        assert sorted(ids(store)) == [f"{moved.name}/keys.md", f"{moved.name}/moon.txt"]
        assert "takes the place of" in said[0] and "--exclude 2024" in said[1]
        assert counts(add_files(store, [moved])) == (0, 0, 0, 2)
        notes.mkdir()  # the name is free again, unless the folder has kept it
        (notes / "new.md").write_text("new")
        if moved.name == "personal":
            assert counts(add_files(store, [notes])) == (1, 0, 0, 0)


def test_a_new_folder_with_the_inode_of_a_deleted_one_is_not_taken_for_it(store, notes, tmp_path):
    add_files(store, [notes])
    record = store.remembered("root/")
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("a")
    facts = json.loads(record["notes"]) | {"identity": [more.stat().st_dev, more.stat().st_ino]}
    store.remember("root/", {"notes": json.dumps(facts)})
    assert counts(add_files(store, [more])) == (1, 0, 0, 0)
    assert len(store) == 4


def test_a_file_of_records_that_was_moved_is_recognised(store, tmp_path):
    table = lines_of(tmp_path / "a.jsonl", x="red moon", y="blue moon")
    add_files(store, [table])
    table = table.rename(tmp_path / "b.jsonl")
    assert counts(add_files(store, [table])) == (0, 0, 0, 2)
    lines_of(table, y="blue moon")
    assert counts(add_files(store, [table])) == (0, 0, 1, 1)


def test_two_files_with_the_same_ids_do_not_replace_each_other(place, tmp_path):
    a = lines_of(tmp_path / "a.jsonl", x="from a")
    b = lines_of(tmp_path / "b.jsonl", x="from b", y="b alone")
    with open_store(place) as store:
        add_files(store, [a])
        expected = r"b.jsonl' and '.*a.jsonl' both have a document 'x'.*--id-prefix b:"
        with pytest.raises(InputError, match=expected):
            add_files(store, [b])
        assert {one.id: one.text for one in store} == {"x": "from a"}
        assert counts(add_files(store, [b], id_prefix="b:")) == (2, 0, 0, 0)
        assert counts(add_files(store, [a, b])) == (0, 0, 0, 3)
        lines_of(b, z="b alone")
        assert counts(add_files(store, [b])) == (1, 0, 2, 0)
        assert {one.id: one.text for one in store} == {"x": "from a", "b:z": "b alone"}


def test_ids_that_are_replaced_belong_to_the_new_file_alone(store, tmp_path):
    a = lines_of(tmp_path / "a.jsonl", x="from a", y="a alone")
    b = lines_of(tmp_path / "b.jsonl", x="from b")
    add_files(store, [a])
    assert counts(add_files(store, [b], replace=True)) == (0, 1, 0, 0)
    with pytest.raises(InputError, match="both have a document 'x'"):
        add_files(store, [a])
    lines_of(a, y="a alone")
    assert counts(add_files(store, [a])) == (0, 0, 0, 1)  # x is not a's to remove
    assert store.get("x").text == "from b"


def test_two_tables_of_one_name_go_together_where_their_ids_differ(store, tmp_path):
    (tmp_path / "b").mkdir()
    first = lines_of(tmp_path / "news.jsonl", x="from a")
    second = lines_of(tmp_path / "b" / "news.jsonl", y="from b")
    add_files(store, [first])
    assert counts(add_files(store, [second])) == (1, 0, 0, 0)
    assert counts(add_files(store, [first, second])) == (0, 0, 0, 2)
    lines_of(second, x="from b")
    with pytest.raises(InputError, match="--id-prefix b/"):
        add_files(store, [second])


def test_standard_input_does_not_replace_what_a_file_has(vdsh, tmp_path):
    lines_of(tmp_path / "a.jsonl", x="from a")
    vdsh("add", "store", "a.jsonl", "--learn", "never")
    line = '{"id": "x", "text": "piped"}'
    refused = vdsh("add", "store", "-", "--learn", "never", input=line)
    assert refused.returncode == 1 and "Standard input and" in refused.stderr
    done = vdsh("add", "store", "-", "--learn", "never", "--replace", input=line)
    assert "0 added, 1 changed" in done.stdout


def test_documents_that_were_written_directly_count_as_changed(store, tmp_path):
    store.upsert([Document("x", "written directly"), Document("y", "the same")])
    table = lines_of(tmp_path / "a.jsonl", x="from a", y="the same", z="new")
    assert counts(add_files(store, [table])) == (1, 1, 0, 1)


def test_records_of_one_file_with_the_same_id_are_counted(store, tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n1,b\n2,c\n")
    said = []
    add_files(store, [tmp_path / "a.csv"], notice=said.append)
    assert "same id replaced: 1" in said[0]


def test_a_deleted_document_comes_back(place, notes, tmp_path):
    table = lines_of(tmp_path / "a.jsonl", x="red moon")
    with open_store(place) as store:
        add_files(store, [notes, table])
        store.delete(["notes/keys.md", "x"])
        assert counts(add_files(store, [notes, table])) == (2, 0, 0, 2)


# Options


def test_a_named_encoding_is_for_what_is_not_utf_8(store, tmp_path):
    folder = tmp_path / "ru"
    folder.mkdir()
    texts = {"utf-8": "мир", "cp1251": "мир", "utf-16": "мир", "ascii": "peace"}
    for encoding, text in texts.items():
        (folder / encoding).write_bytes(text.encode(encoding))
    add_files(store, [folder], reading={"encoding": "cp1251"})
    assert {one.id: one.text for one in store} == {f"ru/{e}": text for e, text in texts.items()}
    for name, text in (("a", "мир"), ("b", "шум")):
        line = f'{{"id": "{name}", "text": "{text}"}}'
        (tmp_path / f"{name}.jsonl").write_bytes(line.encode("utf-8" if name == "a" else "cp1251"))
        add_files(store, [tmp_path / f"{name}.jsonl"], reading={"encoding": "cp1251"})
        assert store.get(name).text == text


def test_an_option_that_changes_how_files_are_read_reads_them_again(store, tmp_path):
    folder = tmp_path / "ru"
    folder.mkdir()
    (folder / "a").write_bytes("мир".encode("cp1251"))
    (folder / "b.txt").write_text("<p>Caf&eacute;</p>")
    add_files(store, [folder])
    for given, text in (("cp1251", "мир"), ("utf-8", "ìèð"), ("cp1251", "мир"), ("", "ìèð")):
        assert counts(add_files(store, [folder], reading={"encoding": given})) == (0, 1, 0, 1)
        assert counts(add_files(store, [folder])) == (0, 0, 0, 2)
        assert store.get("ru/a").text == text
    for html, text in ((True, "Café"), (False, "<p>Caf&eacute;</p>")):
        assert add_files(store, [folder], reading={"html": html}).changed == 1
        assert store.get("ru/b.txt").text == text


def test_again_reads_what_has_not_changed(store, notes):
    add_files(store, [notes])
    store.upsert([Document("notes/moon.txt", "somebody else wrote this")])
    assert counts(add_files(store, [notes])) == (0, 0, 0, 3)
    assert counts(add_files(store, [notes], again=True)) == (0, 1, 0, 2)
    assert store.get("notes/moon.txt").text == "the red moon"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("--text-field", "body", "--id-field", "name"), "alpha words"),
        (("--text-field", "text", "--id-field", "id"), "tt"),
        (("--text-field", "", "--id-field", ""), "tt"),
    ],
)
def test_an_option_that_is_given_wins_over_a_remembered_one(vdsh, tmp_path, given, text):
    (tmp_path / "t.csv").write_text("id,name,body,text\n1,n1,beta words,tt\n")
    quiet = ("--learn", "never", "-q")
    vdsh("add", "store", "t.csv", "--text-field", "name", "--labels-field", "body", *quiet)
    (tmp_path / "t.csv").write_text("id,name,body,text\n1,n1,alpha words,tt\n")
    vdsh("add", "store", "t.csv", "--labels-field", "labels", *given, *quiet)
    with open_store(tmp_path / "store") as store:
        (document,) = store
    assert (document.text, document.labels) == (text, None)


def test_options_are_remembered_for_the_path_that_had_them(vdsh, tmp_path, notes):
    quiet = ("--learn", "never", "-q")
    lines_of(tmp_path / "weird.dat", x="red moon")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "o.txt").write_text("outside")
    (notes / "link").symlink_to("../out")
    vdsh("add", "store", "weird.dat", "--format", "jsonl", *quiet)
    assert "3 added" in vdsh("add", "store", "notes", *quiet).stdout
    again = vdsh("add", "store", "weird.dat", *quiet)
    assert again.stderr == "Using --format jsonl, as last time for weird.dat\n"
    assert "1 added" in vdsh("add", "store", "notes", "--follow", *quiet).stdout
    assert "Using --follow, as last time" in vdsh("add", "store", "notes", *quiet).stderr
    assert "1 removed" in vdsh("add", "store", "notes", "--no-follow", *quiet).stdout
    assert "Using" not in vdsh("add", "store", "notes", *quiet).stderr


def test_keep_is_remembered_and_has_an_opposite(vdsh, notes):
    quiet = ("--learn", "never", "-q")
    vdsh("add", "store", "notes", "--keep", *quiet)
    (notes / "moon.txt").unlink()
    again = vdsh("add", "store", "notes", *quiet)
    assert "0 removed" in again.stdout and "Using --keep" in again.stderr
    assert "1 removed" in vdsh("add", "store", "notes", "--no-keep", *quiet).stdout


def test_a_pattern_that_fits_nothing_is_named_and_not_remembered(vdsh, notes):
    quiet = ("--learn", "never", "-q")
    for option in ("--include=*.zzz", "--exclude=*"):
        result = vdsh("add", "store", "notes", option, *quiet)
        assert result.returncode == 1
        assert "leaves no file in notes, which has 3." in result.stderr
    assert "3 added" in vdsh("add", "store", "notes", *quiet).stdout
    assert vdsh("add", "store", "notes", "--include=*.zzz", *quiet).returncode == 1
    assert "0 removed" in vdsh("add", "store", "notes", *quiet).stdout
    some = vdsh("add", "store", "notes", "--include=*.md", "--include=*.mdd", *quiet)
    assert "--include '*.mdd' fits no file in notes." in some.stderr


def test_a_pattern_may_fit_nothing_in_one_of_several_folders(vdsh, notes, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.rst").write_text("a")
    result = vdsh("add", "store", "more", "notes", "--include=*.md", "--learn", "never", "-q")
    assert "2 added" in result.stdout
    assert "leaves no file in more, which has 1." in result.stderr


@pytest.mark.posix("has pipes")
def test_a_pipe_is_skipped_and_a_link_to_a_table_is_read_as_one(store, tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    found = add_files(store, [tmp_path / "pipe.jsonl"])
    assert found.skipped == {"is not a regular file": ["pipe.jsonl"]}
    lines_of(tmp_path / "version-3", x="red moon")
    (tmp_path / "news.jsonl").symlink_to("version-3")
    assert counts(add_files(store, [tmp_path / "news.jsonl"])) == (1, 0, 0, 0)
    assert ids(store) == ["x"]


def test_an_option_that_there_is_not_is_named(store, notes):
    with pytest.raises(InputError, match="no option 'colour'"):
        add_files(store, [notes], reading={"colour": "red"})
    with pytest.raises(InputError, match="No encoding 'nix'"):
        add_files(store, [notes], reading={"encoding": "nix"})
    with pytest.raises(InputError, match="id_prefix must have no line breaks"):
        add_files(store, [notes], id_prefix="a\nb")


# Files that change


@pytest.mark.posix("sets times")
def test_a_file_that_is_replaced_by_one_of_its_size_and_time_is_noticed(store, notes, tmp_path):
    """As `cp -p`, archives and builds do that give all files one time."""
    moment = (10**18, 10**18)
    os.utime(notes / "moon.txt", ns=moment)
    add_files(store, [notes])
    (tmp_path / "new").write_text("the RED moon")
    os.utime(tmp_path / "new", ns=moment)
    (tmp_path / "new").replace(notes / "moon.txt")
    assert counts(add_files(store, [notes])) == (0, 1, 0, 2)


def test_a_file_that_is_written_again_at_once_is_noticed(store, notes):
    """Within one tick of the clock of the file system, which has the same time for both."""
    path = notes / "moon.txt"
    stat = os.stat(path)
    add_files(store, [notes])
    with open(path, "r+") as file:
        file.write("the RED")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    # As if the clock had stood still: the mark gets the time of the second change.
    size, modified, _, *rest = store.remembered("in/notes/")["notes/moon.txt"].split()
    mark = " ".join([size, modified, str(os.stat(path).st_ctime_ns), *rest])
    store.remember("in/notes/", {"notes/moon.txt": mark})
    assert counts(add_files(store, [notes])) == (0, 1, 0, 2)


def test_a_store_equals_a_folder_that_changes_while_it_is_read(store, tmp_path):
    folder = tmp_path / "files"
    many(folder, 60)
    rng = random.Random(0)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            path = folder / f"{rng.randrange(80):03}.txt"
            what = rng.randrange(4)
            if what == 0:
                path.unlink(missing_ok=True)
            elif what == 1:
                path.write_text(f"moon {rng.random()}")
            elif what == 2:
                (folder / ".draft").write_text(f"moon {rng.random()}")
                (folder / ".draft").replace(path)
            elif path.exists():
                path.rename(folder / f"{rng.randrange(80):03}.txt")

    for _ in range(20):
        thread = threading.Thread(target=change)
        thread.start()
        add_files(store, [folder])
        stop.set()
        thread.join()
        stop.clear()
        add_files(store, [folder])
        expected = {f"files/{path.name}": path.read_text() for path in folder.glob("*.txt")}
        assert {one.id: one.text for one in store} == expected


def test_two_runs_at_once_say_so(place, notes):
    with open_store(place) as store, open_store(place) as other:
        seen = []

        def meanwhile(n):
            with pytest.raises(InputError, match="Another `vdsh add`"):
                add_files(other, [notes])
            seen.append(n)

        assert add_files(store, [notes], progress=meanwhile).added == 3
        assert len(seen) == 1
        assert add_files(other, [notes]).unchanged == 3  # the lock is free again


def test_a_file_that_changes_while_it_is_read_is_read_again(store, notes, monkeypatch):
    def read(path, **how):
        found = read_file(path, **how)
        if path.name == "moon.txt":
            path.write_text("a blue moon, later")
        return found

    read_file = folder_module.read_file
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "read_file", read)
        add_files(store, [notes])
    assert add_files(store, [notes]).changed == 1
    assert store.get("notes/moon.txt").text == "a blue moon, later"


# The command line


def test_add_then_search(vdsh, notes):
    result = vdsh("add", "store", str(notes), "--quiet")
    assert "3 added, 0 changed, 0 removed, 0 skipped; store holds 3 documents." in result.stdout
    assert "50 different documents or more" in result.stderr
    assert "notes/keys.md" in vdsh("search", "store", "signing").stdout
    facts = json.loads(vdsh("add", "store", str(notes), "--learn", "never", "--json").stdout)
    assert (facts["unchanged"], facts["skipped"]) == (3, 0)


def test_the_store_remembers_patterns_and_fields(vdsh, notes, tmp_path):
    vdsh("add", "store", str(notes), "--include", "*.md", "--learn", "never")
    facts = json.loads(vdsh("add", "store", str(notes), "--learn", "never", "--json").stdout)
    assert facts["unchanged"] == 2 and facts["added"] == 0
    (tmp_path / "table.csv").write_text("name,body\na,red moon\n")
    fields = ("--id-field", "name", "--text-field", "body")
    vdsh("add", "store", "table.csv", *fields, "--learn", "never")
    (tmp_path / "table.csv").write_text("name,body\na,red moon\nb,blue moon\n")
    assert "1 added" in vdsh("add", "store", "table.csv", "--learn", "never").stdout


def test_a_missing_path_makes_no_store(vdsh, tmp_path):
    result = vdsh("add", "store", "none")
    assert result.returncode == 1 and "No file or folder 'none'" in result.stderr
    assert not (tmp_path / "store").exists()


def test_searching_a_store_that_is_not_there_makes_none(vdsh, tmp_path):
    assert "vdsh add" in vdsh("search", "none", "moon").stderr
    assert not (tmp_path / "none").exists()


def test_progress_says_what_is_left_only_where_that_is_known(vdsh, notes, monkeypatch):
    monkeypatch.setattr("vdsh.progress.SECONDS", 0)
    line = vdsh("add", "store", str(notes), "--learn", "never").stderr.splitlines()[0]
    assert line.startswith("adding 3 documents 0:00:0")
    assert "left" not in line


def test_progress_names_large_files_and_counts_what_was_read(vdsh, notes, tmp_path, monkeypatch):
    monkeypatch.setattr("vdsh.progress.SECONDS", 0)
    (notes / "large.txt").write_text("moon " * 2**19)
    lines = vdsh("add", "store", str(notes), "--learn", "never").stderr
    assert "adding 0 documents 0 MB read, now notes/large.txt" in lines
    assert "adding 4 documents 3 MB read, now notes/moon.txt" in lines
    lines_of(tmp_path / "a.jsonl", **{f"x{i}": "moon " * 1000 for i in range(600)})
    lines = vdsh("add", "store", "a.jsonl", "--learn", "never").stderr
    assert "adding 0 documents 1 MB read, now a.jsonl" in lines


def test_add_learns_and_says_when_to_learn_again(vdsh, tmp_path, monkeypatch):
    monkeypatch.setattr("vdsh.fitting.default_method", lambda: "lsh")
    many(tmp_path / "files")
    (tmp_path / "files" / "stops.txt").write_text("the of and")  # no words to learn: not a warning
    assert "Learned codes of 16 bits" in vdsh("add", "store", "files", "--bits", "16").stderr
    assert json.loads(vdsh("info", "store", "--json").stdout)["bits"] == 16
    assert not vdsh("add", "store", "files", "-q").stderr
    many(tmp_path / "files", 200)
    (tmp_path / "files" / "stops.txt").unlink()
    assert "To learn again: vdsh learn store" in vdsh("add", "store", "files", "-q").stderr
    assert "codes of 8 bits: 200 documents" in vdsh("learn", "store", "--bits", "8", "-q").stdout


# Learning


@pytest.fixture
def topics(store, tmp_path):
    many(tmp_path / "files")
    add_files(store, [tmp_path / "files"])
    return store


def test_a_store_learns_from_its_own_documents(topics):
    topics.learn(bits=16, method="lsh", progress=False)
    assert topics.n_bits == 16 and topics.check() == []
    assert topics.search("moon", k=3) and topics.within("moon rocket", 16)
    assert topics.model.training["quality"]["values"]["codes"] > 0
    assert topics.drift().verdict  # it kept held-out documents to compare with


def test_a_model_that_exists_can_be_taken(topics, fitted):
    topics.learn(model=fitted, progress=False)
    assert topics.model.fingerprint == fitted.model_.fingerprint


@pytest.mark.parametrize(("n", "bits"), [(50, 32), (63, 32), (64, 64), (127, 64), (128, 128)])
def test_a_small_store_learns_as_many_bits_as_it_has_documents_for(vdsh, tmp_path, n, bits):
    many(tmp_path / "files", n)
    (tmp_path / "files" / "copy.txt").write_text((tmp_path / "files" / "001.txt").read_text())
    told = vdsh("add", "store", "files", "-q").stderr
    assert f"Learned codes of {bits} bits." in told
    assert ("128 bits need 128 different documents." in told) == (bits < 128)
    with open_store(tmp_path / "store") as store:
        assert store.n_bits == bits and store.count() == n + 1 and store.check() == []


def test_more_bits_than_documents_are_refused(topics):
    with pytest.raises(InputError, match="128 bits need at least 128 .* which takes 64"):
        topics.learn(bits=128, progress=False)
    assert topics.n_bits == 0


def test_copies_count_once_where_too_few_documents_are_said(tmp_path):
    with open_store(tmp_path / "copies") as store:
        store.upsert([Document(f"{i}", f"orbit moon {i % 49}") for i in range(98)])
        with pytest.raises(InputError, match=r"the store holds 49 \(and 49 copies\)"):
            store.learn(progress=False)


def test_ctrl_c_during_learning_leaves_a_store_that_answers_by_words(topics, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("vdsh.fitting.fit_texts", stop)
    with pytest.raises(KeyboardInterrupt):
        topics.learn(progress=False)
    assert topics.n_bits == 0 and topics.search("moon") and topics.check() == []


def test_a_run_that_is_killed_while_it_encodes_can_be_begun_again(topics, tmp_path):
    code = (
        "import os, sys; from vdsh import open_store; import vdsh.store.reindex as reindex\n"
        "reindex.Models.encode_rest = lambda *_: os._exit(9)\n"
        "open_store(sys.argv[1]).learn(bits=16, method='lsh', progress=False)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    assert subprocess.run(command, check=False).returncode == 9
    assert topics.n_bits == 0 and topics.search("moon")
    topics.learn(bits=24, method="lsh", progress=False)
    assert topics.n_bits == 24 and topics.check() == []


def test_what_cannot_be_learned_is_said(topics, tmp_path):
    with pytest.raises(VdshError, match="No document of the store has labels"):
        topics.learn(labels=True, progress=False)
    with pytest.raises(VdshError, match="multiple of 8"):
        topics.learn(bits=20, progress=False)
    with (
        open_store(tmp_path / "small") as small,
        pytest.raises(VdshError, match="50 different documents"),
    ):
        small.learn()
    assert topics.n_bits == 0


@pytest.mark.posix("limits the size of files")
def test_a_full_disk_is_a_sentence_and_the_next_run_goes_on(store, notes, tmp_path):
    many(tmp_path / "more", 400)
    add_files(store, [notes])
    with full_disk(30_000), pytest.raises(WriteError, match="free space"):
        add_files(store, [tmp_path / "more"])
    assert ids(store.search("robots OR keys")) == ["notes/keys.md"]
    assert store.check() == []
    add_files(store, [tmp_path / "more"])
    assert len(store) == 403 and store.check() == []
