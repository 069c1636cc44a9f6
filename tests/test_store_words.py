"""The word index of a store in a folder: lost, damaged, shared, growing, asked badly (#18)."""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from engines import doc, ids
from slow_words import assert_best, chances_of, slow_scores
from vdsh.errors import DamageError, InputError, WriteError
from vdsh.store import open_store
from vdsh.store.check_sums import sum_of
from vdsh.store.engines.sqlite import database as database_module
from vdsh.store.engines.sqlite import words as words_module
from vdsh.store.rows import words_text
from vdsh.text import languages
from vdsh.words import index as index_module
from vdsh.words import read_query
from vdsh.words.phrases import fits

# Texts here have words that the model does not know.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

SPACE = "orbit rocket shuttle launch moon crew astronaut satellite".split()


def documents(n, first=0):
    """Each has a word of its own, a word of a few, and one that the model knows."""
    return [doc(f"d{i}", f"own{i} few{i % 7} {SPACE[i % 8]}") for i in range(first, first + n)]


@pytest.fixture
def filled(store):
    store.upsert(documents(60))
    return store


def change(folder, *statements):
    """Do what vdsh would not, as another program."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))


def ask(folder, query):
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        return connection.execute(query).fetchall()


def lose_words(folder):
    """Take the word index away."""
    change(
        folder,
        "DELETE FROM words",
        "DELETE FROM word_blocks",
        "DELETE FROM word_tombstones",
        "DELETE FROM meta WHERE key = 'words'",
    )


def check(store, query, k=200, **options):
    """Compare an answer with the rule; return the ids."""
    pages = [page for page in store.entries(batch_size=500)]
    known = {d.id: (d.text, c) for some, codes in pages for d, c in zip(some, codes, strict=True)}
    read = read_query(query)
    hits = store.search(query, k, **options)
    chances = chances_of(store.model, read.text)
    assert_best(hits, slow_scores(known, read, chances, language=store.language), k)
    return ids(hits)


def assert_whole(store, folder):
    """Every document is found by its own word, and none is in the index that is not there."""
    for page in store.documents():
        own = [document.text.split()[0] for document in page]
        found = store.search_many(own, 1)
        for document, word, hits in zip(page, own, found, strict=True):
            assert (hits[0].id, hits[0].words) == (document.id, (word,))
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        index = words_module.Words().showing(connection)
        assert index.n_docs == store.count()
        left = words_module.pending(connection)
        assert left is not None
        assert not left.n_left


def count_rebuilds(monkeypatch):
    """Count how often the index is begun anew."""
    times = []
    begin = words_module.create_words

    def counted(connection):
        times.append(1)
        begin(connection)

    monkeypatch.setattr(words_module, "create_words", counted)
    return times


# -- lost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["search", "write", "delete"])
def test_a_lost_index_is_made_anew(filled, folder, first):
    before = filled.search("own7 moon few3", 20)
    filled.close()
    lose_words(folder)
    with open_store(folder) as store:
        assert store.info()["words"].startswith("damaged")
        if first == "write":
            store.upsert(documents(1, 60))
            store.upsert(documents(1, 3))
        if first == "delete":
            store.delete(["d59"])
        if first == "search":
            assert store.search("own7 moon few3", 20) == before
        assert_whole(store, folder)
        check(store, "own7 moon few3")
        assert store.info()["words"] == "all words (BM25)"


def test_a_code_query_leaves_a_lost_index_as_it_is(filled, folder):
    filled.close()
    lose_words(folder)
    with open_store(folder) as store:
        store.search(np.zeros(2, np.uint8))
        store.search("moon", rank="distance")
    assert ask(folder, "SELECT 1 FROM words") == []


def test_a_lost_index_with_gaps_and_large_row_numbers(filled, folder, monkeypatch):
    monkeypatch.setattr(words_module, "BATCH", 7)
    filled.delete([f"d{i}" for i in range(10, 40, 3)])
    filled.close()
    lose_words(folder)
    change(folder, "UPDATE documents SET row = row + 70000 WHERE row > 30",
           "UPDATE documents SET row = -row WHERE row < 5",
           "UPDATE sqlite_sequence SET seq = 80000 WHERE name = 'documents'")  # fmt: skip
    for file in folder.glob("index-*"):
        file.unlink()
    with open_store(folder) as store:
        assert_whole(store, folder)
        store.upsert(documents(3, 60))
        assert_whole(store, folder)


KILLED = """
import os, sys
from vdsh.errors import InputError
from vdsh.store import open_store
from vdsh.store.engines.sqlite import words
words.BATCH = 10
steps = [0]
index = words.index_pending
def counted(connection):
    left = index(connection)
    steps[0] += 1
    if steps[0] == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    return left
words.index_pending = counted
with open_store(sys.argv[1]) as store:
    store.search("moon")
"""


@pytest.mark.posix("a process kills itself by SIGKILL")
@pytest.mark.parametrize("step", [1, 2, 4])
def test_one_that_was_killed_goes_on(filled, folder, step, monkeypatch):
    filled.close()
    lose_words(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(step)], check=False)
    assert killed.returncode == -9
    rows = ask(folder, "SELECT value FROM meta WHERE key = 'words'")
    assert rows == [(f"{10 * (step - 1)} 60",)]  # the last was not committed
    times = count_rebuilds(monkeypatch)
    with open_store(folder) as store:
        assert_whole(store, folder)
    assert not times


def test_documents_change_while_it_is_made_anew(filled, folder, monkeypatch):
    """As another process would, between two batches."""
    monkeypatch.setattr(words_module, "BATCH", 10)
    filled.close()
    lose_words(folder)
    other, store = open_store(folder), open_store(folder)
    index, steps = words_module.index_pending, []

    def disturbed(connection):
        steps.append(1)
        return index(connection)

    monkeypatch.setattr(words_module, "index_pending", disturbed)

    def disturb(done, total):
        if len(steps) == 3:
            other.delete(["d2", "d29", "d30", "d59"])  # indexed, just indexed, next and last
            other.upsert(documents(2, 4) + documents(2, 57) + documents(3, 60))

    store._engine._mend_words(disturb)
    for one in (store, other):
        assert_whole(one, folder)
        check(one, "few3 moon own58")
        one.close()


SEARCH = """
import sys
import threading
from vdsh.errors import InputError
from vdsh.store import open_store
from vdsh.store.engines.sqlite import words
words.BATCH = 20
with open_store(sys.argv[1]) as store:
    print(*(hit.id for hit in store.search("own7 moon", 3)))
"""


def test_several_processes_make_it_anew_at_once(store, folder):
    store.upsert(documents(3000))
    expected = " ".join(ids(store.search("own7 moon", 3)))
    store.close()
    lose_words(folder)
    command = [sys.executable, "-W", "error", "-c", SEARCH, str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in running] == [expected] * 3
    with open_store(folder) as store:
        with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
            assert words_module.Words().showing(connection).n_docs == 3000
        assert ids(store.search("own2999", 1)) == ["d2999"]


def test_documents_are_joined_though_newer_ones_were_written_first(store, folder, monkeypatch):
    monkeypatch.setattr(words_module, "BATCH", 20)
    store.upsert(documents(2000))
    store.close()
    lose_words(folder)
    with open_store(folder) as store:
        store.upsert(documents(1, 2000))  # a piece behind all those that are still to be made
        assert ids(store.search("own2000", 1)) == ["d2000"]
        assert ids(store.search("own1999", 1)) == ["d1999"]
    assert len(ask(folder, "SELECT 1 FROM words")) < 20


def test_a_search_that_cannot_make_it_anew_says_so(filled, folder, monkeypatch):
    filled.close()
    lose_words(folder)
    with closing(sqlite3.connect(folder / "store.sqlite", isolation_level=None)) as other:
        with open_store(folder, wait=0.05) as store:
            other.execute("BEGIN IMMEDIATE")  # somebody writes for long
            with pytest.raises(WriteError, match="Another process is writing"):
                store.search("own7 moon", 1)
            other.execute("COMMIT")
            monkeypatch.setattr(store._engine, "read_only", True)
            with pytest.raises(DamageError, match="Search it once with permission to write"):
                store.search("own7 moon", 1)
            monkeypatch.undo()
            assert ids(store.search("own7 moon", 1)) == ["d7"]
            assert_whole(store, folder)


def test_long_documents_are_indexed_a_few_at_a_time(store, folder, monkeypatch):
    store.upsert(doc(f"d{i}", f"own{i} " + "moon " * 400) for i in range(40))
    store.close()
    lose_words(folder)
    monkeypatch.setattr(words_module, "LONG_BATCH", 20_000, raising=False)
    sizes, of = [], words_module.Segment.of

    def noted(texts, first=0):
        sizes.append(sum(map(len, texts)))
        return of(texts, first)

    monkeypatch.setattr(words_module.Segment, "of", noted)
    with open_store(folder) as store:
        store.search("moon", 1)
    assert len(sizes) > 2
    assert max(sizes) < 25_000


# -- damage ----------------------------------------------------------------------------------------

GONE = "INSERT OR REPLACE INTO word_tombstones SELECT segment, {} FROM words LIMIT 1"
CUT = "UPDATE words SET data = substr(data, 1, length(data) / 2)"
DAMAGE = {
    "a byte changed": "UPDATE words SET data = CAST(substr(data, 1, 99) || x'00' || "
    "substr(data, 101) AS BLOB)",
    "cut short": CUT,
    "empty": "UPDATE words SET data = x''",
    "a text": "UPDATE words SET data = 'text'",
    "a number": "UPDATE words SET data = 12",
    "a block changed": "UPDATE word_blocks SET data = CAST(x'00' || substr(data, 2) AS BLOB)",
    "blocks cut short": "UPDATE word_blocks SET data = substr(data, 1, length(data) / 2)",
    "a block that is a text": "UPDATE word_blocks SET data = 'text'",
    "no blocks": "DELETE FROM word_blocks",
    "blocks of others": "UPDATE word_blocks SET segment = segment + 1",
    "no pieces": "DELETE FROM words",
    "a piece too few": "DELETE FROM words WHERE segment = (SELECT MIN(segment) FROM words)",
    "a piece twice": "INSERT INTO words SELECT segment + 1000, first, span, docs, size, data "
    "FROM words",
    "moved": "UPDATE words SET first = first + 1",
    "moved far": "UPDATE words SET first = first + 9223372036854770000",
    "a first that is a text": "UPDATE words SET first = 'one'",
    "a span too long": "UPDATE words SET span = span + 5",
    "a span of a text": "UPDATE words SET span = 'x'",
    "too many gone": GONE.format("x'0100'"),
    "gone beyond the end": GONE.format("x'ffff'"),
    "half a number gone": GONE.format("x'010203'"),
    "gone as a text": GONE.format("'hello'"),
    "gone as a number": GONE.format("99999999999"),
    "gone twice": GONE.format("x'01000100'"),
    "no state": "DELETE FROM meta WHERE key = 'words'",
    "another state": "UPDATE meta SET value = 'x y' WHERE key = 'words'",
    "a state of one number": "UPDATE meta SET value = '5' WHERE key = 'words'",
    "a state that is too large": f"UPDATE meta SET value = '0 {2**70}' WHERE key = 'words'",
    "a state before the documents": "UPDATE meta SET value = '-5 70' WHERE key = 'words'",
    "a state in the middle": "UPDATE meta SET value = '30 60' WHERE key = 'words'",
}


@pytest.fixture
def damaged(filled, folder, request):
    """A store of 60 documents in three pieces, of which two were replaced, damaged."""
    filled.delete(["d3", "d5"])
    filled.upsert(documents(1, 3))
    filled.upsert(documents(1, 5))
    filled.close()
    change(folder, DAMAGE[request.param])
    return folder


every_damage = pytest.mark.parametrize("damaged", DAMAGE, indirect=True)


@every_damage
def test_a_damaged_index_is_made_anew_once(damaged, monkeypatch):
    times = count_rebuilds(monkeypatch)
    with open_store(damaged) as store:
        check(store, "own7 few3 moon")
        assert_whole(store, damaged)
        check(store, "own5 few5 orbit")
        assert len(times) <= 1
    with open_store(damaged) as store:
        check(store, "own7 few3 moon")
    assert len(times) <= 1


@every_damage
def test_a_damaged_index_does_not_hinder_writing(damaged, monkeypatch):
    times = count_rebuilds(monkeypatch)
    with open_store(damaged) as store:
        store.upsert(documents(30, 50))
        store.delete(["d0", "d1"])
        for i in range(20):
            store.upsert(documents(1, i))
        assert_whole(store, damaged)
        check(store, "own7 few3 moon")
    assert len(times) <= 2


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_reader_that_knows_the_index_answers_after_its_damage(filled, folder, kind):
    filled.delete(["d3"])
    with open_store(folder) as reader:
        reader.search("moon")
        change(folder, DAMAGE[kind])
        assert ids(reader.search("own7 moon", 1)) == ["d7"]
        reader.upsert(documents(3, 60))
        assert ids(reader.search("own61 moon", 1)) == ["d61"]
    filled.close()
    with open_store(folder) as store:  # which looks at all of it
        assert_whole(store, folder)


@pytest.mark.posix("a process kills itself by SIGKILL")
def test_damage_while_it_is_made_anew_is_mended(filled, folder, monkeypatch):
    filled.close()
    lose_words(folder)
    monkeypatch.setattr(words_module, "BATCH", 5)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), "4"], check=False)
    assert killed.returncode == -9
    change(folder, CUT)
    with open_store(folder) as store:
        for _ in range(3):
            assert ids(store.search("own7 moon", 1)) == ["d7"]
        assert_whole(store, folder)


@pytest.mark.posix("another user may not write")
def test_a_read_only_folder_answers_unless_its_index_is_damaged(filled, folder, readable):
    expected = ids(filled.search("own7 moon", 3))
    filled.close()
    whole, old, broken = (
        shutil.copytree(folder, readable / name) for name in ("whole", "old", "broken")
    )
    lose_words(old)
    change(broken, CUT)
    assert search_read_only(whole) == expected
    for place in (old, broken):
        with pytest.raises(AssertionError, match="Search it once with permission to write"):
            search_read_only(place)


READ_ONLY = """
import json, os, sys
import numpy as np
from vdsh.errors import InputError
from vdsh.store import open_store
with open_store(sys.argv[1]) as store:
    store.search(np.zeros(2, np.uint8))  # load all modules while the user may
    store.model.encode(["moon"])
if os.getuid() == 0:
    os.setuid(65534)
with open_store(sys.argv[1]) as store:
    assert store.info()["read_only"]
    first, second = [[hit.id for hit in store.search("own7 moon", 3)] for _ in range(2)]
    assert first == second
print(json.dumps(first))
"""


def search_read_only(folder):
    before = sorted((file.name, file.stat().st_size) for file in folder.rglob("*"))
    folder.chmod(0o555)
    try:
        done = subprocess.run([sys.executable, "-W", "error", "-c", READ_ONLY, str(folder)],
                              capture_output=True, text=True, check=False)  # fmt: skip
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert sorted((file.name, file.stat().st_size) for file in folder.rglob("*")) == before
    return json.loads(done.stdout)


def test_documents_that_another_program_adds_are_noticed(filled, folder):
    """Another program, which knows nothing of words."""
    with open_store(folder) as reader:
        reader.search("moon")
        check_sum = sum_of("new", "own99 few1 moon", None, "{}")
        row = f"SELECT 'new', 'own99 few1 moon', '{{}}', code, {check_sum}, code_sum FROM documents"
        columns = "id, text, metadata, code, check_sum, code_sum"
        change(folder, f"INSERT INTO documents({columns}) {row} LIMIT 1")
        assert ids(reader.search("own99", 1)) == ["new"]
        assert_whole(reader, folder)


def test_an_older_copy_that_is_put_back_is_not_mixed_with_what_came_later(filled, folder, tmp_path):
    filled.close()
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with open_store(folder) as first:
        first.upsert([doc("d60", "own60 rocket")])
        first.search("own60")
        cache = first._engine._cache  # which another handle may have, and keep alive
    shutil.copyfile(copy / "store.sqlite", folder / "store.sqlite")
    with open_store(folder) as second:
        assert second._engine._need_cache() is cache
        second.upsert([doc("d60", "other60 moon")])  # the same row as before
        assert not second.search("own60", 1)
        assert ids(second.search("other60", 1)) == ["d60"]
        assert_whole(second, folder)


# -- growth ----------------------------------------------------------------------------------------


def pieces_of(folder):
    return ask(folder, "SELECT first, span, docs FROM words ORDER BY first")


def bytes_of(folder):
    sizes = (
        "(SELECT SUM(LENGTH(data)) FROM words), (SELECT SUM(LENGTH(data)) FROM word_blocks), "
        "(SELECT SUM(LENGTH(places)) FROM word_tombstones)"
    )
    return sum(n or 0 for n in ask(folder, f"SELECT {sizes}")[0])


def test_single_documents_make_few_pieces(store, folder):
    database = store._engine._database
    database._connection.execute("PRAGMA synchronous = OFF")
    most = 0
    for i in range(1500):
        store.upsert(documents(1, i))
        if i % 50 == 0:
            most = max(most, len(pieces_of(folder)))
    assert most < 35
    assert len(pieces_of(folder)) < 35
    assert ids(store.search("own3", 1) + store.search("own1499", 1)) == ["d3", "d1499"]


@pytest.mark.parametrize("size", [1, 7, 300])
def test_replacing_the_same_documents_for_ever_takes_no_more_space(
    store, folder, size, monkeypatch
):
    """Pieces that are all gone are dropped, also where they are too long to be joined."""
    monkeypatch.setattr(words_module, "MOST", 256)  # documents of a piece
    store._engine._database._connection.execute("PRAGMA synchronous = OFF")
    all_of_them = documents(300)
    store.upsert(all_of_them)
    first = bytes_of(folder)
    for _ in range(6 if size < 300 else 60):
        for i in range(0, 300, size):
            store.upsert(all_of_them[i : i + size])
    assert sum(docs for _, _, docs in pieces_of(folder)) < 1.5 * 300
    assert len(pieces_of(folder)) < 40
    assert bytes_of(folder) < 3 * first
    assert_whole(store, folder)


def test_deleting_everything_leaves_no_pieces(filled, folder):
    for i in range(0, 60, 7):
        filled.delete([f"d{j}" for j in range(i, i + 7)])
    assert pieces_of(folder) == ask(folder, "SELECT * FROM word_tombstones") == []
    assert filled.search("own7 moon") == []
    filled.upsert(documents(3))
    assert_whole(filled, folder)


# -- several at once -------------------------------------------------------------------------------


def test_threads_search_while_documents_change(filled, folder):
    """A document is found by the word it has, or not at all: never by one it had."""
    problems, done = [], threading.Event()

    def read():
        try:
            with open_store(folder) as reader:
                while not done.is_set():
                    for word in ("green", "yellow"):
                        for hit in reader.search(f"{word} own7", 100, where={"kind": word}):
                            assert word in hit.text.split()
                            assert word in hit.words
        except Exception as error:
            problems.append(error)

    kinds = ["green", "yellow"]
    filled.upsert(doc(f"k{i}", f"own{i} {kinds[i % 2]}", kind=kinds[i % 2]) for i in range(20))
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(1, 60):
        some = [(i, kinds[(i + turn) % 2]) for i in range(turn % 5, 20, 3)]
        filled.upsert(doc(f"k{i}", f"own{i} {kind}", kind=kind) for i, kind in some)
        if turn % 4 == 0:
            filled.delete([f"k{i}" for i, _ in some])
        if turn % 20 == 0:
            change(folder, CUT)  # and all of them mend it
    done.set()
    for reader in readers:
        reader.join()
    assert not problems
    for hit in filled.search("green yellow", 100):
        assert bool(hit.words) == (hit.id[0] == "k")


def test_others_can_write_while_it_is_made_anew(filled, folder, monkeypatch):
    """They waited until its end: there was no time between two batches."""
    filled.close()
    lose_words(folder)
    others, left = iter(range(60, 100)), []

    def pause(seconds):
        assert seconds > 0.1  # SQLite looks ten times a second whether it may write
        with open_store(folder, wait=0.0) as other:
            other.upsert(documents(1, next(others)))
            (value,) = ask(folder, "SELECT value FROM meta WHERE key = 'words'")
            left.append(words_module.Pending(*map(int, value[0].split())).n_left)

    monkeypatch.setattr(words_module, "BATCH", 10)
    monkeypatch.setattr(database_module, "TURN", 0.0)
    monkeypatch.setattr(database_module, "sleep", pause)
    with open_store(folder) as store:
        store._engine._mend_words(None)
        assert left == [50, 40, 30, 20, 10]
        assert_whole(store, folder)


WRITE = """
import sys
import threading
from vdsh import Document
from vdsh.errors import InputError
from vdsh.store import open_store
from vdsh.store.engines.sqlite import words
words.BATCH = 20
with open_store(sys.argv[1]) as store:
    for i in range(60):
        name = f"{sys.argv[2]}{i % 40}"
        store.upsert([Document(name, f"own{name} moon {i}")])
"""


def test_processes_write_while_another_makes_the_index_anew(store, folder):
    store.upsert(documents(2000))
    store.close()
    change(folder, CUT)
    scripts = [(WRITE, "a"), (WRITE, "b"), (SEARCH, "")]
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script, str(folder), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for script, name in scripts
    ]
    answers = [process.communicate()[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert answers[2][0] == "d7"
    with open_store(folder) as store:
        assert store.count() == 2080
        for name in ("a0", "a39", "b7", "b39", "d1999"):
            assert ids(store.search(f"own{name.replace('d', '')}", 1)) == [name]
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        assert words_module.Words().showing(connection).n_docs == 2080


# -- bad input -------------------------------------------------------------------------------------

WILD = {
    "200,000 characters": "moon orbit " * 18_200,
    "200,000 characters without a space": "moon" * 50_000,
    "200,000 quotes": '"' * 200_000,
    "200,000 dashes": "-" * 200_000,
    "quotes and dashes": '-"' * 100_000,
    "10,000 distinct words": " ".join(f"word{i}" for i in range(10_000)),
    "10,000 documents' words": " ".join(f"own{i}" for i in range(10_000)),
    "operators": '" OR (',
    "a star": "*",
    "near": "NEAR",
    "more operators": 'NEAR(moon orbit, 2) AND NOT "x" OR * ^moon moon* {a b} : col:moon',
    "sql": "'; DROP TABLE words; --",
    "a half quote": 'moon "orbit',
    "empty quotes": '"" -"" - -- ---',
    "only left out": "-moon",
    "left out twice": "-moon moon",
    "a phrase left out": '-"moon few3" orbit',
    "control characters": "".join(map(chr, range(32))) + "moon\x00orbit\x7f\x85\u2028",
    "half surrogates": "moon \ud800 \udfff\ud83d orbit",
    "half surrogates in words": "mo\ud800on -or\udfffbit \"a\ud800b few3\"",
    "nothing": "",
    "spaces": " \t\n ",
    "stop words": "the of and",
    "stop words as a phrase": '"to be or not to be"',
    "Chinese": "月球轨道上的火箭",
    "Thai": "ดวงจันทร์และจรวด",
    "Arabic, which is written from the right": "القمر والصاروخ \u202emoon",
    "Hindi": "चंद्रमा और रॉकेट",
    "emoji": "🚀🌕👩‍🚀🏳️‍🌈 moon",
    "marks without end": "moo" + "\u0301" * 5000 + "n",
    "Hangul in parts": "\u1112\u1161\u11ab" * 50,
    "beyond the table": "\U0010ffff\U000e0001 moon",
    "a long word": "x" * 101 + " moon",
}  # fmt: skip


@pytest.mark.parametrize("query", WILD.values(), ids=WILD)
def test_any_query_has_an_answer(filled, query):
    hits = filled.search(query, 5)
    assert len(hits) <= 5
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert hits or hits.warning or '"' in query
    if "moon" in query.split() and "-" not in query and '"' not in query:
        assert "moon" in hits[0].text
    assert filled.search(query, 5, where={"id": {">": "d5"}}) is not None
    assert filled.search_many([query, "moon"], 5)[0] == hits


@pytest.mark.parametrize("text", WILD.values(), ids=WILD)
def test_any_text_can_be_stored_and_found(filled, folder, text):
    try:
        filled.upsert([doc("wild", f"wildest {text}"), doc("other", "own100 moon")])
    except InputError as error:
        assert "half a surrogate pair" in str(error)
        return
    assert ids(filled.search("wildest", 1)) == ["wild"]
    assert ids(filled.search("own100", 1)) == ["other"]
    filled.search(text, 3)
    filled.upsert([doc("wild", text)])
    if filled.search(text, rank="distance"):
        assert "wild" in ids(filled.search(text.replace('"', " ").replace("-", " "), 70))
    filled.delete(["wild"])
    assert_whole(filled, folder)


def test_signs_mean_nothing_to_a_radius(filled):
    """Who asks for a radius wants codes; a text is then encoded as it stands."""
    plain = filled.within("few3 shuttle", 8)
    assert filled.within('"few3 shuttle"', 8) == plain
    assert plain


WRITTEN = {
    "plain": doc("1", "a red planet"),
    "cased": doc("2", "THE RED, Planet!"),
    "accents": doc("3", "un r\u00e9d plan\u00e9t"),
    "accents elsewhere": doc("4", "na\u00efve: red planet"),
    "in the title": doc("5", "no", title="Red planet"),
    "from title to text": doc("6", "planet, later", title='"Very"\nred'),
    "from name to text": doc("red.md", "planet"),
    "in another field": doc("8", "no", note="red planet"),
    "apart": doc("9", "red and planet"),
    "turned": doc("10", "planet red"),
    "in longer words": doc("11", "redder planetary"),
    "a zero byte": doc("12", "a\x00b red planet"),
}


@pytest.mark.parametrize("phrase", ["red planet", "R\u00e9d PLANET", "red", "a red"])
def test_a_phrase_is_found_however_a_text_writes_it(store, phrase):
    store.upsert(WRITTEN.values())
    wanted = read_query(f'"{phrase}"')
    found = {hit.id for hit in store.search(f'"{phrase}"', 20)}
    language = store.language
    written = {one.id: words_text(one) for one in WRITTEN.values()}
    texts = {id for id, text in written.items() if fits(wanted, text, languages.language(language))}
    assert found == texts
    assert phrase.lower() != "red planet" or len(texts) == 8


@pytest.mark.parametrize("reopened", [False, True])
def test_kernels_and_numpy_find_the_same(store, monkeypatch, reopened):
    rng, words = np.random.default_rng(0), np.array([*SPACE, "mars", "red", "goal", "team", "few1"])
    order = rng.permutation(700)
    texts = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in order]
    store.upsert(doc(f"d{i:03}", text) for i, text in zip(order, texts, strict=True))
    store.delete([f"d{i:03}" for i in range(100, 160)])
    store.upsert([doc("d200", "the moon is red"), doc("zero", "xyzzy")])
    if reopened:  # which leaves gaps between rows
        store.close()
        store = open_store(store.path)
    queries = [" ".join(rng.choice(words, n)) for n in (1, 2, 3, 5, 8) for _ in range(5)]
    asked = [*queries, "xyzzy", "the", "plugh", "moon plugh"]
    found = []
    for way in (True, False):
        monkeypatch.setattr(index_module, "compiled", lambda seconds, way=way: way)
        found.append(
            [store.search(query, k, strict=k == 7) for query in asked for k in (3, 7, 150)]
        )
    assert found[0] == found[1]


def test_a_store_without_codes_blames_words_only_where_they_are_to_blame(tmp_path):
    with open_store(tmp_path / "new") as store:
        store.upsert([doc("a", "nothing was ever lost here"), doc("b", "the moon", year=1)])
        assert store.search('"nothing is lost"').warning is None
        assert store.search("moon", where={"year": 1}) != []
        assert store.search("lost", where={"year": 1}).warning is None
        assert "no word that counts" in store.search("the").warning
        assert "No document has a word of the text" in store.search("xyzzy").warning
