"""Files into a store, and what changes in them; a store that learns by itself (#35)."""

import json
import os
import random
import subprocess
import sys

import pytest

from engines import full_disk, ids
from vdsh import Document, open_store
from vdsh.adding import add_files
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


def test_what_cannot_be_read_is_skipped_and_stays_if_it_was_read_before(store, notes):
    add_files(store, [notes])
    (notes / "moon.txt").write_bytes(b"\0\1\2")
    found = add_files(store, [notes])
    assert found.removed == 0 and list(found.skipped.values()) == [["notes/moon.txt"]]
    assert store.get("notes/moon.txt").text == "the red moon"


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


def test_two_folders_of_one_name_do_not_replace_each_other(store, notes, tmp_path):
    add_files(store, [notes])
    other = tmp_path / "other" / "notes"
    other.mkdir(parents=True)
    (other / "keys.md").write_text("other keys")
    with pytest.raises(InputError, match="which was added before"):
        add_files(store, [other])
    notes.rename(tmp_path / "moved")
    assert counts(add_files(store, [other], keep=True)) == (0, 1, 0, 0)  # it has taken its place


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
    import vdsh.documents.folder as folder

    def read(path, **how):
        found = read_file(path, **how)
        if path.name == "moon.txt":
            path.write_text("a blue moon, later")
        return found

    read_file = folder.read_file
    with monkeypatch.context() as patch:
        patch.setattr(folder, "read_file", read)
        add_files(store, [notes])
    assert add_files(store, [notes]).changed == 1
    assert store.get("notes/moon.txt").text == "a blue moon, later"


# The command line


def test_add_then_search(vdsh, notes):
    result = vdsh("add", "store", str(notes), "--quiet")
    assert "3 added, 0 changed, 0 removed, 0 skipped; store holds 3 documents." in result.stdout
    assert "50 documents or more" in result.stderr
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
