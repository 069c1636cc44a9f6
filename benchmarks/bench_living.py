"""A store that lives: a new model under it, killed in the middle, and copies while others write.

Run: VDSH_DATA=path/to/data python benchmarks/bench_living.py [--only large kills_folder
     kills_postgres kills_milvus steps_folder steps_postgres steps_milvus]
     [--documents 1000000] [--kills 200] [--steps 10000]

Documents are posts of 20 Newsgroups cut to twelve words and numbered. Models are random
hyperplanes of 32 and 64 bits: what encodes fast leaves least to hide behind.

`kills`: a process that gives a small store a new model is killed at a random moment. Then another
one looks at the store: `check`, every code against the one model that the store names, a search.
Then the run is started again and must end with the new model. Batches are of 100 documents, so that
there are many moments between two transactions.

`steps`: three processes write, delete, search, reindex, compact, back up and restore at once, and in
a quarter of the rounds one of them is killed (`tests/processes.py`). All that was acknowledged must
be there, every code its model's, and `check` clean; what is not so is a fault.

`large`: writing all documents with the second model (encoding included) against reindexing a store
that has them; searches at a fixed rate in another process, before and during; a backup while a
third process writes 1,000 documents a second. Times of the processor stand beside those of the
clock, which are long where others use the machine.
"""

import multiprocessing
import os
import random
import signal
import tempfile
import time
import traceback
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from common import posts, run, summary, timed

from processes import Processes, save_models
from servers import MilvusServer, PostgresServer
from vdsh import Document, TextHasher, open_store
from vdsh.model import as_model
from vdsh.store import reindex, restore_store

SMALL = 2000  # documents of the store whose process is killed
MOMENTS = 100  # documents in a batch there
KILLS = {"folder": 1, "postgres": 4, "milvus": 10}  # of so many kills one: servers are slow
RATE = 20  # searches a second
WRITTEN = 1000  # documents a second during the backup
QUERIES = ["space shuttle launch", "hockey playoff goals", "windows driver for my printer",
           "selling an old car", "god and faith", "encryption keys and the government"]  # fmt: skip
spawn = multiprocessing.get_context("spawn")


@contextmanager
def ready(given, engine):
    """Give a place for a store, a folder, two models and texts."""
    texts = [" ".join(text.split()[:12]) for text in posts(given.quick).train.texts]
    texts = [text for text in texts if len(text) > 20]
    models = [
        as_model(TextHasher("lsh", n_bits=n_bits, random_state=n_bits).fit(texts))
        for n_bits in (32, 64)
    ]
    with tempfile.TemporaryDirectory() as folder:
        places = {"folder": f"{folder}/store", "milvus": f"milvus-lite:{folder}/store.db"}
        server = PostgresServer() if engine == "postgres" else None
        try:
            place = server.store_url("living") if server else places[engine]
            yield place, Path(folder), models, texts
        finally:
            if server:
                server.remove()


# -- kills ----------------------------------------------------------------------------------------


def kill_often(engine, given):
    """Kill a run again and again; every process is forked from this one, which opens no store."""
    reindex.BATCH = MOMENTS
    wanted = max(1, (5 if given.quick else given.kills) // KILLS[engine])
    with ready(given, engine) as (place, _, models, texts):
        texts = texts[:SMALL]
        codes = {model.fingerprint: model.encode(texts) for model in models}
        in_child(lambda: fill(place, models[0], documents(len(texts), texts)))
        rng, found = random.Random(0), {"old": 0, "new": 0}
        lengths, n_rounds, started = [], 0, time.perf_counter()
        while sum(found.values()) < wanted:
            n_rounds += 1
            old, new = models[(n_rounds + 1) % 2], models[n_rounds % 2]
            limit = 1.1 * float(np.median(lengths)) if lengths else 1.0
            killed = start_and_kill(place, new, rng.uniform(0, limit))
            now = in_child(lambda old=old, new=new: look(place, (new, old), codes, texts))
            if killed:
                found["new" if now else "old"] += 1
            begun = time.perf_counter()
            in_child(lambda new=new: finish(place, new))
            lengths.append(time.perf_counter() - begun)
            in_child(lambda new=new: look(place, (new,), codes, texts))
        seconds = time.perf_counter() - started
    return {
        "documents": len(texts),
        "documents_in_a_batch": MOMENTS,
        "kills": sum(found.values()),
        "had_the_old_model_then": found["old"],
        "had_the_new_model_then": found["new"],
        "rounds_that_ended_before_they_were_killed": n_rounds - sum(found.values()),
        "two_kinds_or_failed_checks": 0,  # each would have ended this script
        "runs_that_did_not_finish_when_started_again": 0,
        "seconds_each": round(seconds / n_rounds, 2),
    }


def fill(place, model, some):
    with open_store(place, model) as store:
        store.upsert(some)


def finish(place, model):
    with open_store(place) as store:
        store.reindex(model)


def look(place, models, codes, texts):
    """Hold every code of a store against the model that it names; say whether it is the first."""
    with open_store(place) as store:
        name = store.model.fingerprint
        assert name in {model.fingerprint for model in models}, "another model"
        assert store.check() == [], store.check()
        ids, found = zip(*store.codes(), strict=True)
        assert sum(map(len, ids)) == len(texts)
        assert np.array_equal(np.concatenate(found), codes[name]), "codes of another model"
        assert len(store.search(QUERIES[0])) == 10
        return name == models[0].fingerprint


def start_and_kill(place, model, after):
    """Start a run and kill it; say whether it was still at work."""
    child = os.fork()
    if not child:
        try:
            finish(place, model)
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def in_child(work):
    """Do something in a fork; raise where it fails, else return whether it was true."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() in (None, True) else 3)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 3), f"a child ended with {code}"
    return code == 0


# -- several processes ----------------------------------------------------------------------------


def step(engine, given):
    """Take many steps with several processes; a fault ends it."""
    with tempfile.TemporaryDirectory() as folder:
        servers = {"postgres": PostgresServer, "milvus": lambda: MilvusServer(Path(folder, "db"))}
        server = servers[engine]() if engine in servers else None
        place = server.store_url("steps") if server else f"{folder}/store"
        whole, local = engine != "milvus", engine == "folder"
        try:
            with Processes(place, save_models(folder), whole=whole, local=local) as processes:
                _, seconds = timed(processes.run, given.steps // KILLS[engine])
        finally:
            if server:
                server.remove()
    names = ("steps", "kills", "refused", "faults")
    return {name: getattr(processes, name) for name in names} | {"seconds": round(seconds)}


# -- many documents -------------------------------------------------------------------------------


def live(given):
    """Reindex many documents, search them meanwhile, copy them while others write."""
    n, busy = given.documents, [os.getloadavg()[0]]
    with ready(given, "folder") as (place, folder, models, texts):
        fill(place, models[0], documents(n, texts))
        other = str(folder / "other")
        write = timed(fill, other, models[1], documents(n, texts))[1]
        with open_store(place) as store:
            alone = timed(store.reindex, models[1])[1]
            quiet = searches(place, lambda: time.sleep(3 if given.quick else 30))
            during = searches(place, store.reindex)
            problems = store.check()
        busy.append(os.getloadavg()[0])
        backup = copied(place, folder, texts)
    return {
        "documents": n,
        "encode_and_write_seconds": round(write, 1),
        "reindex_seconds": round(alone, 1),
        "reindex_ratio": round(alone / write, 2),
        "wanted_ratio": 1.3,
        "searches_before": quiet,
        "searches_during": during,
        "p99_ratio": round(during["p99_ms"] / quiet["p99_ms"], 2),
        "wanted_p99_ratio": 2,
        "p99_ratio_of_processor_time": round(during["p99_cpu_ms"] / quiet["p99_cpu_ms"], 2),
        "problems_after": problems,
        "backup": backup,
        "load_of_the_machine": [round(value, 1) for value in busy],
    }


def searches(path, work):
    """Search in another process while something is done here."""
    ready, stop = spawn.Event(), spawn.Event()
    asked, answers = spawn.Pipe(duplex=False)
    process = spawn.Process(target=search_on, args=(str(path), ready, stop, answers))
    process.start()
    ready.wait()
    seconds = timed(work)[1]
    stop.set()
    times, computed, failed = asked.recv()
    process.join()
    found = summary(times)
    return {
        "seconds": round(seconds, 1),
        "searches": len(times),
        "failed": failed,
        "p50_ms": found["median_ms"],
        "p99_ms": found["p99_ms"],
        "p99_cpu_ms": summary(computed)["p99_ms"],
    }


def search_on(path, ready, stop, answers):
    times, computed, failed = [], [], 0
    with open_store(path) as store:
        for query in QUERIES:
            store.search(query)
        ready.set()
        while not stop.is_set():
            begun, before = time.perf_counter(), time.process_time()
            try:
                failed += len(store.search(QUERIES[len(times) % len(QUERIES)])) != 10
            except Exception:
                traceback.print_exc()
                failed += 1
            times.append(time.perf_counter() - begun)
            computed.append(time.process_time() - before)
            time.sleep(max(0, 1 / RATE - times[-1]))
    answers.send((times, computed, failed))


def copied(path, folder, texts):
    """Back a store up while another process writes to it; look for what was written before."""
    stop, acknowledged = spawn.Event(), spawn.Value("q", 0)
    writer = spawn.Process(target=write_on, args=(str(path), texts, stop, acknowledged))
    writer.start()
    while acknowledged.value < 3 * WRITTEN:
        time.sleep(0.05)
    with open_store(path) as store:
        before, begun = acknowledged.value, time.perf_counter()
        store.back_up(folder / "copy.vdsh")
        seconds, after = time.perf_counter() - begun, acknowledged.value
    stop.set()
    writer.join()
    with restore_store(folder / "copy.vdsh", folder / "again") as copy:
        missing = sum(copy.get(f"new-{i:08}") is None for i in range(before))
        return {
            "seconds": round(seconds, 1),
            "written_a_second_meanwhile": round((after - before) / seconds),
            "documents_in_the_copy": copy.count(),
            "acknowledged_before_and_missing": missing,
            "problems": copy.check(),
            "bytes": (folder / "copy.vdsh").stat().st_size,
        }


def write_on(path, texts, stop, acknowledged):
    """Write 1,000 documents a second, a hundred at a time."""
    with open_store(path) as store:
        begun, n = time.perf_counter(), 0
        while not stop.is_set():
            some = [Document(f"new-{i:08}", texts[i % len(texts)]) for i in range(n, n + 100)]
            n += store.upsert(some)
            acknowledged.value = n
            time.sleep(max(0, begun + n / WRITTEN - time.perf_counter()))


def documents(n, texts):
    for i in range(n):
        yield Document(f"post-{i:08}", texts[i % len(texts)], None, {"year": 1980 + i % 40})


if __name__ == "__main__":
    parts = {f"kills_{engine}": partial(kill_often, engine) for engine in KILLS}
    parts |= {f"steps_{engine}": partial(step, engine) for engine in KILLS}
    run({"large": live} | parts, documents=1_000_000, kills=200, steps=10_000)
