"""Documents over HTTP as one stream, against `vdsh index` from the same file.

Run: VDSH_DATA=path/to/data python benchmarks/bench_bulk.py [--documents 100000]

A file of JSON lines, 22 successive words of posts of 20 Newsgroups a document, goes into new stores
in turn: by the command `vdsh index`, called in this process without the time that a process takes
to start, and by `POST /v1/documents` of the whole file to `vdsh serve`, which has one worker and
one empty store for each round. The model is LSH of 64 bits, which costs next to nothing: with a
VDSH, which both encode with alike, the shares would be nearer to one. After the last round a file
ten times as long goes to the service, for its memory: the most it had, before and after.
"""

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench_words import cut
from common import save
from typer.testing import CliRunner

from vdsh import TextHasher
from vdsh.cli import app
from vdsh.datasets import load
from vdsh.store import open_store

WANTED = {"share": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    posts = load("20newsgroups").train.texts
    busy = round(os.getloadavg()[0], 2)  # of other work
    rates = {"index": [], "stream": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(folder / "model")
        TextHasher("lsh", n_bits=64, random_state=0).fit(posts).save(model)
        file = write(folder / "docs.jsonl", posts, options.documents)
        long = write(folder / "long.jsonl", posts, 10 * options.documents)
        stores = [folder / f"store-{i}" for i in range(options.rounds + 2)]
        for store in stores:
            open_store(store, model).close()
        with serving(stores) as (server, address):
            for turn in range(options.rounds + 1):  # the first, which warms, does not count
                mine = str(folder / f"indexed-{turn}")
                seconds = {
                    "index": timed(index, model, file, mine),
                    "stream": timed(send, address, stores[turn].name, file),
                }
                for way in rates if turn else ():
                    rates[way].append(options.documents / seconds[way])
            before = peak_mb(server.pid)
            n_lines = send(address, stores[-1].name, long)
            after = peak_mb(server.pid)
        same = count(stores[0]) == count(folder / "indexed-0") == options.documents
    shares = [mine / other for mine, other in zip(rates["stream"], rates["index"], strict=True)]
    result = {
        "documents": options.documents,
        "rounds": options.rounds,
        "index_per_second": round_(statistics.median(rates["index"])),
        "stream_per_second": round_(statistics.median(rates["stream"])),
        "share": round(statistics.median(shares), 2),
        "shares": [round(share, 2) for share in shares],
        "all_there": same,
        "peak_mb_before_long": before,
        "peak_mb_after_long": after,
        "long_documents": 10 * options.documents,
        "long_answer_lines": n_lines,
        "load_before": busy,
    }
    for name, value in result.items():
        print(f"{name:24} {value}")
    save("bulk", result | {"wanted": WANTED})


def round_(value):
    return int(round(value, -2))


def write(path, posts, n):
    with path.open("w") as file:
        for i, text in enumerate(cut(posts, n)):
            file.write(json.dumps({"id": f"{i:08d}", "text": text, "year": 1990 + i % 20}) + "\n")
    return path


def timed(work, *arguments):
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def index(model, file, store):
    words = ["index", model, str(file), "--store", store, "--quiet"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def send(address, store, file):
    """Send a file as one stream; return the lines of the answer, all of which were counted."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    with file.open("rb", buffering=0) as body:
        connection.blocksize = 2**18
        headers = {"Content-Type": "application/x-ndjson", "Content-Length": file.stat().st_size}
        headers = {name: str(value) for name, value in headers.items()}
        connection.request("POST", f"/v1/stores/{store}/documents", body, headers)
        lines = connection.getresponse().read().splitlines()
    connection.close()
    last = json.loads(lines[-1])
    assert last.get("done"), last
    return len(lines)


def count(path):
    with open_store(path) as store:
        return store.count()


def peak_mb(pid):
    """Say how much memory a process had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000)


@contextmanager
def serving(stores):
    command = [sys.executable, "-m", "vdsh", "serve", *map(str, stores), "--writable", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "VDSH_TOKEN"}
    with subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            yield server, urlsplit(re.search(r"http://\S+", server.stdout.readline())[0])
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
