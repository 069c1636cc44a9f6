"""Maintenance of a store: checks that find damage, copies while others write, space given back."""

import resource
import sqlite3
import tarfile
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from vdsh import Document, open_store
from vdsh.cli import app
from vdsh.errors import FolderError, InputError, OutputExistsError, VdshError
from vdsh.store import restore_store


@pytest.fixture
def folder(tmp_path, fitted, corpus):
    texts, _ = corpus
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document(f"{i:03}", text) for i, text in enumerate(texts)])
    return tmp_path / "store"


def change(folder, statement, *values):
    base = sqlite3.connect(folder / "store.sqlite")
    with base:
        base.execute(statement, values)
    base.close()


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
        ("UPDATE documents SET code = zeroblob(2) WHERE row > 3", "not those of the model"),
        ("UPDATE documents SET code = zeroblob(2) WHERE row > 3", "index is of other documents"),
        ("DELETE FROM documents WHERE row = 5", "word index is of 80 documents, but there are 79"),
        ("UPDATE words SET data = substr(data, 1, 40)", "word index is damaged"),
        ("DELETE FROM meta WHERE key = 'words'", "Not all words are indexed"),
    ],
)
def test_damage_is_found(folder, statement, sentence):
    change(folder, statement)
    found = run("check", folder)
    assert found.exit_code == 1
    assert sentence in found.stdout


def test_another_model_is_found(folder, fitted):
    change(folder, "UPDATE meta SET value = ? WHERE key = 'fingerprint'", "0" * 64)
    with open_store(folder) as store:
        assert any("its model is missing" in problem for problem in store.check())
    change(folder, "UPDATE models SET fingerprint = ?", "0" * 64)
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


def test_a_full_disk_leaves_no_backup(folder, tmp_path):
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_store(folder) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, most))
        try:
            with pytest.raises(VdshError):
                store.back_up(tmp_path / "copy.vdsh")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
        assert store.check() == []


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
