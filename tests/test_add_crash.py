"""kill -9 while files are added: one more run, and the store holds what the files hold."""

import json
import multiprocessing
import random
import time

import pytest

from vdsh.adding import add_files
from vdsh.adding import run as run_module
from vdsh.store import open_store

KILLS = 10
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["vdsh.adding", "vdsh.store.engines.sqlite"])


def change(folder, table, number):
    """Write, replace and remove files and records, others each time; return all their texts."""
    rng = random.Random(number)
    for i in rng.sample(range(400), 150):
        (folder / f"{i:03}.txt").write_text(f"moon {number} {i}")
    for path in rng.sample(sorted(folder.glob("*.txt")), 30):
        path.unlink()
    records = {f"r{i}": f"rocket {rng.randrange(3)} {i}" for i in rng.sample(range(400), 300)}
    lines = [json.dumps({"id": id, "text": text}) for id, text in records.items()]
    table.write_text("\n".join(lines))
    return records | {f"files/{path.name}": path.read_text() for path in folder.glob("*.txt")}


def add(place, paths, log):
    """Add files in small batches; write a line to the log after each."""
    run_module.LONG_BATCH = 300  # characters
    with open_store(place) as store, log.open("a") as file:

        def progress(n):
            file.write(f"{n}\n")
            file.flush()

        add_files(store, paths, progress=progress)


@pytest.mark.slow
def test_files_are_all_there_after_a_run_that_was_killed_and_another(tmp_path):
    folder, table, log = tmp_path / "files", tmp_path / "table.jsonl", tmp_path / "log"
    folder.mkdir()
    log.touch()
    rng = random.Random(int(time.time()))
    n_killed = 0
    for number in range(KILLS):
        expected = change(folder, table, number)
        size = log.stat().st_size
        process = FORK.Process(target=add, args=(tmp_path / "store", [folder, table], log))
        process.start()
        deadline = time.monotonic() + 30
        while log.stat().st_size == size and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.3))
        n_killed += process.is_alive()
        process.kill()
        process.join()
        with open_store(tmp_path / "store") as store:
            add_files(store, [folder, table])
            assert {one.id: one.text for one in store} == expected
            assert store.check() == []
            assert add_files(store, [folder, table]).unchanged == len(expected)
    assert n_killed >= KILLS // 2
