"""A store that lives: several processes that are killed, a new model, copies while others write.

Run: VDSH_DATA=path/to/data python benchmarks/bench_living.py [--only large steps_folder
     steps_postgres steps_milvus] [--documents 1000000] [--steps 10000]

Documents are posts of 20 Newsgroups cut to twelve words and numbered. Models are random
hyperplanes of 32 and 64 bits: what encodes fast leaves least to hide behind.

`steps`: three processes write, delete, search, reindex, compact, back up and restore at once; in
a quarter of the rounds one of them is killed (`tests/processes.py`). All that was acknowledged must
be there, every code its model's, and `check` clean; what is not so is a fault.

`large`: writing all documents with the second model (encoding included) against reindexing a store
that has them; searches at a fixed rate in another process, before and during; a backup while a
third process writes 1,000 documents a second. Times are of the clock and of the processor.
"""

import multiprocessing
import os
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

from common import posts, run, summary, timed

from processes import Processes, save_models
from servers import MilvusServer, PostgresServer
from vdsh import Document, TextHasher, open_store
from vdsh.model import as_model
from vdsh.store import restore_store

RATE = 20  # searches a second
WRITTEN = 1000  # documents a second during the backup
QUERIES = ["space shuttle launch", "hockey playoff goals", "windows driver for my printer",
           "selling an old car", "god and faith", "encryption keys and the government"]  # fmt: skip
spawn = multiprocessing.get_context("spawn")


def ready(given):
    """Return texts and two models."""
    texts = [" ".join(text.split()[:12]) for text in posts(given.quick).train.texts]
    texts = [text for text in texts if len(text) > 20]
    return texts, [
        as_model(TextHasher("lsh", n_bits=n_bits, random_state=n_bits).fit(texts))
        for n_bits in (32, 64)
    ]


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
                _, seconds = timed(processes.run, given.steps)
        finally:
            if server:
                server.remove()
    counted = {name: getattr(processes, name) for name in ("steps", "kills", "refused", "faults")}
    return counted | {"seconds": round(seconds)}


# -- many documents -------------------------------------------------------------------------------


def fill(place, model, some):
    with open_store(place, model) as store:
        store.upsert(some)


def live(given):
    """Reindex many documents, search them meanwhile, copy them while others write."""
    n, busy = given.documents, [os.getloadavg()[0]]
    texts, models = ready(given)
    with tempfile.TemporaryDirectory() as name:
        place, folder = f"{name}/store", Path(name)
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
    parts = {
        f"steps_{engine}": partial(step, engine) for engine in ("folder", "postgres", "milvus")
    }
    run({"large": live} | parts, documents=1_000_000, steps=10_000)
