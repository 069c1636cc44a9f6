"""From a folder to answers: `vdsh add` on new, unchanged and changed files, and killed in between.

Run: python benchmarks/bench_add.py

Files are stretches of the sources of Python's library: 5,000 of 4 KB for times, many small ones for
memory, 600 that change for kills. Times are of whole commands. Other work on the machine
shows in the seconds, less in the CPU seconds.
"""

import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from common import VDSH, resident_mb, run, summary, timed

from vdsh.store import open_store

WANTED = {"first answer": 10, "words and codes": 45, "unchanged": 1.5, "one changed": 2}
SIZE, SMALL = 4096, 300  # characters of a file


def measure_files(given):
    """Time a first run, one without changes and one with a changed file."""
    with tempfile.TemporaryDirectory() as place:
        files = write(Path(place, "files"), 200 if given.quick else given.files, SIZE)
        found = {"first run": add(place)}
        found["unchanged"] = add(place)
        files[0].write_text("quokka habitat " + files[0].read_text())
        found["one changed"] = add(place)
        size = sum(file.stat().st_size for file in files)
    rows = [{"run": name, **spent} for name, spent in found.items()]
    return {"files": len(files), "bytes": size, "rows": rows, "wanted_seconds": WANTED}


def measure_many(given):
    """Time a second run over many small files, and its memory."""
    with tempfile.TemporaryDirectory() as place:
        files = write(Path(place, "files"), given.many, SMALL)
        runs = {name: add(place, "--learn", "never") for name in ("first run", "unchanged")}
    rows = [{"run": name, **spent} for name, spent in runs.items()]
    return {"files": len(files), "rows": rows, "wanted_seconds": 10, "wanted_mb": 500}


def measure_kills(given):
    """Kill `vdsh add` anywhere; the store must open and answer, and a last run must finish."""
    rng, n_words = random.Random(0), 0
    with tempfile.TemporaryDirectory() as place:
        files = write(Path(place, "files"), 600, SIZE)
        longest = add(place, "--learn", "now", "--bits", "64")["seconds"]
        kills = 3 if given.quick else given.kills
        for number in range(kills):
            for file in rng.sample(files, 60):
                file.write_text(f"change {number} " + file.read_text())
            learn = "now" if number % 2 else "never"
            kill_after(rng.uniform(0, longest), place, "--learn", learn, "--bits", "64")
            with open_store(f"{place}/store", create=False) as store:
                assert store.search("function"), "the store does not answer"
                assert not (problems := store.check()), problems
                n_words += store.count() == len(files)
        last = add(place, "--learn", "never")
        with open_store(f"{place}/store", create=False) as store:
            texts = {one.id: one.text for one in store}
        assert texts == {f"files/{file.name}": file.read_text() for file in files}
    return {"kills": kills, "answered": kills, "whole": n_words, "last_run": last}


def measure_learning(given):
    """Search a store of words while `vdsh learn` gives it codes; none may fail, nor wait long."""
    with tempfile.TemporaryDirectory() as place:
        write(Path(place, "files"), 200 if given.quick else given.files, SIZE)
        add(place, "--learn", "never")
        with open_store(f"{place}/store") as store:
            quiet = search_until(store, time.perf_counter() + 10)
            process = subprocess.Popen([*VDSH, "learn", "store", "--quiet"], cwd=place)
            meanwhile = search_until(store, lambda: process.poll() is not None)
            assert not process.returncode, "it did not learn"
            assert store.n_bits, "the store has no codes"
    return {"before": quiet, "meanwhile": meanwhile, "wanted": "p99 at most doubled"}


def search_until(store, end):
    """Search one query after the other; each must find something."""
    over = end if callable(end) else lambda: time.perf_counter() > end
    queries = ["open a file for reading", "thread lock", "parse arguments", "socket timeout"]
    seconds = []
    while not over():
        hits, spent = timed(store.search, queries[len(seconds) % len(queries)])
        assert hits, "a search found nothing"
        seconds.append(spent)
    return {"searches": len(seconds), **summary(seconds)}


def write(folder, n, size):
    folder.mkdir()
    sources = sorted(Path(os.__file__).parent.glob("*.py"))
    text, rng = "".join(file.read_text(errors="replace") for file in sources), random.Random(0)
    files = [folder / f"{i:06}.txt" for i in range(n)]
    for file in files:
        first = rng.randrange(len(text) - size)
        file.write_text(text[first : first + size], errors="replace")
    return files


def measure_demo(given):
    """Time `make demo` in a fresh clone with an empty home: the install, `vdsh add`, learning."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["git", "clone", "-q", Path(__file__).parents[1], f"{place}/c"], check=True)
        home = {**os.environ, "HOME": place}
        begin = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=f"{place}/c", env=home, check=True)
        seconds = round(time.perf_counter() - begin, 1)
        with open_store(f"{place}/c/vdsh-demo/store") as store:
            return {"seconds": seconds, "documents": len(store), "wanted_seconds": 90}


def add(place, *words):
    """Run a whole command; say when its first line came, by which all words are there."""
    command = [*VDSH, "add", "store", "files", "--quiet", *words]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    answered, mb = time.perf_counter() - start, 0.0
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        mb = max(mb, resident_mb(process.pid, peak=True))  # rusage counts what this process has
        time.sleep(0.01)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.stdout.close()
    assert not status, f"{command} failed"
    spent = {"answers_after": answered, "seconds": seconds}
    spent["cpu_seconds"] = usage.ru_utime + usage.ru_stime
    return {k: round(v, 2) for k, v in spent.items()} | {"mb": round(mb)}


def kill_after(seconds, place, *words):
    command = [*VDSH, "add", "store", "files", "--quiet", *words]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=place, **silent, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    parts = {"files": measure_files, "many": measure_many, "kills": measure_kills}
    parts |= {"learning": measure_learning, "demo": measure_demo}
    run(parts, files=5_000, many=100_000, kills=100)
