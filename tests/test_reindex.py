"""A new model under an old store: old codes until the switch, one kind of codes at any time."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from threading import Event, Thread

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from conftest import toy_corpus
from vdsh import Document, TextHasher, VectorHasher, open_store
from vdsh.cli import app
from vdsh.codes import from_hex, to_hex
from vdsh.errors import FolderError, InputError, VdshError
from vdsh.model import as_model
from vdsh.server.app import create_app
from vdsh.store import restore_store
from vdsh.store.engine import ModelChangedError
from vdsh.store.engines.sqlite import models, words
from vdsh.store.engines.sqlite.cache import IndexCache


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    texts, labels = toy_corpus()
    hasher = TextHasher(n_bits=32, epochs=3, hidden_size=16, batch_size=16, random_state=1)
    return hasher.fit(texts)


@pytest.fixture
def folder(tmp_path, fitted, corpus):
    texts, _ = corpus
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document(f"{i:04}", texts[i % len(texts)]) for i in range(4500)])
    return tmp_path / "store"


def third():
    return TextHasher("lsh", n_bits=32, random_state=3).fit(toy_corpus()[0])


def check_codes(store, hasher):
    """Every code is the one that the model makes."""
    assert store.model.fingerprint == as_model(hasher).fingerprint
    for documents, codes in store.entries():
        assert np.array_equal(codes, hasher.encode([document.text for document in documents]))


def words_of(hits):
    return [sorted(hit.words) for hit in hits]


def test_all_codes_are_of_the_new_model(folder, fitted, newer):
    seen = []
    with open_store(folder) as store:
        before = store.search("orbit moon")
        store.reindex(newer, progress=seen.append)
        check_codes(store, newer)
        assert store.info()["bits"] == 32
        assert words_of(store.search("orbit moon")) == words_of(before)
        assert store.check() == []
    assert sum(seen) <= 4500
    with open_store(folder) as store:
        check_codes(store, newer)
        store.reindex()  # back
        check_codes(store, fitted)
        assert store.search("orbit moon") == before


def test_open_handles_follow(folder, newer):
    with open_store(folder) as reader, open_store(folder) as writer, open_store(folder) as other:
        reader.search("orbit moon")
        writer.upsert([Document("a", "goal referee")])
        other.reindex(newer)
        hits = reader.search("orbit moon", rank="distance")
        assert all(len(hit.code) == 8 for hit in hits)
        assert len(reader.within("orbit moon", 32)) == 4501
        writer.upsert([Document("b", "goal referee stadium")])
        check_codes(reader, newer)
        check_codes(writer, newer)


def test_handles_that_never_ask_for_codes_follow_too(folder, newer):
    with open_store(folder) as store:
        handles = [open_store(folder) for _ in range(4)]
        pages, codes = handles[0].documents(2000), handles[0].codes(2000)
        assert len(next(pages)) == len(next(codes)[0]) == 2000
        handles[1].count()
        store.reindex(newer)
        assert handles[3].check() == []
        assert handles[1].delete(["0000"]) == 1
        assert sum(len(documents) for documents in handles[2].documents()) == 4499
        with pytest.raises(VdshError, match="another model"):  # two kinds would be in one list
            next(codes)
        assert sum(map(len, pages)) == 2500
        check_codes(handles[0], newer)
        for handle in handles:
            handle.close()


def test_who_follows_makes_no_index(folder, newer, monkeypatch):
    """The index of the new codes lies there, and words are read once: a search need not wait."""
    made = []
    with open_store(folder) as store, open_store(folder) as reader:
        before = words_of(reader.search("orbit moon"))
        store.reindex(newer)
        monkeypatch.setattr(IndexCache, "_build", lambda *_: made.append("codes"))
        monkeypatch.setattr(words, "_read_segment", lambda *_: made.append("words"))
        assert words_of(reader.search("orbit moon")) == before
        assert not made
        assert len(list(folder.glob("index-*"))) == 1


def test_codes_of_the_old_model_are_refused(folder, fitted, newer):
    code = fitted.encode(["orbit moon"])
    with open_store(folder) as store, open_store(folder) as other:
        other.reindex(newer)
        with pytest.raises(InputError, match="32-bit codes"):
            store.search(code[0])
        with pytest.raises(InputError):
            store.upsert([Document("a", "goal")], codes=code)
        store.reindex(third(), restart=True)
        with pytest.raises(VdshError, match="another model"):
            other.upsert([Document("a", "goal")], codes=newer.encode(["goal"]))
        assert store.get("a") is None


def test_writes_and_searches_meanwhile(folder, fitted, newer):
    stop, problems, written = Event(), [], []

    def work():
        try:
            with open_store(folder) as store:
                while not stop.is_set():
                    id = f"new-{len(written):04}"
                    store.upsert([Document(id, "referee stadium goal")])
                    written.append(id)
                    store.delete([f"{len(written):04}"])
                    assert store.search("orbit moon")
        except BaseException as error:
            problems.append(error)

    thread = Thread(target=work)
    thread.start()
    with open_store(folder) as store:
        for hasher in (newer, fitted, newer):
            store.reindex(hasher)
    stop.set()
    thread.join()
    assert not problems
    with open_store(folder) as store:
        check_codes(store, newer)
        assert {id for ids, _ in store.codes() for id in ids} >= set(written)
        assert store.check() == []


def test_two_at_once(folder, fitted, newer):
    def stop(_):
        raise KeyboardInterrupt

    with open_store(folder) as store:
        with pytest.raises(KeyboardInterrupt):
            store.reindex(newer, progress=stop)
        check_codes(store, fitted)
        with pytest.raises(InputError, match="being encoded with another model"):
            store.reindex(third())
        store.reindex(third(), restart=True)
        check_codes(store, third())


def test_it_goes_on_where_it_stopped(folder, fitted, newer):
    def stop(_):
        raise KeyboardInterrupt

    seen = []
    with open_store(folder) as store:
        with pytest.raises(KeyboardInterrupt):
            store.reindex(newer, progress=stop)
    with open_store(folder) as store:
        check_codes(store, fitted)
        store.reindex(newer, progress=seen.append)
        check_codes(store, newer)
    assert sum(seen) == 4500 - 2000


@pytest.mark.slow
def test_killed_anywhere_the_store_has_one_model(folder, fitted, newer, tmp_path):
    newer.save(tmp_path / "newer")
    script = f"import vdsh; vdsh.open_store({str(folder)!r}).reindex({str(tmp_path / 'newer')!r})"
    for i in range(8):
        process = subprocess.Popen([sys.executable, "-c", script])
        time.sleep(0.2 + 0.15 * i)
        process.kill()
        process.wait()
        with open_store(folder) as store:
            bits = store.info()["bits"]
            check_codes(store, newer if bits == 32 else fitted)
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ)
    with open_store(folder) as store:
        check_codes(store, newer)
        assert store.check() == []


def test_a_backup_has_the_new_model(folder, newer, tmp_path):
    with open_store(folder) as store:
        store.reindex(newer)
        store.back_up(tmp_path / "copy")
    with restore_store(tmp_path / "copy", tmp_path / "again") as store:
        check_codes(store, newer)


def test_compacting_forgets_the_model_before(folder, newer):
    with open_store(folder) as store:
        store.reindex(newer)
        store.compact()
        base = sqlite3.connect(folder / "store.sqlite")
        kept = base.execute("SELECT DISTINCT fingerprint FROM models").fetchall()
        base.close()
        assert kept == [(as_model(newer).fingerprint,)]
        with pytest.raises(InputError, match="no earlier model"):
            store.reindex()
    with open_store(folder) as store:
        check_codes(store, newer)


@pytest.mark.parametrize("kind", ["nothing", "broken", "untrained", "vectors"])
def test_what_is_no_model_changes_nothing(folder, fitted, tmp_path, kind):
    given = tmp_path / "given"
    if kind == "broken":
        fitted.save(given)
        (given / "weights.safetensors").write_bytes(b"half")
    if kind == "untrained":
        given = TextHasher()
    if kind == "vectors":
        given = VectorHasher(16, model="lsh").fit(np.random.default_rng(0).normal(size=(50, 8)))
    with open_store(folder) as store:
        with pytest.raises(VdshError):
            store.reindex(given)
        check_codes(store, fitted)


@pytest.mark.posix("limits the size of files")
def test_a_full_disk_changes_nothing(folder, fitted, newer):
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_store(folder) as store:
        reopen = store._reopen

        def full():
            engine = reopen()
            base = engine._database._connection
            (pages,) = base.execute("PRAGMA page_count").fetchone()
            base.execute(f"PRAGMA max_page_count = {pages + 2}")
            return engine

        store._reopen = full
        with pytest.raises(VdshError, match="free space"):
            store.reindex(newer)
        check_codes(store, fitted)
        store._reopen = reopen
        for limit in (1000, 30_000):  # already for the model, or for the codes
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
            try:
                with pytest.raises(VdshError, match="Could not write|could not|full|I/O"):
                    store.reindex(third(), restart=True)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            check_codes(store, fitted)
        store.reindex(newer, restart=True)
        check_codes(store, newer)
        assert store.check() == []


def test_two_processes_at_once(folder, newer):
    """One of them wins; the store has one model, whichever that is."""
    ended = []

    def work(hasher):
        with open_store(folder) as store:
            try:
                store.reindex(hasher, restart=True)
                ended.append(hasher)
            except InputError as error:
                assert "Another process" in str(error)

    hashers = [newer, third(), newer]
    threads = [Thread(target=work, args=(hasher,)) for hasher in hashers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_store(folder) as store:
        now = store.model.fingerprint
        check_codes(store, next(one for one in ended if as_model(one).fingerprint == now))
        assert store.check() == []


def test_who_begins_anew_in_the_middle_leaves_no_hole(folder, newer, monkeypatch):
    """The second batch was written into the table of another run, which had not the first."""
    put_codes, calls = models.Models.put_codes, []

    def interrupted(own, *given):
        calls.append(given)
        if len(calls) == 2:
            for hasher in (third(), newer):
                own.begin(as_model(hasher), restart=True)
        put_codes(own, *given)

    monkeypatch.setattr(models.Models, "put_codes", interrupted)
    with open_store(folder) as store:
        store.reindex(newer)
        check_codes(store, newer)
    assert len(calls) > 2


def test_a_strange_earlier_model_is_refused(folder, newer):
    with open_store(folder) as store:
        store.reindex(newer)
    base = sqlite3.connect(folder / "store.sqlite")
    with base:
        base.execute("UPDATE meta SET value = '../other' WHERE key = 'previous'")
    base.close()
    with pytest.raises(FolderError, match="its previous is '../other'"):
        open_store(folder)


def test_the_command(folder, newer, tmp_path):
    newer.save(tmp_path / "newer")

    def run(*arguments):
        return CliRunner().invoke(app, ["reindex", str(folder), *arguments])

    assert "Give a model" in run().output
    assert "No model at" in run("--model", str(tmp_path / "nothing")).output
    done = run("--model", str(tmp_path / "newer"), "--quiet", "--json")  # #32
    assert json.loads(done.stdout)["fingerprint"] == newer.model_.fingerprint
    with open_store(folder) as store:
        check_codes(store, newer)
    assert run("--back", "--quiet").exit_code == 0


def test_a_running_service_follows(folder, newer):
    with TestClient(create_app(folder, writable=True), base_url="http://127.0.0.1:8000") as client:
        before = client.post("/v1/search", json={"text": "orbit moon"}).json()
        with open_store(folder) as store:
            store.reindex(newer)
        after = client.post("/v1/search", json={"text": "orbit moon", "highlight": True}).json()
        explained = client.post("/v1/explain", json={"text": "orbit moon"}).json()
        assert explained["code"] == after["code"], "also by the handle that has not searched since"
        assert (len(before["code"]), len(after["code"])) == (4, 8)
        again = client.post("/v1/search", json={"text": "orbit moon", "highlight": True}).json()
        assert again["code"] == to_hex(newer.encode(["orbit moon"]))[0]
        assert [hit["id"] for hit in again["hits"]] == [hit["id"] for hit in after["hits"]]
        new = {"documents": [{"id": "new", "text": "referee goal"}]}
        with open_store(folder) as store:
            store.reindex(third())
        assert client.post("/v1/documents", json=new).json() == {"written": 1}
        with open_store(folder) as store:
            check_codes(store, third())
        like = client.post("/v1/search", json={"id": "0007"})
        assert like.status_code == 200 and like.json()["hits"][0]["distance"] == 0


# -- #31 A2, A3: threads of one handle, compact and backups beside a reindex -----------------------


def test_threads_of_one_store_never_mix_models(tmp_path, fitted, newer):
    """105 of 71,156 codes were of the other model: another thread's look made the check pass."""
    texts, models_ = toy_corpus()[0], [fitted, newer, third()]
    ended, problems, written = Event(), [], [[] for _ in range(3)]
    with open_store(tmp_path / "store", fitted) as store:
        store.upsert([Document(f"old-{i:03}", texts[i % 80]) for i in range(300)])

        def write(number):
            try:
                while not ended.is_set():
                    ids = [f"{number}-{len(written[number]) + i:05}" for i in range(5)]
                    store.upsert([Document(id, texts[len(id) + i]) for i, id in enumerate(ids)])
                    written[number] += ids
                    assert store.search(texts[number], k=3, rank="distance")
            except BaseException as error:
                problems.append(error)

        threads = [Thread(target=write, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        with open_store(tmp_path / "store") as other:
            for turn in range(9):
                (other if turn % 2 else store).reindex(models_[(turn + 1) % 3])
        ended.set()
        for thread in threads:
            thread.join()
        assert not problems
        check_codes(store, models_[0])
        assert {id for ids, _ in store.codes() for id in ids} >= {*sum(written, [])}
        assert store.check() == []
    open_store(tmp_path / "store").close()


def test_what_another_thread_learns_of_the_model_lets_no_old_code_pass(folder, newer, monkeypatch):
    """Between encoding and writing the store gets another model, and another thread follows."""
    with open_store(folder) as store:
        encode, times = as_model(store.model).encode_and_count, []

        def encode_slowly(*given):
            codes = encode(*given)
            if not times:
                times.append(1)
                store.reindex(newer)
                assert store.search("moon")  # as another thread's: this handle has the new model
            return codes

        monkeypatch.setattr(store.model, "encode_and_count", encode_slowly)
        store.upsert([Document("late", "goal referee")])
        assert times
        check_codes(store, newer)
        assert store.check() == []


def test_a_text_is_compared_with_codes_of_its_own_model(folder):
    """Another handle puts a model of the same length under the store; this one follows."""
    same = TextHasher("lsh", n_bits=16, random_state=5).fit(toy_corpus()[0])
    with open_store(folder) as store, open_store(folder) as other:
        old = store.model.fingerprint
        other.reindex(same)
        hits = store.search("orbit moon", rank="distance")
        code = same.model_.encode(["orbit moon"])
        distances = [int(np.bitwise_count(from_hex([hit.code]) ^ code).sum()) for hit in hits]
        assert [hit.distance for hit in hits] == distances
        for read in (store._engine.page, store._engine.code_page):
            with pytest.raises(ModelChangedError):
                read("", 5, old)


def test_searches_of_the_handle_go_on_while_it_is_reindexed(folder, newer):
    answered = []

    def search(_):
        thread = Thread(target=lambda: answered.append(store.search("moon", rank="distance")))
        thread.start()
        thread.join(20)
        assert not thread.is_alive()

    with open_store(folder) as store:
        store.reindex(newer, progress=search)
    assert all(answered) and len(answered) > 2


def test_compact_beside_a_starting_reindex_leaves_a_model(folder, newer):
    """It removed the files of the new model before the database knew of it; both ended well."""
    begun = []

    def compact(*_):
        if not begun:
            begun.append(1)
            with (
                open_store(folder) as other,
                pytest.raises(InputError, match="Another process is learning codes for, encoding"),
            ):
                other.compact()

    with open_store(folder) as store:
        store.reindex(newer, progress=compact)
        check_codes(store, newer)
        store.compact()
    with open_store(folder) as store:
        assert store.search("moon") and store.check() == []


def test_a_backup_across_reindex_and_compact_has_its_model(folder, fitted, newer, tmp_path):
    """The database was copied before the folders of models, which were others by then."""
    done = []

    def change(_, __):
        if not done:
            done.append(1)
            with open_store(folder, wait=1) as other:
                other.reindex(newer)
                other.compact()

    with open_store(folder) as store:
        store.back_up(tmp_path / "copy", progress=change)
    with restore_store(tmp_path / "copy", tmp_path / "again") as store:
        check_codes(store, fitted)
        assert store.search("orbit moon") and store.check() == []


def test_a_store_is_one_file_beside_its_index(folder):
    names = {path.name.partition("-")[0] for path in folder.iterdir()}
    assert names == {"store.sqlite", "index"}


@pytest.mark.parametrize("second", ["learn", "reindex", "compact"])
def test_while_a_store_learns_no_other_run_changes_its_model(folder, fitted, corpus, second):
    other = TextHasher("lsh", 8, random_state=1).fit(corpus[0])
    with open_store(folder, fitted) as store, open_store(folder) as again:
        store.upsert([Document(f"{i:03}", text) for i, text in enumerate(corpus[0])])
        works = {
            "learn": lambda: again.learn(model=other, progress=False),
            "reindex": lambda: again.reindex(other),
            "compact": again.compact,
        }
        refused = []

        def meanwhile(_):
            with pytest.raises(InputError, match="Another process is learning .* Try again when"):
                works[second]()
            refused.append(second)

        new = TextHasher("lsh", 24, random_state=2).fit(corpus[0])
        store.reindex(new, progress=meanwhile)
        assert refused and store.n_bits == 24
        works[second]()  # now nobody else does
        assert again.check() == []


def test_of_two_processes_that_learn_one_is_refused(folder, fitted, corpus):
    code = (
        "import sys\nfrom vdsh import open_store\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    store.learn(bits=int(sys.argv[2]), method='lsh', progress=False)"
    )
    with open_store(folder, fitted) as store:
        store.upsert([Document(f"{i:03}", text) for i, text in enumerate(corpus[0])])
        with store.alone("model", "this test holds"):
            command = [sys.executable, "-c", code, str(folder), "24"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "Another process is learning" in done.stderr
        assert store.n_bits == fitted.n_bits
        subprocess.run(command, capture_output=True, check=True)
        assert len(store.search("orbit", 1)) == 1 and store.n_bits == 24
