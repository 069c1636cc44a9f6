"""Maintenance of a store: checks that find damage, copies while others write, space given back."""

import io
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from engines import full_disk
from vdsh import Document, TextHasher, open_store
from vdsh.cli import app
from vdsh.errors import FolderError, InputError, OutputExistsError, WriteError
from vdsh.store import restore_store


@pytest.fixture
def folder(tmp_path, fitted, corpus):
    texts, _ = corpus
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document(f"{i:03}", text, None, {"n": i}) for i, text in enumerate(texts)])
        store.remember("own/", {"key": "value"})
    return tmp_path / "store"


def change(folder, statement, *values):
    base = sqlite3.connect(folder / "store.sqlite")
    with base:
        base.execute(statement, values)
    base.close()


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# Well written, but not by the model.
OTHER_CODES = (
    f"UPDATE documents SET code = x'0000', code_sum = {zlib.crc32(bytes(2))} WHERE row > 3"
)


def everything(store):
    return [(d.id, d.text) for page in store.documents() for d in page], [
        (ids, codes.tolist()) for ids, codes in store.codes()
    ]


def test_a_sound_store_passes(folder, corpus):
    with open_store(folder) as store:
        assert store.check() == []
    found = run("check", folder)
    assert (found.exit_code, found.stdout) == (0, f"All is well: {len(corpus[0])} documents.\n")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (OTHER_CODES, "not those of the model"),
        (OTHER_CODES, "index is of other documents"),
        (
            "UPDATE documents SET code = zeroblob(2) WHERE row > 78",
            "2 documents are damaged: '078', '079'",
        ),
        ("UPDATE documents SET text = text || '.' WHERE row = 5", "damaged: '004'. Delete it and"),
        ("UPDATE documents SET metadata = '{\"a\":1}' WHERE row = 5", "is damaged: '004'"),
        ("UPDATE documents SET labels = '[\"x\"]' WHERE row = 5", "is damaged: '004'"),
        ("UPDATE documents SET text = CAST(text AS BLOB) WHERE row = 5", "is damaged: '004'"),
        ("UPDATE documents SET text = CAST(x'ff' AS TEXT) WHERE row = 5", "is damaged: '004'"),
        ("UPDATE documents SET id = 'other' WHERE row = 5", "is damaged: 'other'"),
        ("DELETE FROM fields", "The list of the documents' fields is damaged"),
        ("UPDATE meta SET value = 'german' WHERE key = 'language'", "says about itself is damaged"),
        ("UPDATE key_values SET value = value || 'x'", "remembers of its sources is damaged"),
        ("UPDATE models SET data = data || x'00'", "The store's models are damaged"),
        ("INSERT INTO next_codes VALUES (1, x'00', 1)", "an unfinished run of learning"),
        ("DELETE FROM documents WHERE row = 5", "word index is of 80 documents, but there are 79"),
        ("UPDATE words SET data = substr(data, 1, 40)", "word index is damaged"),
        (  # the last block has the vocabulary, which few searches read
            "UPDATE word_blocks SET data = substr(data, 1, 40) "
            "WHERE block = (SELECT MAX(block) FROM word_blocks)",
            "word index is damaged",
        ),
        ("DELETE FROM meta WHERE key = 'words'", "Not all words are indexed"),
    ],
)
def test_damage_is_found(folder, statement, sentence):
    change(folder, statement)
    found = run("check", folder)
    assert found.exit_code == 1
    assert sentence in found.stdout


def test_another_model_is_found(folder, fitted):
    change(folder, "UPDATE meta SET value = ? WHERE key = 'fingerprint'", "1" * 64)
    with open_store(folder) as store:
        assert any("its model is missing" in problem for problem in store.check())
    change(folder, "UPDATE models SET fingerprint = ?", "1" * 64)
    with open_store(folder) as store:
        assert any("not the one this store was made with" in problem for problem in store.check())


def test_a_torn_file_is_found(folder):
    file = folder / "store.sqlite"
    data = bytearray(file.read_bytes())
    data[-3000:] = b"\xff" * 3000
    file.write_bytes(data)
    found = run("check", folder)
    assert found.exit_code == 1
    assert "Traceback" not in found.output


def test_a_backup_is_the_same_store(folder, tmp_path):
    file = tmp_path / "copy.vdsh"
    assert run("backup", folder, file).exit_code == 0
    restored = run("restore", file, tmp_path / "again")
    assert restored.exit_code == 0 and "documents" in restored.stdout
    with open_store(folder) as old, open_store(tmp_path / "again") as new:
        assert everything(old) == everything(new)
        assert new.check() == []
        assert new.search("orbit moon") == old.search("orbit moon")


def test_a_backup_while_others_write_has_all_that_was_there(folder, tmp_path):
    """#20: the copy holds everything acknowledged before it began, and is sound."""
    stop, written = Event(), []

    def write():
        with open_store(folder) as store:
            while not stop.is_set():
                id = f"new-{len(written):05}"
                store.upsert([Document(id, "shuttle orbit launch")])
                written.append(id)

    thread = Thread(target=write)
    thread.start()
    try:
        with open_store(folder) as store:
            for i in range(5):
                before = list(written)
                store.back_up(tmp_path / f"{i}.vdsh")
                with restore_store(tmp_path / f"{i}.vdsh", tmp_path / f"store-{i}") as copy:
                    assert copy.check() == []
                    assert all(copy.get(id) for id in before)
    finally:
        stop.set()
        thread.join()


def test_a_backup_never_lies_in_the_store(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    with open_store(folder) as store:
        inside = (folder, folder / "copy.vdsh", folder / "sub" / "copy.vdsh", link / "copy.vdsh")
        for place in inside:
            with pytest.raises((InputError, OutputExistsError)):
                store.back_up(place)
        for place in (folder, folder / "store.sqlite", link / "store.sqlite"):
            with pytest.raises(InputError, match="inside the store"):
                store.back_up(place, force=True)
        assert store.check() == []
    assert not list(tmp_path.rglob("copy.vdsh"))


def test_nothing_is_replaced_unasked(folder, tmp_path):
    file = tmp_path / "copy.vdsh"
    file.write_text("mine")
    with open_store(folder) as store:
        with pytest.raises(OutputExistsError, match="exists"):
            store.back_up(file)
        assert file.read_text() == "mine"
        store.back_up(file, force=True)
    with pytest.raises(OutputExistsError, match="Restore into a new folder"):
        restore_store(file, folder)


@pytest.mark.parametrize("kind", ["cut", "text", "other tar", "outside", "missing"])
def test_what_is_no_backup_restores_nothing(folder, tmp_path, kind):
    file = tmp_path / "copy.vdsh"
    if kind == "cut":
        with open_store(folder) as store:
            store.back_up(file)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif kind == "text":
        file.write_text("not a backup")
    elif kind == "other tar":
        with tarfile.open(file, "w") as archive:
            archive.add(folder / "store.sqlite", "store.sqlite")
    elif kind == "outside":
        about = tmp_path / "about"
        about.write_text('{"vdsh": "backup", "parts": []}')
        with tarfile.open(file, "w") as archive:
            archive.add(about, "backup.json")
            archive.add(about, "../escaped")
    with pytest.raises((FolderError, InputError)):
        restore_store(file, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "escaped").exists()


def tar_of(file, *members, mode="w"):
    """Write a tar of names with bytes, or of members as they are."""
    with tarfile.open(file, mode) as archive:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


ABOUT = ("backup.json", b'{"vdsh": "backup", "parts": []}')
HOSTILE = {
    "a link and a file behind it": [ABOUT, (link("map.safetensors", "../.."), b"")],
    "a hard link": [ABOUT, (link("store.sqlite", "/etc/passwd", tarfile.LNKTYPE), b"")],
    "a device": [ABOUT, (link("store.sqlite", "", tarfile.CHRTYPE), b"")],
    "a folder": [ABOUT, (link("store.sqlite", "", tarfile.DIRTYPE), b"")],
    "a name outside": [ABOUT, ("../escaped", b"x")],
    "an absolute name": [ABOUT, ("/tmp/escaped-by-vdsh", b"x")],
    "a foreign file": [ABOUT, ("store.sqlite", b""), ("model/manifest.json", b"{}")],
    "a part twice": [ABOUT, ("store.sqlite", b""), ("store.sqlite", b"x")],
    "no store": [ABOUT],
    "the store first": [("store.sqlite", b""), ABOUT],
    "deep": [("backup.json", b"[" * 9000)],
    "of another kind": [("backup.json", b'{"vdsh": "model"}')],
    "no object": [("backup.json", b"[1]")],
    "an empty store": [ABOUT, ("store.sqlite", b"")],
    "no database": [ABOUT, ("store.sqlite", b"x" * 5000)],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_backup_writes_nothing(tmp_path, kind):  # #31 B2
    file = tmp_path / "hostile.vdsh"
    tar_of(file, *HOSTILE[kind])
    with pytest.raises(FolderError) as error:
        restore_store(file, tmp_path / "again")
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile.vdsh"]


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_compressed_backup_is_refused(tmp_path, mode, cut):  # #31 B2: LZMAError, a bomb
    file = tmp_path / "bomb.vdsh"
    tar_of(file, ABOUT, ("store.sqlite", bytes(10_000_000)), mode=mode)
    if cut:
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FolderError, match="is not a whole backup"):
        restore_store(file, tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.vdsh"]


def test_a_sparse_part_is_refused(tmp_path):  # #31 B2: a small file, a large store
    file = tmp_path / "sparse.vdsh"
    member = tarfile.TarInfo("store.sqlite")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1",
                          "GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**40)}  # fmt: skip
    tar_of(file, ABOUT, (member, b""))
    with pytest.raises(FolderError, match="is not a whole backup"):
        restore_store(file, tmp_path / "again")


def change_backup(file, changed, statement):
    """Write a backup anew with a change in its database."""
    folder = changed.with_suffix(".parts")
    with tarfile.open(file) as archive:
        names = archive.getnames()
        archive.extractall(folder, filter="data")
    change(folder, statement)
    with tarfile.open(changed, "w") as archive:
        for name in names:
            archive.add(folder / name, name)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET text = 'moon' WHERE id IN ('007', '009')",
        "UPDATE models SET data = zeroblob(length(data))",
        "DELETE FROM word_tombstones",
    ],
)
def test_a_damaged_store_is_not_backed_up(folder, tmp_path, statement):
    with open_store(folder) as store:
        store.delete(["001"])
    change(folder, statement)
    with open_store(folder) as store:
        (problem, *_) = store.check()
        with pytest.raises(FolderError) as error:
            store.back_up(tmp_path / "bad.vdsh")
    assert problem in str(error.value)
    assert "cannot be backed up" in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_damaged_document_is_not_shown_and_can_be_written_again(folder, corpus):
    text = corpus[0][4]
    change(folder, "UPDATE documents SET text = 'moon' WHERE id = '004'")
    with open_store(folder) as store:
        for ask in (lambda: store.find("004"), lambda: list(store)):
            with pytest.raises(FolderError, match="Document '004' of this store is damaged"):
                ask()
        assert store.find("005") is not None
        store.upsert([Document("004", text, None, {"n": 4})])
        assert store.find("004").text == text
        assert store.check() == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM models",
        "UPDATE documents SET code = zeroblob(3) WHERE row = 7",
        "UPDATE meta SET value = '0' || substr(value, 2) || '' WHERE key = 'fingerprint'",
    ],
)
def test_what_is_restored_is_checked_first(folder, tmp_path, statement):  # #31 A3, B2
    with open_store(folder) as store:
        store.back_up(tmp_path / "good.vdsh")
    change_backup(tmp_path / "good.vdsh", tmp_path / "bad.vdsh", statement)
    with pytest.raises(FolderError, match="Nothing was restored"):
        restore_store(tmp_path / "bad.vdsh", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_sqlite_complains_of_is_one_line(folder):
    file = folder / "store.sqlite"
    data = bytearray(file.read_bytes())
    leaf = next(page for page in range(4096, len(data), 4096) if data[page] == 13)
    data[leaf + 7] = 15  # bytes between cells, it says
    file.write_bytes(data)
    with open_store(folder) as store:
        (line,) = store.check()
    assert "Fragmentation" in line and "\n" not in line


@pytest.mark.posix("limits the size of files")
@pytest.mark.parametrize("work", ["reindex", "compact", "back_up", "upsert"])
def test_a_full_disk_is_a_sentence_and_loses_nothing(folder, tmp_path, corpus, work):
    """#31 B, the leftovers."""
    other = TextHasher("lsh", 32, random_state=1).fit(corpus[0])
    more = [Document(f"new{i}", "orbit moon " * 50) for i in range(500)]
    with open_store(folder) as store:
        before = list(store)
        works = {
            "reindex": lambda: store.reindex(other),
            "compact": store.compact,
            "back_up": lambda: store.back_up(tmp_path / "copy.vdsh"),
            "upsert": lambda: store.upsert(more),
        }
        with full_disk(20_000), pytest.raises(WriteError, match="free space"):
            works[work]()
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
        assert list(store) == before and store.check() == []
        works[work]()
        assert len(store) == len(before) + 500 * (work == "upsert") and store.check() == []


KILLED = """
import os, sys
from vdsh.store import open_store
with open_store(sys.argv[1]) as store:
    store.back_up(sys.argv[2], progress=lambda *_: os.kill(os.getpid(), 9))
"""


@pytest.mark.posix("a process kills itself by SIGKILL")
def test_what_a_killed_backup_left_goes_with_the_next(folder, tmp_path):  # #31 B7
    place = tmp_path / "backups"
    place.mkdir()
    command = [sys.executable, "-c", KILLED, str(folder), str(place / "copy.vdsh")]
    for _ in range(2):
        assert subprocess.run(command, check=False).returncode == -9
    assert len(list(place.iterdir())) == 1  # not one more with each
    with open_store(folder) as store:
        store.back_up(place / "copy.vdsh")
    assert [path.name for path in place.iterdir()] == ["copy.vdsh"]
    restore_store(place / "copy.vdsh", tmp_path / "again").close()


def test_two_backups_to_one_file_do_not_meet(folder, tmp_path):
    def again(*_):
        with open_store(folder) as other, pytest.raises(InputError, match="Another backup"):
            other.back_up(tmp_path / "copy.vdsh")

    with open_store(folder) as store:
        store.back_up(tmp_path / "copy.vdsh", progress=again)
    restore_store(tmp_path / "copy.vdsh", tmp_path / "again").close()


def test_space_is_given_back(folder, corpus):
    texts, _ = corpus
    with open_store(folder) as store:
        store.upsert([Document(f"x{i:05}", texts[i % 50] * 20) for i in range(1000)])
        store.delete([f"x{i:05}" for i in range(1000)])
        found = everything(store)
    before = (folder / "store.sqlite").stat().st_size
    assert run("compact", folder).exit_code == 0
    assert (folder / "store.sqlite").stat().st_size < before / 2
    with open_store(folder) as store:
        assert everything(store) == found
        assert store.check() == []


def test_of_two_restores_to_one_folder_the_second_replaces_nothing(folder, tmp_path, monkeypatch):
    import vdsh.store.opening as opening

    file, place = tmp_path / "copy.vdsh", tmp_path / "again"
    with open_store(folder) as store:
        store.back_up(file)
        store.delete(["001"])
        store.back_up(tmp_path / "later.vdsh")
    unpack = opening._unpack

    def meanwhile(*arguments):
        unpack(*arguments)
        monkeypatch.setattr(opening, "_unpack", unpack)
        restore_store(tmp_path / "later.vdsh", place).close()

    monkeypatch.setattr(opening, "_unpack", meanwhile)
    with pytest.raises(OutputExistsError, match="exists by now"):
        restore_store(file, place)
    with open_store(place) as store:
        assert store.find("001") is None
    assert not list(tmp_path.glob(".again*"))
