"""Documents over HTTP as one stream, against `vdsh index` from the same file.

Run: VDSH_DATA=path/to/data python benchmarks/bench_bulk.py [--documents 100000]

A file of JSON lines, 22 successive words of posts of 20 Newsgroups a document, goes into new stores
in turn: by the command `vdsh index`, called in this process without the time that a process takes
to start, and by `POST /v1/documents` of the whole file to `vdsh serve`, which has one worker and
one empty store for each round. The model is LSH of 64 bits, which costs next to nothing: with a
VDSH, which both encode with alike, the shares would be nearer to one. After the last round a file
ten times as long goes to the service, for its memory: the most it had, before and after.
"""

import http.client
import json
import statistics
import tempfile
from pathlib import Path

from common import cut, posts, resident_mb, run, serving, timed
from typer.testing import CliRunner

from vdsh import TextHasher
from vdsh.cli import app
from vdsh.store import open_store


def measure(given):
    texts, n = posts(given.quick).train.texts, given.documents
    rates = {"index": [], "stream": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(folder / "model")
        TextHasher("lsh", n_bits=64, random_state=0).fit(texts).save(model)
        file = write(folder / "docs.jsonl", texts, n)
        long = write(folder / "long.jsonl", texts, 10 * n)
        stores = [folder / f"store-{i}" for i in range(given.rounds + 2)]
        for store in stores:
            open_store(store, model).close()
        with serving(*stores, "--writable") as (server, address):
            for turn in range(given.rounds + 1):  # the first, which warms, does not count
                mine = str(folder / f"indexed-{turn}")
                ways = {"index": (index, model, file, mine)}
                ways["stream"] = (send, address, stores[turn].name, file)
                for way, work in ways.items():
                    seconds = timed(*work)[1]
                    rates[way] += [n / seconds] if turn else []
            before = resident_mb(server.pid, peak=True)
            send(address, stores[-1].name, long)
            after = resident_mb(server.pid, peak=True)
        same = count(stores[0]) == count(folder / "indexed-0") == n
    shares = [mine / other for mine, other in zip(rates["stream"], rates["index"], strict=True)]
    return {
        "documents": n,
        "rounds": given.rounds,
        "index_per_second": round(statistics.median(rates["index"]), -2),
        "stream_per_second": round(statistics.median(rates["stream"]), -2),
        "share": round(statistics.median(shares), 2),
        "shares": [round(share, 2) for share in shares],
        "all_there": same,
        "peak_mb_before_long": round(before),
        "peak_mb_after_long": round(after),
        "wanted": {"share": 0.5},
    }


def write(path, posts, n):
    with path.open("w") as file:
        for i, text in enumerate(cut(posts, n)):
            file.write(json.dumps({"id": f"{i:08d}", "text": text, "year": 1990 + i % 20}) + "\n")
    return path


def index(model, file, store):
    words = ["index", model, str(file), "--store", store, "--quiet"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def send(address, store, file):
    """Send a file as one stream; all of it must be answered."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    connection.blocksize = 2**18
    size = str(file.stat().st_size)
    headers = {"Content-Type": "application/x-ndjson", "Content-Length": size}
    with file.open("rb", buffering=0) as body:
        connection.request("POST", f"/v1/stores/{store}/documents", body, headers)
        last = json.loads(connection.getresponse().read().splitlines()[-1])
    connection.close()
    assert last.get("done"), last


def count(path):
    with open_store(path) as store:
        return store.count()


if __name__ == "__main__":
    run(measure, documents=100_000, rounds=5)
