"""The store in a folder: its files, its index, its processes."""

import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from engines import code, codes_of, doc, ids
from vdsh import TextHasher
from vdsh.errors import FolderError, GoneError, InputError, MissingFileError, WriteError
from vdsh.model import Model, as_model
from vdsh.search import HammingIndex
from vdsh.store import open_store
from vdsh.store.engines.sqlite.filters import Narrowing
from vdsh.store.engines.sqlite.maintenance import Maintenance
from vdsh.store.model import to_pieces

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["vdsh.store"])  # import once, not in every child


def index_files(folder):
    return sorted(folder.glob("index-*.vdsh"))


# -- the model ------------------------------------------------------------------------------------


def test_a_code_query_never_loads_the_model(years, folder):
    years.close()
    change(folder, "UPDATE models SET data = x''")
    with open_store(folder) as store:
        assert ids(store.search(code(4), k=1)) == ["d4"]
        assert store.count() == 10
        with pytest.raises(FolderError):
            store.search("text")


def test_a_model_that_was_exchanged_is_noticed(store, folder, corpus):
    fingerprint = store.model.fingerprint
    store.close()
    other = TextHasher("vdsh", n_bits=16, epochs=1, hidden_size=8, device="cpu").fit(corpus[0])
    change(folder, "DELETE FROM models")
    rows = [(fingerprint, *row[1:]) for row in to_pieces(as_model(other))]
    with sqlite3.connect(folder / "store.sqlite") as connection:
        connection.executemany("INSERT INTO models VALUES (?, ?, ?, ?, 0)", rows)
    connection.close()
    with open_store(folder) as again, pytest.raises(FolderError, match="is not the one this store"):
        again.search("orbit")


def test_fingerprint_survives_saving_and_sees_every_change(fitted, model_folder):
    assert Model.load(model_folder).fingerprint == fitted.model_.fingerprint
    changed = Model.load(model_folder)
    changed.learned["thresholds_"] = changed.thresholds + np.float32(1e-6)
    assert changed.fingerprint != fitted.model_.fingerprint
    changed = Model.load(model_folder)
    changed.words = changed.words[::-1]
    assert changed.fingerprint != fitted.model_.fingerprint


def test_a_filter_may_be_too_long(store):
    with pytest.raises(InputError, match="too long"):
        store.count({"id": {"in": [f"d{i}" for i in range(300_000)]}})


def test_an_id_may_be_very_long(store):
    store.upsert([doc("x" * 100_000)])
    assert store.get("x" * 100_000) == doc("x" * 100_000)


# -- threads ------------------------------------------------------------------------------------


def test_two_threads_may_need_the_model_at_once(folder, years, monkeypatch):
    """Up to Python 3.11 `cached_property` held a lock that the other one waited for (#31)."""
    years.close()
    store = open_store(folder)
    asking = threading.Thread(target=store.search, args=("text",), daemon=True)
    checking = threading.Thread(target=store.check, daemon=True)

    def problems(_):  # it is our turn, and we need the model next
        asking.start()
        asking.join(0.3)  # it needs the model first, and waits for its turn
        return iter(())

    monkeypatch.setattr(Maintenance, "problems", problems)
    checking.start()
    checking.join(30)
    asking.join(30)
    assert not checking.is_alive() and not asking.is_alive()
    store.close()


def test_a_slow_filter_holds_up_no_other_handle(folder, years, monkeypatch):
    """As above: all searches of a process waited for one that looked for what matches."""
    entered, go_on, found = threading.Event(), threading.Event(), []
    usual = Narrowing.rows

    def rows(self, *given):
        if threading.current_thread() is slow:
            entered.set()
            go_on.wait(60)
        return usual(self, *given)

    def search(number):
        with open_store(folder) as store:
            found.extend(ids(store.search(code(number), where={"year": 1990 + number})))

    monkeypatch.setattr(Narrowing, "rows", rows)
    slow, quick = (threading.Thread(target=search, args=(i,), daemon=True) for i in (4, 5))
    slow.start()
    assert entered.wait(30)
    quick.start()
    quick.join(30)
    assert found == ["d5"]
    go_on.set()
    slow.join(30)
    assert found == ["d5", "d4"]


# -- places -------------------------------------------------------------------------------------


def test_looking_for_a_store_makes_no_folder(folder):
    with pytest.raises(MissingFileError, match="No store at"):
        open_store(folder, create=False)
    assert not folder.exists()


def test_an_unknown_kind_of_store():
    with pytest.raises(InputError, match="no store of the kind 'redis'"):
        open_store("redis://somewhere")
    with pytest.raises(InputError, match="Did you mean 'postgresql'?"):
        open_store("postgre://somewhere")


def test_a_place_that_is_taken(tmp_path, fitted, model_folder):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(FolderError, match="is a file, but a store is a folder"):
        open_store(file, fitted)
    with pytest.raises(FolderError, match="is not a store: it has no store.sqlite, but notes.txt"):
        open_store(tmp_path, fitted)
    with pytest.raises(FolderError, match="is a model, not a store. Its README.md says"):
        open_store(model_folder, fitted)
    assert [f.name for f in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_becomes_a_store(tmp_path, fitted):
    with open_store(tmp_path, fitted) as store:
        assert store.count() == 0


def test_another_sqlite_file_is_not_a_store(folder, fitted):
    folder.mkdir()
    with sqlite3.connect(folder / "store.sqlite") as connection:
        connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(FolderError, match="is an SQLite file but not of a store"):
        open_store(folder, fitted)


def test_a_store_of_a_newer_format(store, folder):
    store.close()
    with sqlite3.connect(folder / "store.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    with pytest.raises(FolderError, match="has format 99; this version reads 5. Upgrade"):
        open_store(folder)
    change(folder, "UPDATE meta SET value = '2' WHERE key = 'format'")
    with pytest.raises(FolderError, match="has format 2; this version reads 5. Index the doc"):
        open_store(folder)


def change(folder, *statements):
    with sqlite3.connect(folder / "store.sqlite") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "values",
    [
        "uuid='/../../evil'", "uuid='../evil'", "uuid=''", "n_bits='-8'", "n_bits='9'",
        "n_bits='x'", "format='x'", "format='-1'", "fingerprint='zz'", "uuid=x'ff'",
    ],
)  # fmt: skip
def test_a_store_whose_meta_is_hostile_is_refused_and_nothing_written(  # #16 C
    values, years, folder, tmp_path
):
    years.close()
    name, _, value = values.partition("=")
    change(folder, f"UPDATE meta SET value = {value} WHERE key = '{name}'")
    for file in index_files(folder):
        file.unlink()
    before = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(FolderError, match=f"is damaged: its {name} is"),
        open_store(folder) as store,
    ):
        store.search(code(4))
    assert sorted(tmp_path.rglob("*")) == before


def test_another_length_of_codes_than_the_model_has_is_told(folder, years):  # found by fuzzing
    years.close()
    change(folder, "UPDATE meta SET value = '0' WHERE key = 'n_bits'")
    with open_store(folder) as store, pytest.raises(FolderError, match="codes have 0 bits, but"):
        store.search("moon")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET code = x'00' WHERE id = 'd3'",
        "UPDATE documents SET code = 'ab' WHERE id = 'd3'",
        "UPDATE documents SET id = x'ff' WHERE id = 'd3'",
        "UPDATE documents SET text = CAST(x'ff' AS TEXT)",
        "UPDATE documents SET text = x'ff'",
        "UPDATE documents SET labels = '[1]'",
        "UPDATE documents SET labels = '{'",
        "UPDATE documents SET metadata = '[]'",
        f"UPDATE documents SET metadata = '{'[' * 10_000}'",
        "UPDATE sqlite_sequence SET seq = 'many'",
        "ALTER TABLE documents RENAME COLUMN code TO codes",
        "DROP TABLE tombstones",
        "DROP TABLE words",
        "ALTER TABLE words RENAME COLUMN data TO bytes",
        "DELETE FROM meta WHERE key = 'uuid'",
    ],
)
def test_a_store_whose_rows_are_hostile_gives_one_sentence(statement, years, folder):  # #16 C
    years.close()
    change(folder, statement)
    for file in index_files(folder):
        file.unlink()
    with pytest.raises(FolderError) as error, open_store(folder) as store:
        store.search(code(4), k=10)
    assert "\n" not in str(error.value)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
STRANGE = {
    "an endless view": (
        "DROP TABLE fields",
        f"CREATE VIEW fields AS {ENDLESS} SELECT CAST(i AS TEXT) AS name FROM n",
    ),
    "an endless view as meta": (
        "ALTER TABLE meta RENAME TO meta2",
        f"CREATE VIEW meta AS {ENDLESS} SELECT i AS key, i AS value FROM n",
    ),
    "a generated column": (
        "DROP TABLE fields",
        "CREATE TABLE fields(name TEXT AS (hex(zeroblob(100000000))), row INTEGER PRIMARY KEY)",
        "INSERT INTO fields(row) VALUES (1)",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM documents; END",),
    "an index of ours": ("CREATE INDEX i ON documents(hex(text))",),
    "another table": ("CREATE TABLE others(x)",),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_store_with_other_tables_is_refused(kind, years, folder):  # #31 B4: info hung
    years.close()
    change(folder, *STRANGE[kind])
    script = "import sys; from vdsh.store import open_store; open_store(sys.argv[1]).info()"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], timeout=60,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "has other tables than vdsh makes" in done.stderr or "not of a store" in done.stderr


def test_a_database_that_is_cut_short_takes_no_more_writes(years, folder):  # #31 B7
    """A write was answered and lost, and the service said that it was ready."""
    years.upsert([doc(f"more{i}", "moon " * 500) for i in range(500)])
    assert years.is_in_place()
    connection = sqlite3.connect(folder / "store.sqlite")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    years.upsert([doc("before")])
    file = folder / "store.sqlite"
    os.truncate(file, file.stat().st_size // 2 // 4096 * 4096)
    assert not years.is_in_place()
    for change_it in (lambda: years.upsert([doc("after")]), lambda: years.delete(["d1"])):
        with pytest.raises(FolderError, match="was cut short while it was open"):
            change_it()


def test_looking_whether_a_store_is_in_place_drops_no_lock(years, folder):  # #31 B7
    """A descriptor that is closed takes SQLite's locks with it; the log was removed under us."""
    code = (
        "import sys\nfrom vdsh import Document, open_store\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    store.upsert([Document(id, 'moon') for id in sys.argv[2:]])\n"
        "    print(*sorted(document.id for document in store))"
    )

    def elsewhere(*ids):
        command = [sys.executable, "-c", code, str(folder), *ids]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    years.upsert([doc("first")])
    assert years.is_in_place()
    elsewhere("other")
    years.upsert([doc("second")])
    assert {"first", "other", "second"} <= elsewhere()


def test_a_store_that_was_compacted_is_not_taken_for_cut(years, folder):  # #31 B7
    years.upsert([doc(f"more{i}", "moon " * 500) for i in range(500)])
    with open_store(folder) as other:
        other.delete([f"more{i}" for i in range(500)])
        with closing(sqlite3.connect(folder / "store.sqlite")) as base:
            base.execute("PRAGMA wal_checkpoint")
        before = (folder / "store.sqlite").stat().st_size
        other.compact()
    assert (folder / "store.sqlite").stat().st_size < before
    assert years.is_in_place()
    years.upsert([doc("after")])
    assert years.count() == 11


def test_an_index_file_of_other_documents_gives_one_sentence(years, folder):  # #16 C
    years.close()
    (file,) = index_files(folder)
    codes, rows = np.stack([code(i) for i in reversed(range(10))]), np.arange(1, 11)
    HammingIndex(codes, ids=list("abcdefghij"), numbers=rows).save(file)
    with open_store(folder) as store, pytest.raises(FolderError, match="Delete .*index-"):
        store.search(code(4))


def test_making_a_store_can_be_interrupted(folder, fitted):
    folder.mkdir()
    (folder / "store.sqlite").touch()
    with pytest.raises(FolderError, match="was never finished"):
        open_store(folder, create=False)
    with open_store(folder, fitted) as store:
        store.upsert([doc("a")])
        assert store.count() == 1


def test_a_corrupt_database_is_left_as_it_is(years, folder):
    years.close()
    file = folder / "store.sqlite"
    whole = file.read_bytes()
    for damaged in (b"not a database" * 1000, whole[:5000], b"\xff" * 200 + whole[200:]):
        file.write_bytes(damaged)
        with pytest.raises(FolderError, match="is damaged.*It was left as it is"):
            open_store(folder).search(code(0))
        assert file.read_bytes() == damaged
    file.write_bytes(whole)
    with open_store(folder) as store:
        assert store.count() == 10


# -- the index file -------------------------------------------------------------------------------


def test_the_index_file_is_used(years, folder, monkeypatch):
    years.close()
    (file,) = index_files(folder)
    assert file.stat().st_mode == (folder / "store.sqlite").stat().st_mode
    monkeypatch.setattr("vdsh.store.engines.sqlite.cache.IndexCache._build", None)
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=1)) == ["d7"]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "other"])
def test_a_bad_index_file_is_made_anew(years, folder, damage):
    years.close()
    (file,) = index_files(folder)
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "flipped":
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    else:
        file.write_bytes({"empty": b"", "cut": content[:-50], "other": b"x" * 999}[damage])
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=2)) == ["d7", "d3"]
        assert len(store.within(code(0), radius=16)) == 10


def test_an_old_index_file_is_brought_up_to_date(years, folder):
    years.close()
    (file,) = index_files(folder)
    old = file.read_bytes()
    with open_store(folder) as store:
        store.upsert([doc("new"), doc("d3")], codes_of(0xFF, 0xF0))
        store.delete(["d5", "new2"])
    for newer in index_files(folder):
        newer.unlink()
    file.write_bytes(old)
    with open_store(folder) as store:
        found = {hit.id: hit.distance for hit in store.search(code(0), k=20)}
        assert found == {f"d{i}": i.bit_count() for i in range(10) if i != 5} | {"new": 8, "d3": 4}


def test_an_index_file_from_the_future_is_forgotten(years, folder):
    """As after an older copy of the database was put back."""
    years.close()
    before = (folder / "store.sqlite").read_bytes()
    with open_store(folder) as store:
        store.upsert([doc(f"lost{i}") for i in range(5)], codes_of(*[7] * 5))
    (folder / "store.sqlite").write_bytes(before)
    with open_store(folder) as store:
        store.upsert([doc(f"kept{i}") for i in range(5)], codes_of(*[7] * 5))
        assert ids(store.search(code(7), k=6)) == ["d7", *(f"kept{i}" for i in range(5))]


def test_a_stranger_s_index_file_is_not_used(years, folder, tmp_path, fitted):
    years.close()
    with open_store(tmp_path / "other", fitted) as other:
        other.upsert([doc(f"x{i}") for i in range(10)], codes_of(*range(10)))
    (file,), (strange,) = index_files(folder), index_files(tmp_path / "other")
    file.unlink()
    (folder / strange.name).write_bytes(strange.read_bytes())
    with open_store(folder) as store:
        assert ids(store.search(code(7), k=1)) == ["d7"]


def test_small_changes_do_not_rewrite_the_index_file(years, folder):
    years.upsert([doc(f"more{i}") for i in range(200)])
    years.close()
    files = index_files(folder)
    with open_store(folder) as store:
        store.delete(["d1"])
        store.search(code(0))
    assert index_files(folder) == files
    with open_store(folder) as store:
        store.delete([f"more{i}" for i in range(100)])
    assert len(index_files(folder)) == 1
    assert index_files(folder) != files


def test_the_log_of_deletions_is_bounded(years, folder):  # 16 A13: it grew with every upsert
    years.upsert([doc(f"more{i}") for i in range(90)])
    years.close()
    (file,) = index_files(folder)
    old = file.read_bytes()
    with open_store(folder) as store, open_store(folder) as behind:
        behind.search(code(0))
        for turn in range(20):
            store.upsert([doc(f"more{i}") for i in range(90)], codes_of(*[turn] * 90))
            store.upsert([doc("d3")], codes_of(turn))
            if turn == 7:
                assert len(behind.within(code(7), radius=0)) == 92  # d7, d3 and the others
        assert len(behind.within(code(19), radius=0)) == 91
        assert behind.count() == 100
    connection = sqlite3.connect(folder / "store.sqlite")
    (n_noted,) = connection.execute("SELECT COUNT(*) FROM tombstones").fetchone()
    connection.close()
    assert n_noted <= 250
    for newer in index_files(folder):
        newer.unlink()
    file.write_bytes(old)  # it shows a state from before the log begins
    with open_store(folder) as store:
        assert len(store.within(code(19), radius=0)) == 91
        assert len(store.within(code(0), radius=16)) == 100


def test_an_index_that_needs_forgotten_deletions_is_made_anew(years, folder, monkeypatch):
    years.search(code(0))
    with open_store(folder) as other:
        other.delete(["d1"])
    connection = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    connection.execute("DELETE FROM tombstones")
    connection.close()
    assert len(years.within(code(0), radius=16)) == 9


# -- several handles ------------------------------------------------------------------------------


def test_handles_of_one_folder_share_one_index(years, folder):  # 17: a worker had two
    with open_store(folder) as other:
        for store in (years, other):
            assert ids(store.search(code(7), k=1)) == ["d7"]
        assert index_of(years) is index_of(other)
        years.upsert([doc("new")], codes_of(0xFFFF))
        assert ids(other.search(code(0xFFFF), k=1)) == ["new"]
        other.delete(["new"])
        assert ids(years.search(code(0xFFFF), k=1)) == ["d7"]
        assert index_of(years) is index_of(other)
        years.close()
        assert len(other.within(code(0), radius=16)) == 10


def index_of(store):
    return store._engine._cache.index


def test_handles_of_different_stores_share_nothing(years, folder, fitted, tmp_path):
    with open_store(tmp_path / "other", fitted) as other:
        assert other.search(code(0)) == []
        assert len(years.search(code(0))) == 10
        assert index_of(years) is not index_of(other)


def test_one_handle_writes_while_others_search_the_shared_index(store, folder):  # 17
    """Each turn gives 50 documents the same new code: no search may see two turns."""
    last, problems = 100, []
    changing = [doc(f"{i}") for i in range(50)]
    store.upsert([doc(f"far{i}") for i in range(500)], codes_of(*[0xFFFF] * 500))
    store.upsert(changing, codes_of(*[0] * 50))

    def read():
        turn = 0
        try:
            with open_store(folder) as reader:
                while turn < last:
                    for hits in (reader.within(code(0), radius=8), reader.search(code(0), k=50)):
                        turns = {int(hit.code, 16) for hit in hits}
                        assert (len(hits), len(turns)) == (50, 1)
                        assert turn <= max(turns)
                        turn = max(turns)
                        assert {hit.distance for hit in hits} == {turn.bit_count()}
        except Exception as error:
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(1, last + 1):
        store.upsert(changing, codes_of(*[turn] * 50))
    for reader in readers:
        reader.join()
    assert not problems


# -- disks and processes ---------------------------------------------------------------------------


def run_python(script, *arguments):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


READ_ONLY = """
import hashlib, json, os, sys
import numpy as np
from vdsh import Document
from vdsh.errors import VdshError
from vdsh.store import open_store
from vdsh.store.model import to_pieces
with open_store(sys.argv[1]) as store:
    store.search(np.zeros(2, np.uint8))  # load all modules while the user may
if os.getuid() == 0:
    os.setuid(65534)
answers = []
with open_store(sys.argv[1]) as store:
    answers += [store.count(), [hit.id for hit in store.search(np.zeros(2, np.uint8), k=2)]]
    answers += [store.info()["read_only"]]
    for change in (lambda: store.upsert([Document("x", "")], np.zeros((1, 2), np.uint8)),
                   lambda: store.delete(["d1"])):
        try:
            change()
        except VdshError as error:
            answers.append(f"{type(error).__name__}: {error}")
print(json.dumps(answers))
"""


@pytest.mark.posix("another user may not write")
def test_a_read_only_folder_can_be_searched(years, folder, readable):
    years.close()
    folder = shutil.copytree(folder, readable / "store")
    before = sorted(file.name for file in folder.iterdir())
    folder.chmod(0o555)
    try:
        count, found, read_only, *refusals = run_python(READ_ONLY, folder)
    finally:
        folder.chmod(0o755)
    assert (count, found, read_only) == (10, ["d0", "d1"], True)
    assert len(refusals) == 2
    assert all(r.startswith("WriteError: ") and "is read-only" in r for r in refusals)
    assert sorted(file.name for file in folder.iterdir()) == before


FULL_DISK = """
import json, resource, sys
import numpy as np
from vdsh import Document
from vdsh.errors import WriteError
from vdsh.store import open_store, store as store_module
store_module.BATCH = 100
documents = (Document(f"{i}", "x" * 1000) for i in range(50_000))
committed = [0]
with open_store(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
    try:
        store.upsert(documents, np.zeros((50_000, 2), np.uint8), progress=committed.append)
    except WriteError as error:
        count = store.count()
        print(json.dumps([str(error), committed[-1], count]))
"""


@pytest.mark.posix("limits the size of files")
def test_a_full_disk_keeps_what_was_committed(store, folder):
    store.close()
    sentence, committed, count = run_python(FULL_DISK, folder)
    assert "Could not read or write" in sentence
    assert "What was committed before is kept" in sentence
    assert 0 < committed == count < 50_000
    with open_store(folder) as again:
        assert again.count() == committed
        assert again.get(f"{committed - 1}").text == "x" * 1000
        assert len(again.within(code(0), radius=0)) == committed
        again.upsert([doc("more")])
        assert again.count() == committed + 1


def test_a_second_writer_waits_and_then_says_so(years, folder):
    other = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with open_store(folder, wait=0.1) as store:
        with pytest.raises(WriteError, match="Another process is writing to .* waited 0.1 s"):
            store.upsert([doc("a")])
        assert store.count() == 10  # readers do not wait
        other.execute("COMMIT")
        store.upsert([doc("a")])
    other.close()
    assert years.count() == 11


def write_many(folder, name, n_batches, size):
    with open_store(folder) as store:
        for batch in range(n_batches):
            documents = [doc(f"{name}-{batch}-{i}", batch=batch) for i in range(size)]
            store.upsert(documents, np.full((size, 2), batch, np.uint8))


def test_two_processes_write_and_a_third_reads_whole_batches(store, folder):
    write_many(folder, "first", 1, 40)
    writers = [FORK.Process(target=write_many, args=(folder, name, 25, 40)) for name in "ab"]
    for writer in writers:
        writer.start()
    counts = [0]
    while any(writer.is_alive() for writer in writers):
        counts.append(store.count())
        assert len(store.within(code(0), radius=16)) % 40 == 0
        assert len(store.within(code(0), radius=16, where={"batch": {"<": 5}})) % 40 == 0
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert counts == sorted(counts)
    assert all(count % 40 == 0 for count in counts)
    assert store.count() == len(store.within(code(0), radius=16)) == 51 * 40


def test_a_store_removed_before_its_first_use_says_so(store, folder):
    shutil.rmtree(folder)
    with pytest.raises(GoneError, match="removed or replaced"):
        store.upsert([doc("a")])
    with pytest.raises(GoneError, match="removed or replaced"):
        store.delete(["a"])
    with pytest.raises(GoneError, match="was removed or replaced since it was opened. Open it"):
        store.search(code(0))


READS = {
    "search by words": lambda store: store.search("text"),
    "search by code": lambda store: store.search(code(4)),
    "within": lambda store: store.within(code(4), radius=2),
    "find": lambda store: store.find("d4"),
    "count": len,
    "go through": list,
    "info": lambda store: store.info(),
    "check": lambda store: store.check(),
    "labels": lambda store: store.labels(),
    "remembered": lambda store: store.remembered("own/"),
}


@pytest.mark.posix("removes files that are open")
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("read", READS)
def test_a_store_that_is_gone_answers_nothing(years, folder, tmp_path, read, replaced):
    READS[read](years)
    folder.rename(tmp_path / "away")
    if replaced:
        shutil.copytree(tmp_path / "away", folder)
    with pytest.raises(GoneError, match="was removed or replaced since it was opened"):
        READS[read](years)
    shutil.rmtree(folder, ignore_errors=True)
    (tmp_path / "away").rename(folder)
    READS[read](years)  # its disk was only away


def test_a_person_can_read_the_tables(years, folder):
    connection = sqlite3.connect(folder / "store.sqlite")
    row = connection.execute("SELECT id, labels, metadata FROM documents WHERE id = 'd3'")
    assert row.fetchone() == ("d3", '["odd", "all"]', '{"year":1993}')
    connection.close()
