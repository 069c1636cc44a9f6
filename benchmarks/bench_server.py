"""The service under load from a second process: searches a second, their times, encoding.

Run: VDSH_DATA=path/to/data python benchmarks/bench_server.py [--documents 1000000]

Documents are those of `bench_words.py`, 22 successive words of posts of 20 Newsgroups, with codes
of 128 bits of linear hashing. `vdsh serve --workers 2` answers; this process asks over kept-alive
connections: by relevance (words and codes together) with a line of held-out posts, as one types,
then with whole posts, and by distance with whole posts. At the held rate, which is the wanted one,
or two thirds of the most where that is too much, requests start on time, whether or not earlier
ones were answered, and a time counts from when a request should have started. `cpu_ms` is what the
service computes for a search: it tells something on a busy machine too.
"""

import asyncio
import json
import os
import re
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from common import cut, line, posts, run, serving, timed
from relevance_tasks import content_words

from vdsh import Document, TextHasher, open_store

WORKERS = 2
CONNECTIONS = 16
BATCH = 100
ROUNDS = 8  # of encoding, library and service in turn
START = 15  # seconds until both workers are ready; the first is after half of this
WANTED = {
    "relevance": {"searches_per_second": 400, "p99_ms": 60, "errors": 0},
    "distance": {"searches_per_second": 300, "p99_ms": 50, "errors": 0},
    "encode_share": 0.5,
}


def measure(given):
    data = posts(given.quick)
    texts, lines = data.test.texts, [line(text) for text in data.test.texts]
    lines = [text for text in lines if len(content_words(text)) > 1]
    kinds = {
        "relevance": searches(lines, "relevance"),
        "relevance, whole posts": searches(texts, "relevance"),
        "distance": searches(texts, "distance"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.store or Path(folder, "store"))
        if not path.exists():
            make_store(path, given.documents, data)
        with open_store(path) as store:
            model, n_documents = store.model, store.count()
        with serving(path, "--workers", WORKERS) as (server, address):
            time.sleep(START)
            found = {
                name: load(server, address, messages, rate, given.seconds)
                for (name, messages), rate in zip(kinds.items(), given.rates, strict=True)
            }
            encoding = compare_encoding(address, model, texts)
    return {
        "documents": n_documents,
        "bits": model.n_bits,
        "workers": WORKERS,
        "connections": CONNECTIONS,
        **found,
        **encoding,
        "wanted": WANTED,
    }


def make_store(path, n, data):
    hasher = TextHasher("linear", n_bits=128, random_state=0).fit(data.train.texts)
    texts = enumerate(cut(data.train.texts, n))
    with open_store(path, hasher) as store:
        store.upsert(Document(f"{i:07d}", text) for i, text in texts)


def searches(texts, rank):
    return [request("/v1/search", {"text": text, "k": 10, "rank": rank}) for text in texts]


def load(server, address, messages, rate, seconds):
    """Find the most searches a second, then hold a rate."""
    asyncio.run(closed_loop(address, messages, 3))  # warm
    most, _ = asyncio.run(closed_loop(address, messages, 10))
    rate = rate if most > 1.05 * rate else round(most * 2 / 3)
    before = cpu_seconds(server.pid)
    held = asyncio.run(open_loop(address, messages, rate, seconds))
    cpu = (cpu_seconds(server.pid) - before) / int(rate * seconds)
    return {"most_searches_per_second": round(most), **held, "cpu_ms": round(1000 * cpu, 2)}


def cpu_seconds(pid):
    """Add up what a process and its children have computed so far, as Linux counts it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(own[11]) + int(own[12])) / os.sysconf("SC_CLK_TCK")
    return seconds + sum(cpu_seconds(child) for child in children)


def request(path, body):
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def ask(connection, message):
    """Send a request, read the answer; return status and body."""
    reader, writer = connection
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(re.search(rb"content-length: (\d+)", head)[1])
    body = await reader.readexactly(size)
    if b"\r\nconnection: close\r\n" in head:
        writer.close()
    return int(head[9:12]), body


async def connect(address, n):
    return [await asyncio.open_connection(address.hostname, address.port) for _ in range(n)]


async def closed_loop(address, messages, seconds, connections=CONNECTIONS):
    """Ask again as soon as there is an answer; return requests a second, and errors."""
    end, done, errors = time.perf_counter() + seconds, 0, 0

    async def client(connection, number):
        nonlocal done, errors
        while time.perf_counter() < end:
            status, _ = await ask(connection, messages[number % len(messages)])
            done, errors, number = done + 1, errors + (status != 200), number + connections
            if connection[1].is_closing():
                (connection,) = await connect(address, 1)

    opened = await connect(address, connections)
    await asyncio.gather(*(client(one, i) for i, one in enumerate(opened)))
    return done / seconds, errors


async def open_loop(address, messages, rate, seconds):
    """Ask at a fixed rate; a request that finds no free connection waits, and its clock runs."""
    free: asyncio.Queue = asyncio.Queue()
    for connection in await connect(address, CONNECTIONS):
        free.put_nowait(connection)
    times, errors = [], 0

    async def one(due, message):
        nonlocal errors
        connection = await free.get()
        status, _ = await ask(connection, message)
        if connection[1].is_closing():  # after 2,000 requests the service asks for another
            (connection,) = await connect(address, 1)
        free.put_nowait(connection)
        times.append(time.perf_counter() - due)
        errors += status != 200

    begin, running = time.perf_counter(), set()
    for i in range(int(rate * seconds)):
        due = begin + i / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(one(due, messages[i % len(messages)]))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    took = time.perf_counter() - begin
    p50, p99 = (round(1000 * float(np.quantile(times, q)), 2) for q in (0.5, 0.99))
    return {
        "seconds": round(took, 1),
        "searches_per_second": round(len(times) / took, 1),
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": round(1000 * max(times), 1),
        "errors": errors,
    }


def compare_encoding(address, model, texts):
    """Encode batches with the library and through the service in turn; documents a second."""
    batches = [texts[i : i + BATCH] for i in range(0, min(40 * BATCH, len(texts)), BATCH)]
    messages = [request("/v1/encode", {"texts": batch}) for batch in batches]
    rates = []
    for _ in range(ROUNDS + 1):
        seconds = timed(lambda: [model.encode(batch) for batch in batches])[1]
        answered, _ = asyncio.run(closed_loop(address, messages, 2, connections=WORKERS))
        rates.append((sum(map(len, batches)) / seconds, answered * BATCH))
    library, service = map(statistics.median, zip(*rates[1:], strict=True))
    return {
        "library_encodes_per_second": round(library),
        "service_encodes_per_second": round(service),
        "encode_share": round(service / library, 2),
    }


if __name__ == "__main__":
    run(measure, documents=1_000_000, seconds=60.0, rates=(400.0, 160.0, 600.0), store=str)
