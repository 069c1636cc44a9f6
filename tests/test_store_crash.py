"""kill -9 at any moment: what was acknowledged is there, and nothing is half done."""

import multiprocessing
import os
import random
import sqlite3
import time
import warnings
from contextlib import closing

import numpy as np
import pytest

from vdsh import Document
from vdsh.store import open_store
from vdsh.store import store as store_module
from vdsh.store.engines.sqlite import words as words_module

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

KILLS = 15
BATCH = 60
IDS = 900
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["vdsh.store", "vdsh.fitting"])  # import once, not in every child


def change(step):
    """What transaction number `step` does: ids to delete, documents to write."""
    rng = random.Random(step)
    if step % 4 == 3:
        return [f"id{rng.randrange(IDS)}" for _ in range(20)], []
    ids = rng.sample(range(IDS), BATCH)  # some are new, some replace
    return [], [
        Document(f"id{i}", f"own{i}step{step} moon step{step}", ("x",), {"step": step}) for i in ids
    ]


def after(state, step):
    deleted, written = change(step)
    kept = {id: document for id, document in state.items() if id not in deleted}
    return kept | {document.id: document for document in written}


def codes_of(documents):
    rngs = [random.Random(f"{document.id} {document.text}") for document in documents]
    return np.array([[rng.randrange(4), rng.randrange(256)] for rng in rngs], np.uint8)


def work(folder, log, step):
    """Change the store for ever; write each step to the log the moment it is acknowledged."""
    store_module.BATCH = BATCH
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def acknowledge(step):
        os.write(out, f"{step}\n".encode())

    while True:
        with open_store(folder) as store:  # closing saves the index now and then
            for _ in range(5):
                store.search(np.zeros(2, np.uint8))
                store.search("moon", 3)
                step = do_some(store, step, acknowledge)


def do_some(store, first, acknowledge):
    """Write up to the next deletion in one call, batch by batch, then delete."""
    last = first - first % 4 + 3
    documents = [document for step in range(first, last) for document in change(step)[1]]
    if documents:
        codes = codes_of(documents)
        store.upsert(documents, codes, progress=lambda n: acknowledge(first + n // BATCH - 1))
    store.delete(change(last)[0])
    acknowledge(last)
    return last + 1


def run_and_kill(folder, log, step, seconds):
    process = FORK.Process(target=work, args=(folder, log, step))
    process.start()
    deadline = time.monotonic() + 20
    size = log.stat().st_size
    while log.stat().st_size == size and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(seconds)
    assert process.is_alive(), "the writer must not fail by itself"
    process.kill()
    process.join()
    return int(log.read_text().split()[-1])


def assert_answers(store, state):
    """The store holds exactly `state`, and its searches agree with a look at every document."""
    documents = [document for batch in store.documents() for document in batch]
    assert {document.id: document for document in documents} == state
    assert len(documents) == store.count() == len(state)
    codes = codes_of(list(state.values())).reshape(-1, 2)
    for query in np.array([[0, 0], [3, 255], [1, 77]], np.uint8):
        distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1).tolist()
        expected = sorted(zip(distances, state, strict=True))
        hits = store.search(query, k=50)
        assert [(hit.distance, hit.id) for hit in hits] == expected[:50]
        hits = store.within(query, radius=3)
        assert [(h.distance, h.id) for h in hits] == [pair for pair in expected if pair[0] <= 3]
    assert_words(store, state)


def assert_words(store, state):
    """Each document is found by a word that it alone has, and the index has no other documents."""
    for document in list(state.values())[::25]:
        (hit,) = store.search(document.text.split()[0], 1)
        assert (hit.id, hit.text) == (document.id, document.text)
    engine = store._engine
    with engine._database.reading() as connection:
        index = words_module.Words().showing(connection)
        rows = dict(connection.execute("SELECT row, id FROM documents"))
    assert index.n_docs == len(state)
    for document in state.values():
        (row,) = index.having([document.text.split()[0]]).tolist()
        assert rows[row] == document.id


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_a_kill(tmp_path, fitted):
    folder, log = tmp_path / "store", tmp_path / "log"
    log.touch()
    open_store(folder, fitted).close()
    rng = random.Random(int(time.time()))
    state, done = {}, -1  # done: the last step that is in the store
    for _ in range(KILLS):
        acknowledged = run_and_kill(folder, log, done + 1, rng.uniform(0, 0.4))
        for step in range(done + 1, acknowledged + 1):
            state = after(state, step)
        done = acknowledged
        with open_store(folder) as store:
            newest = max(document.metadata["step"] for [*b] in store.documents() for document in b)
            # The step under way may have been committed but not acknowledged, as a whole.
            unheard = after(state, done + 1)
            seen = {document.id: document for [*b] in store.documents() for document in b}
            assert newest <= done + 1
            if seen == unheard != state:
                state, done = unheard, done + 1
            assert_answers(store, state)
        connection = sqlite3.connect(folder / "store.sqlite")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
    assert done > 2 * KILLS


def mend(folder):
    """Search and write for ever; the index is made anew in small batches, now and then."""
    words_module.BATCH = 40
    number = 0
    with open_store(folder) as store:
        while True:
            assert [hit.id for hit in store.search("own7 moon", 1)] == ["old7"]
            store.upsert([Document(f"new{number % 50}", f"fresh{number % 50} moon")])
            number += 1


LOST = ("DELETE FROM words", "DELETE FROM meta WHERE key = 'words'")
DAMAGED = ("UPDATE words SET data = substr(data, 1, 50)",)


@pytest.mark.slow
def test_an_index_made_anew_and_killed_again_and_again_ends_well(tmp_path, fitted):
    folder = tmp_path / "store"
    with open_store(folder, fitted) as store:
        store.upsert(Document(f"old{i}", f"own{i} moon") for i in range(1500))
    rng = random.Random(int(time.time()))
    for turn in range(KILLS):
        if turn % 3 == 0:
            with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
                for statement in LOST if turn % 2 else DAMAGED:
                    connection.execute(statement)
        process = FORK.Process(target=mend, args=(folder,))
        process.start()
        time.sleep(rng.uniform(0.2, 1.5))
        assert process.is_alive(), "it must not fail by itself"
        process.kill()
        process.join()
        with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if turn % 3 == 2:
            with open_store(folder) as store:
                all_of_them = [document for page in store.documents() for document in page]
                assert_words(store, {document.id: document for document in all_of_them})


# Every kind of change that a store knows, each killed in the middle.

FOLDERS = 200  # documents, of which some are written and deleted again and again
TOPICS = ("orbit moon rocket crater launch probe", "goal match keeper league coach season")
KINDS = ("learn", "compact", "upsert", "delete")


def documents_of(step):
    """The documents that a step writes: 30 of the ids, with words of one of two topics."""
    rng = random.Random(step)
    return [
        Document(
            f"id{i}",
            " ".join(rng.choices(TOPICS[i % 2].split(), k=8)) + f" step{step}",
            ("x",),
            {"step": step},
        )
        for i in rng.sample(range(FOLDERS), 30)
    ]


def deleted_by(step):
    return [f"id{i}" for i in random.Random(step).sample(range(FOLDERS), 10)]


def kind_of_step(step):
    return ("upsert", "delete", "upsert", "learn", "upsert", "compact")[step % 6]


def do_step(store, step):
    kind = kind_of_step(step)
    if kind == "upsert":
        store.upsert(documents_of(step))
    elif kind == "delete":
        store.delete(deleted_by(step))
    elif kind == "learn":
        bits = 8 * random.Random(step).randrange(1, 5)
        store.learn(bits=bits, method="lsh", random_state=step, progress=False)
    else:
        store.compact()


def state_after(state, step):
    kind = kind_of_step(step)
    if kind == "upsert":
        return state | {document.id: document for document in documents_of(step)}
    if kind == "delete":
        return {id: document for id, document in state.items() if id not in deleted_by(step)}
    return state


def change_for_ever(folder, log, step):
    """Do step after step; write down when each begins, and when it is done."""
    warnings.simplefilter("ignore")
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with open_store(folder) as store:
        while True:
            os.write(out, f"begin {step}\n".encode())
            do_step(store, step)
            os.write(out, f"done {step}\n".encode())
            step += 1


def steps_in(log, word):
    """Read the numbers of the steps that have begun, or are done."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return [int(line[1]) for line in lines if line[0] == word]


def kill_in_the_middle(folder, log, first, kind, rng):
    """Let steps be done until one of a kind runs; return the number of the last that is done."""
    wanted = next(step for step in range(first, first + 12) if kind_of_step(step) == kind)
    process = FORK.Process(target=change_for_ever, args=(folder, log, first))
    process.start()
    deadline = time.monotonic() + 60
    while wanted not in steps_in(log, "begin") and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.4 if kind == "learn" else 0.03))
    assert process.is_alive(), "it must not fail by itself"
    process.kill()
    process.join()
    return max(steps_in(log, "done"), default=first - 1)


@pytest.mark.parametrize("n_kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_a_kill_in_any_change_loses_nothing_that_was_answered(tmp_path, n_kills):
    folder, log = tmp_path / "store", tmp_path / "log"
    log.touch()
    rng = random.Random(n_kills)
    state = {}
    with open_store(folder) as store:
        for step in range(0, 18, 2):  # enough to learn from
            store.upsert(documents_of(step))
            state |= {document.id: document for document in documents_of(step)}
        store.learn(bits=16, method="lsh", progress=False)
    done = 17
    for turn in range(n_kills):
        last = kill_in_the_middle(folder, log, done + 1, KINDS[turn % 4], rng)
        for step in range(done + 1, last + 1):
            state = state_after(state, step)
        done = last
        with open_store(folder) as store:
            assert store.check() == []
            seen = {document.id: document for document in store}
            if seen != state:  # the step that was killed was committed, as a whole
                done += 1
                state = state_after(state, done)
            assert seen == state
            assert store.search("moon", 5) and store.within(store.search("moon")[0].text, 0)
