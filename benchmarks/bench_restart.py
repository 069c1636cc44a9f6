"""The service while it is looked after: stopped, replaced, given a new model and new tokens.

Run: VDSH_DATA=path/to/data python benchmarks/bench_restart.py [--seconds 60] [--rate 100]

`vdsh serve --workers 2` serves 20 Newsgroups to searches at a fixed rate on kept-alive connections.
Its socket is opened by this script and passed on, as systemd does with a `.socket` unit. Meanwhile
it is stopped and started again, so that for a while nobody serves; a second process is started and
then the first is stopped; `vdsh reindex` gives the store another model; and the file of tokens gets
a second token, becomes garbage, and loses the first one. A search has failed where no answer comes
or one that is not 200. Its time counts from when it was due, so those who wait for a start show.
"""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_chaos
from bench_chaos import with_token
from bench_server import request
from common import VDSH, posts, run

from vdsh import TextHasher

OLD, NEW = "the-token-of-yesterday", "the-token-of-tomorrow"
LOOK_AGAIN = 1.5  # seconds after which a new file of tokens has been read
# What systemd does: the socket is number 3 of the process, and the environment says so.
PASS_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, "-m", "vdsh", *sys.argv[2:]])
"""


def measure(given):
    data = posts(given.quick)
    bench_chaos.PATIENCE = given.patience
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_chaos.make_store(folder / "store", data.train)
        other = TextHasher("lsh", n_bits=32, random_state=1).fit(data.train.texts)
        other.save(folder / "other-model")
        with Service(folder) as service:
            care = Care(service, folder, data)
            asyncio.run(care.run(given.seconds, given.rate))
            rows = care.rows()
    return {
        "documents": len(data.train.texts),
        "searches_per_second": given.rate,
        "searches": sum(row["searches"] for row in rows),
        "failed": sum(row["lost"] + row["not_200"] for row in rows),
        "phases": rows,
        "problems": care.problems[:20],
        **care.facts,
        "wanted": {"failed": 0},
    }


class Service(bench_chaos.Service):
    """A service at a socket that outlives its processes."""

    def __init__(self, folder):
        self.folder, self.log = folder, (folder / "log").open("w+")
        self.tokens = folder / "tokens"
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.place = self.listener.getsockname()
        self.write_tokens(f"ann read {OLD}")
        self.process = self.start()

    def start(self):
        """Start a process; return it when it says that it serves."""
        words = ["serve", self.folder / "store", "--workers", "2", "--quiet"]
        words += ["--token-file", self.tokens]
        process = subprocess.Popen(
            [sys.executable, "-c", PASS_ON, str(self.listener.fileno()), *map(str, words)],
            pass_fds=[self.listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert "Serving" in process.stdout.readline()
        return process


class Care(bench_chaos.Chaos):
    """Searches at a fixed rate with the token of the day, and one kind of care after the other."""

    def __init__(self, service, folder, data):
        super().__init__(service, folder / "store", None, data)
        self.folder, self.token, self.facts = folder, OLD, {}
        texts = [" ".join(text.split()[:20]) for text in data.test.texts]
        self.searches = [request("/v1/search", {"text": text, "k": 10}) for text in texts]
        self.phases = [self.calm, self.stop_and_start, self.second_process]
        self.phases += [self.reindex, self.token_change]

    def prepared(self, message):
        """Add the token of the day."""
        return with_token(message, self.token)

    async def write(self):
        """Write nothing."""

    async def stop_and_start(self, seconds):
        """Stop the service and start it again: in between nobody is there."""
        begin = time.perf_counter()
        await asyncio.to_thread(self.service.stop)
        stopped = time.perf_counter()
        self.service.process = await asyncio.to_thread(self.service.start)
        self.facts["seconds_to_stop"] = round(stopped - begin, 1)
        self.facts["seconds_to_start"] = round(time.perf_counter() - stopped, 1)

    async def second_process(self, seconds):
        """Start another process at the same socket, then stop the first."""
        second = await asyncio.to_thread(self.service.start)
        await asyncio.sleep(0.4 * seconds)  # its workers open the store
        await asyncio.to_thread(self.service.stop)
        self.service.process = second

    async def reindex(self, seconds):
        """Encode all documents with another model, of other bits."""
        words = ["reindex", self.path, "--model", self.folder / "other-model", "--quiet"]
        begin = time.perf_counter()
        await asyncio.to_thread(subprocess.run, [*VDSH, *words], check=True)
        self.facts["seconds_to_reindex"] = round(time.perf_counter() - begin, 1)

    async def token_change(self, seconds):
        """Add a token, ruin the file, mend it without the old one."""
        self.service.write_tokens(f"ann read {OLD}", f"ann read {NEW}")
        await asyncio.sleep(LOOK_AGAIN)
        self.token = NEW
        self.service.write_tokens("garbage")
        await asyncio.sleep(LOOK_AGAIN)
        self.service.write_tokens(f"ann read {NEW}")
        await asyncio.sleep(LOOK_AGAIN)
        old = await bench_chaos.once(self.place, with_token(self.searches[0], OLD))
        self.facts["status_with_the_old_token"] = old


if __name__ == "__main__":
    run(measure, seconds=60.0, rate=100.0, patience=30.0)
