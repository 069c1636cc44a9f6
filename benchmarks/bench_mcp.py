"""An assistant at work: searches a second on one connection, over pipes and over HTTP.

Run: VDSH_DATA=path/to/data python benchmarks/bench_mcp.py

The store holds the posts of 20 Newsgroups with a code of 32 bits each. The SDK's own client asks
one search after the other, a line of a held-out post each, 10 hits with their passages; it runs on
the same two cores. `cpu_ms` is what client and server compute for a search: it tells something on a
busy machine too.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import mcp
import numpy as np
import psutil
from common import line, posts, run, serving
from mcp.client.stdio import StdioServerParameters

from vdsh import Document, TextHasher, open_store

WANTED = {"searches_per_second": 50}


def measure(given):
    data = posts(given.quick)
    lines = [text for text in map(line, data.test.texts) if len(text.split()) > 2]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        with open_store(path, TextHasher("lsh", 32, random_state=0).fit(data.train.texts)) as store:
            texts = enumerate(data.train.texts)
            store.upsert(Document(f"{i:05d}", text) for i, text in texts)
        arguments = ["-m", "vdsh", "mcp", str(path)]
        pipes = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        found = {"documents": len(data.train.texts)}
        found["pipes"] = asyncio.run(ask(pipes, lines, given.seconds))
        with serving(path) as (_, address):
            found["http"] = asyncio.run(ask(f"{address.geturl()}/mcp", lines, given.seconds))
    return found | {"wanted": WANTED}


def cpu_seconds():
    """Add up what this process and its children have computed so far."""
    own = psutil.Process()
    times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


async def ask(server, lines, seconds):
    began, times = time.perf_counter(), []
    async with mcp.Client(server, read_timeout_seconds=60) as client:
        started = time.perf_counter() - began
        for text in lines[:20]:
            await client.call_tool("search", {"query": text})
        before = cpu_seconds()
        end, number = time.perf_counter() + seconds, 0
        while (start := time.perf_counter()) < end:
            answer = await client.call_tool("search", {"query": lines[number % len(lines)]})
            assert not answer.is_error, answer.content[0].text
            times.append(time.perf_counter() - start)
            number += 1
        cpu = (cpu_seconds() - before) / len(times)
    p50, p99 = (round(1000 * float(np.quantile(times, q)), 1) for q in (0.5, 0.99))
    rate = round(len(times) / sum(times), 1)
    return {
        "searches_per_second": rate,
        "p50_ms": p50,
        "p99_ms": p99,
        "cpu_ms": round(1000 * cpu, 2),
        "start_s": round(started, 1),
    }


if __name__ == "__main__":
    run(measure, seconds=20.0)
