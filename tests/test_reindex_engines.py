"""A new model under an old store on a server; `test_reindex` has more, for folders."""

from contextlib import nullcontext
from threading import Event, Thread

import numpy as np
import pytest

from conftest import toy_corpus
from vdsh import Document, TextHasher, open_store
from vdsh.errors import EngineError, FolderError, InputError
from vdsh.model import as_model
from vdsh.store import reindex
from vdsh.store.engines.milvus import models as in_milvus
from vdsh.store.engines.milvus.engine import Milvus

TEXTS = toy_corpus()[0]
N = 70


@pytest.fixture(scope="module")
def newer():
    return TextHasher("lsh", n_bits=32, random_state=3).fit(TEXTS)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(reindex, "BATCH", 20)


@pytest.fixture(params=["milvus-lite", "postgres"])
def place(request, new_place, fitted):
    place = new_place(request.param)
    fill(place, fitted)
    return place


def fill(place, hasher):
    with open_store(place, hasher) as store:
        documents = [Document(f"{i:03}", TEXTS[i], ("a",), {"n": i}) for i in range(N)]
        store.upsert(documents)


def check_codes(store, hasher, n=N):
    """Every code is the one that the model makes."""
    assert store.model.fingerprint == as_model(hasher).fingerprint
    pages = list(store.entries())
    for documents, codes in pages:
        assert np.array_equal(codes, hasher.encode([document.text for document in documents]))
    assert sum(len(documents) for documents, _ in pages) == n


def stop(_):
    raise KeyboardInterrupt


@pytest.fixture
def without_locks():
    """Let Milvus Lite be as a server of Milvus, where two runs may meet."""
    with pytest.MonkeyPatch.context() as patch:  # of its own: tests undo theirs half-way
        patch.setattr(Milvus, "_hold", lambda *_: nullcontext(True))
        yield


def test_there_and_back(place, fitted, newer):
    seen = []
    with open_store(place) as store, open_store(place) as other, open_store(place) as third:
        before, documents = store.search("orbit moon"), list(store)
        store.reindex(newer, progress=seen.append)
        check_codes(store, newer)
        assert third.get("007") == documents[7]
        assert sum(seen) == N
        assert store.info()["bits"] == 32
        assert list(store) == documents
        hits = other.search("orbit moon", rank="distance")  # its model is not loaded yet
        assert all(len(hit.code) == 8 for hit in hits)
        assert len(other.within("orbit moon", 32)) == N
        assert len(other.search("orbit moon", where={"n": {">=": 60}}, k=99)) == 10
        other.upsert([Document("new", "referee goal")])
        other.delete(["new"])
        assert store.check() == []
    with open_store(place) as store:
        check_codes(store, newer)
        store.reindex()
        check_codes(store, fitted)
        assert store.search("orbit moon") == before
        store.compact()
        check_codes(store, fitted)
        with pytest.raises(InputError, match="no earlier model"):
            store.reindex()


def test_it_goes_on_where_it_stopped(place, fitted, newer):
    seen = []
    with open_store(place) as store:
        with pytest.raises(KeyboardInterrupt):
            store.reindex(newer, progress=stop)
        check_codes(store, fitted)
        with pytest.raises(InputError, match="being encoded with another model"):
            store.reindex(fitted)
    with open_store(place) as store:
        check_codes(store, fitted)
        store.reindex(newer, progress=seen.append)
        check_codes(store, newer)
    assert sum(seen) == N - 20


def test_another_model_instead(place, fitted, newer):
    third = TextHasher("lsh", n_bits=8, random_state=4).fit(TEXTS)
    with open_store(place) as store:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                store.reindex(newer, progress=stop)
        store.reindex(third, restart=True)
        check_codes(store, third)
        with pytest.raises(KeyboardInterrupt):
            store.reindex(newer, progress=stop)
        store.compact()  # drops what was begun
        store.upsert([Document("000", TEXTS[1])])
        check_codes(store, third)


def test_writes_and_searches_meanwhile(place, fitted, newer):
    ended, problems, written = Event(), [], []

    def work():
        try:
            with open_store(place) as store:
                while not ended.is_set():
                    id = f"new-{len(written):04}"
                    text = TEXTS[len(written) % len(TEXTS)]
                    store.upsert([Document(id, text), Document("000", text)])
                    written.append(id)
                    assert store.search("orbit moon")
                    store.delete([f"{20 + len(written):03}"])
        except BaseException as error:
            problems.append(error)

    def replace(_):  # what was encoded already, and what comes before it
        other.upsert([Document("!", "moon"), Document("009", f"orbit {len(written)}")])

    thread = Thread(target=work)
    thread.start()
    with open_store(place) as store, open_store(place) as other:
        for hasher in (newer,) if "milvus" in place else (newer, fitted, newer):
            store.reindex(hasher, progress=replace)
    ended.set()
    thread.join()
    assert not problems
    with open_store(place) as store:
        check_codes(store, newer, store.count())
        assert {id for ids, _ in store.codes() for id in ids} >= {*written, "!", "000", "009"}
        assert store.check() == []


def test_a_run_in_milvus_does_not_chase_writers(new_place, fitted, newer):
    place, seen = new_place("milvus-lite"), []
    fill(place, fitted)

    def write(n):
        seen.append(n)
        other.upsert([Document(f"x{len(seen):02}", "moon")])
        assert len(seen) < 10

    with open_store(place) as store, open_store(place) as other:
        store.reindex(newer, progress=write)
        check_codes(store, newer, N + len(seen))


def test_who_writes_to_milvus_in_the_moment_of_the_switch_writes_again(
    new_place, fitted, newer, monkeypatch
):
    """What comes when all was copied is in the new codes."""
    place = new_place("milvus-lite")
    with open_store(place, fitted) as store:
        long = Document("long", "orbit " * 20_000)
        store.upsert([long, *(Document(f"{i}", "moon orbit") for i in range(30))])
    add, writer, problems = in_milvus.Models._add, Thread(), []

    def write():
        try:
            with open_store(place) as other:
                other.upsert([Document("late", "moon"), Document("long", "goal " * 20_000)])
                assert other.delete(["7"]) == 1
        except BaseException as error:
            problems.append(error)

    def switch_late(self, *given):
        nonlocal writer
        writer = Thread(target=write)
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()  # it waits for the switch
        add(self, *given)

    monkeypatch.setattr(in_milvus.Models, "_add", switch_late)
    with open_store(place) as store:
        store.reindex(newer)
        writer.join()
        assert not problems
        check_codes(store, newer, 31)
        assert {document.id for document in store} >= {"late", "3"}
        assert store.get("long").text.startswith("goal")


def test_milvus_takes_writes_after_a_run_was_killed_at_the_switch(
    new_place, fitted, newer, monkeypatch
):
    place = new_place("milvus-lite")
    fill(place, fitted)
    monkeypatch.setattr(in_milvus.Models, "_add", lambda *_: stop(None))
    with open_store(place, wait=0.2) as store:
        with pytest.raises(KeyboardInterrupt):
            store.reindex(newer)
        assert store.search("orbit moon")
        store.upsert([Document("new", "moon")])
        check_codes(store, fitted, N + 1)
        monkeypatch.undo()
        store.reindex(newer)
        check_codes(store, newer, N + 1)


def test_what_is_written_to_milvus_in_a_switch_that_takes_long(
    new_place, fitted, newer, monkeypatch
):
    place = new_place("milvus-lite")
    fill(place, fitted)
    encode_rest = in_milvus.Models.encode_rest

    def be_slow(self, model, *given):
        n_done = encode_rest(self, model, *given)
        if in_milvus.read_state(self._values).closing:
            monkeypatch.undo()
            with open_store(place, wait=0.2) as other:
                other.upsert([Document("late", "moon")])
        return n_done

    monkeypatch.setattr(in_milvus.Models, "encode_rest", be_slow)
    with open_store(place) as store:
        store.reindex(newer)
        check_codes(store, newer, N + 1)
        assert store.get("late").text == "moon"


@pytest.mark.usefixtures("without_locks")
def test_a_second_run_in_milvus_takes_over(new_place, fitted, newer):
    place = new_place("milvus-lite")
    fill(place, fitted)

    def again(_):
        with open_store(place) as other, pytest.raises(KeyboardInterrupt):
            other.reindex(newer, progress=stop)

    with open_store(place) as store:
        with pytest.raises(
            InputError, match="Another process has taken over encoding .* with this model"
        ):
            store.reindex(newer, progress=again)
        store.reindex(newer)
        check_codes(store, newer)


def test_a_long_document_that_is_replaced_while_it_is_read(new_place, fitted, monkeypatch):
    place, long = new_place("milvus-lite"), Document("long", "orbit " * 20_000)
    with open_store(place, fitted) as store, open_store(place) as other:
        store.upsert([long])
        values = store._engine._values
        look_up = values.look_up

        def replace_first(keys):
            monkeypatch.undo()
            other.upsert([Document("long", "moon")])
            return look_up(keys)

        monkeypatch.setattr(values, "look_up", replace_first)
        assert store.get("long").text == "moon"
        store.upsert([long])
        values.remove([f"piece/{key}" for key in values.under("piece/")])
        with pytest.raises(FolderError, match="a part of the document 'long' is missing"):
            store.get("long")


def test_what_would_forbid_the_switch_is_said_first(new_place, postgres_server, fitted, newer):
    place = new_place("postgres")
    fill(place, fitted)
    table = place.rpartition("=")[2]
    with postgres_server.connect("plain") as connection:
        connection.execute(f"CREATE VIEW codes_of_{table} AS SELECT code FROM {table}")
        seen = []
        with open_store(place) as store:
            with pytest.raises(EngineError, match="depend on it"):
                store.reindex(newer, progress=seen.append)
            check_codes(store, fitted)
        assert not seen
        connection.execute(f"DROP VIEW codes_of_{table}")


def test_who_may_only_write_may_not_reindex(new_place, postgres_server, fitted, newer):
    place = new_place("postgres")
    fill(place, fitted)
    with postgres_server.connect("plain") as connection:
        table = place.rpartition("=")[2]
        connection.execute("DROP ROLE IF EXISTS clerk")
        connection.execute("CREATE ROLE clerk LOGIN PASSWORD 'x'")
        for part in (
            "",
            "_meta",
            "_fields",
            "_models",
            "_totals",
            "_key_values",
            "_passages",
            "_vocabulary",
        ):
            connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table}{part} TO clerk")
    other = f"postgresql://clerk:x@{place.partition('@')[2]}"
    with open_store(other) as store:
        store.upsert([Document("new", "moon")])
        with pytest.raises(EngineError, match="must be owner"):
            store.reindex(newer)
        assert store.search("moon")
        check_codes(store, fitted, N + 1)
        with open_store(place) as owner:
            owner.reindex(newer)
        store.upsert([Document("newer", "moon")])
        check_codes(store, newer, N + 2)


def test_a_model_that_is_begun_while_others_are_forgotten_stays(
    new_place, fitted, newer, monkeypatch
):
    """Found by 675 steps of three processes: `compact` took the files of a model just begun."""
    place, model = new_place("milvus-lite"), as_model(newer)
    fill(place, fitted)
    with open_store(place) as store, open_store(place) as other:
        mine, theirs = store._engine.models, other._engine.models
        drop = theirs._drop

        def begin_meanwhile(*given):
            drop(*given)
            mine.begin(model, restart=True)

        monkeypatch.setattr(theirs, "_drop", begin_meanwhile)
        other.compact()
        mine.encode_all(model, lambda: N, lambda _: None)
    with open_store(place) as store:
        check_codes(store, newer)
        assert store.check() == []


@pytest.mark.usefixtures("without_locks")
def test_a_model_that_is_begun_again_while_its_files_are_removed_stays(
    new_place, fitted, newer, monkeypatch
):
    """Found by 6,381 steps: the call that removed an older model came late, and it was in use."""
    place = new_place("milvus-lite")
    fill(place, fitted)
    with open_store(place) as store, open_store(place) as other:
        store.reindex(newer)  # what `fitted` has is to be removed
        values = other._engine._values
        remove = values.remove

        def be_late(keys):
            if any(key.startswith("model/") for key in keys):
                monkeypatch.undo()
                store.reindex(fitted)
            remove(keys)

        monkeypatch.setattr(values, "remove", be_late)
        other.compact()
    with open_store(place) as store:
        check_codes(store, fitted)
        assert store.check() == []


def test_who_is_replaced_while_encoding_in_milvus_is_told_so(new_place, fitted, newer, monkeypatch):
    """Found by 1,233 steps: its collection was dropped before the other had said why."""
    place = new_place("milvus-lite")
    fill(place, newer)
    with open_store(place) as store, open_store(place) as other:
        mine, theirs = store._engine.models, other._engine.models
        drop, problems = theirs._drop, []
        mine.begin(as_model(fitted), restart=True)

        def ask_meanwhile(*given):
            drop(*given)
            with pytest.raises(InputError) as told:
                mine.unencoded(as_model(fitted).fingerprint, None, 10)
            problems.append(told)

        monkeypatch.setattr(theirs, "_drop", ask_meanwhile)
        third = TextHasher("lsh", n_bits=16, random_state=3).fit(["moon orbit", "goal player"] * 9)
        theirs.begin(as_model(third), restart=True)
        assert len(problems) == 1


@pytest.mark.usefixtures("without_locks")
@pytest.mark.parametrize("late", ["switch", "compact"])
def test_who_drops_late_in_milvus_leaves_what_others_have_made(
    late, new_place, fitted, newer, monkeypatch
):
    """Found by 4,611 steps: another had put its own collection under the store meanwhile."""
    place, drop = new_place("milvus-lite"), in_milvus.Models._drop
    fill(place, fitted)
    with open_store(place) as store, open_store(place) as other:

        def be_late(self, number, *kept):
            if len(kept) == 1:  # a run that begins keeps two
                monkeypatch.undo()
                store.reindex(fitted if late == "switch" else newer)
            drop(self, number, *kept)

        monkeypatch.setattr(in_milvus.Models, "_drop", be_late)
        other.reindex(newer) if late == "switch" else other.compact()
    with open_store(place) as store:
        check_codes(store, fitted if late == "switch" else newer)
        assert store.check() == []


@pytest.mark.usefixtures("without_locks")
@pytest.mark.parametrize("late", ["switch", "compact"])
def test_a_switch_and_compact_at_once_in_milvus(late, new_place, fitted, newer, monkeypatch):
    """Both have read what the store is, and write the same number."""
    place, add = new_place("milvus-lite"), in_milvus.Models._add
    fill(place, fitted)
    with open_store(place) as store, open_store(place) as other:

        def be_late(self, *given):
            monkeypatch.undo()
            monkeypatch.setattr(in_milvus, "CLOSED", 0.1)
            store.compact() if late == "switch" else store.reindex(newer)
            add(self, *given)

        monkeypatch.setattr(in_milvus.Models, "_add", be_late)
        if late == "compact":
            other.compact()
        else:
            with pytest.raises(InputError, match="changed the model of .* or compacted it"):
                other.reindex(newer)
    with open_store(place) as store:
        check_codes(store, fitted if late == "switch" else newer)
        assert store.check() == []


def test_on_every_engine_one_run_at_a_time_changes_the_model(place, fitted):
    with open_store(place, fitted) as store, open_store(place) as other:
        refused = pytest.raises(InputError, match="Another process is learning codes for")
        with store.alone("model", "this test has"), refused:
            other.learn(model=fitted, progress=False)
        other.learn(model=fitted, progress=False)
