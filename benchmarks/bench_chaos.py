"""The service while things go wrong: a minute of searches, and what is lost of them.

Run: VDSH_DATA=path/to/data python benchmarks/bench_chaos.py [--seconds 60] [--rate 40]

`vdsh serve --workers 2 --writable` serves 20 Newsgroups to searches at a fixed rate on kept-alive
connections, while workers are killed, its temporary folder is full, clients are slow, heads and
bodies hostile, filters expensive and texts to highlight long, its file of tokens is ruined, and at
last its folder is moved away and replaced. Bodies on open paths and requests sent ahead come
without a token. At the end the database of a second service is cut short while it runs. A search
is lost where no answer comes; an answer that is not 200 is counted apart. A silence is the time
between two good answers. Documents are written all along: those answered `written` must be in the
store at the end, and found by a word of their own. Only root can have the temporary folder full.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from bench_server import ask, request
from common import posts, resident_mb, run

import servers
from vdsh import Document, TextHasher, open_store

CONNECTIONS = 16
PATIENCE = 30.0  # seconds until a search without an answer is lost
TOKEN = "the-token-of-the-chaos"
N_LONG, LONG = 100, 200_000  # documents that are long, and their characters
READY = b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FLOOD = b"GET /v1/info HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Header: yyyy\r\n" * 500_000


def measure(given):
    data = posts(given.quick)
    with tempfile.TemporaryDirectory() as name, small_folder(Path(name, "tmp")) as small:
        path, spare = Path(name, "store"), Path(name, "to be cut")
        make_store(path, data.train)
        shutil.copytree(path, spare)
        with Service(path, small) as service:
            chaos = Chaos(service, path, small, data)
            asyncio.run(chaos.run(given.seconds, given.rate))
            stopped = service.stop()
        with Service(spare, None) as service:
            cut = asyncio.run(cut_database(service, spare))
        return {
            "documents": len(data.train.texts),
            "searches_per_second": given.rate,
            "phases": chaos.rows(),
            "written": len(chaos.written),
            **chaos.count_lost_writes(),
            "seconds_to_stop": round(stopped, 1),
            "cut_database": cut,
        }


def make_store(path, corpus):
    hasher = TextHasher("lsh", n_bits=64, random_state=0).fit(corpus.texts)
    with open_store(path, hasher) as store:
        store.upsert(
            Document(str(i), text[:2000], tuple(map(str, np.atleast_1d(label))), {})
            for i, (text, label) in enumerate(zip(corpus.texts, corpus.labels, strict=True))
        )
        # Words that no post has, so that searches find what they found without them.
        words = (
            " ".join(f"longword{i * j % 9973}" for j in range(LONG // 12)) for i in range(N_LONG)
        )
        store.upsert(Document(f"long-{i}", f"long{text}"[:LONG]) for i, text in enumerate(words))


async def cut_database(service, path):
    """Cut a database in half under a running service; return what it says before and after."""
    place = service.place
    written = {"documents": [{"id": "late", "text": "late"}]}
    asked = {
        "search": with_token(request("/v1/search", {"text": "space shuttle"})),
        "write": with_token(request("/v1/documents", written)),
        "ready": READY,
    }
    while await once(place, READY) != 200:
        await asyncio.sleep(0.2)
    found = {"before": {name: await once(place, message) for name, message in asked.items()}}
    file = path / "store.sqlite"
    os.truncate(file, file.stat().st_size // 2)
    return found | {"after": {name: await once(place, message) for name, message in asked.items()}}


async def once(place, message):
    """Ask on a connection of its own; return the status."""
    connection = await asyncio.open_connection(*place)
    try:
        return (await ask(connection, message))[0]
    finally:
        connection[1].close()


def with_token(message, token=TOKEN):
    """Add the token to a request."""
    return message.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)


@contextmanager
def small_folder(path):
    """Mount a folder of 4 MB for temporary files, where that is allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(path)]
    mounted = not subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode
    try:
        yield path if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(path)], check=True)


class Service(servers.Service):
    """A running service, its file of tokens and its memory."""

    def __init__(self, store, temporary):
        self.tokens = Path(store).with_name("tokens")
        self.write_tokens(f"chaos write {TOKEN}")
        options = ["--quiet", "--workers", "2", "--writable", "--timeout", "5"]
        options += ["--client-timeout", "3", "--token-file", self.tokens]
        super().__init__(store, *options, **({"TMPDIR": str(temporary)} if temporary else {}))
        self.place = self.host, int(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        print(self.end()[-3000:])

    def write_tokens(self, *lines, rights=0o600):
        """Put another file of tokens into the place of the one before."""
        draft = self.tokens.with_name("draft")
        draft.write_text("\n".join(lines))
        draft.chmod(rights)
        draft.rename(self.tokens)

    def memory(self):
        """Return the resident megabytes of all its processes."""
        found = 0.0
        for process in (self.process.pid, *self.workers()):
            with suppress(OSError, TypeError):  # it has just ended
                found += resident_mb(process)
        return found

    def stop(self):
        """Stop it; return how many seconds that takes."""
        begin = time.perf_counter()
        self.process.terminate()
        self.process.wait(120)
        return time.perf_counter() - begin


class Chaos:
    """Searches at a fixed rate, and one mischief after the other."""

    def __init__(self, service, path, small, data):
        self.service, self.path, self.small = service, path, small
        self.place = service.place
        self.away = path.with_name("away")
        texts = data.test.texts
        self.searches = [request("/v1/search", {"text": text[:2000], "k": 10}) for text in texts]
        self.answers = []  # phase, begin, end, status; 0 where there was none
        self.problems = []  # why there was none
        self.peaks = {}
        self.written = []
        self.phase = ""
        self.phases = [self.calm, self.kills, self.slow_clients, self.header_floods]
        self.phases += [self.hostile_bodies, self.expensive_filters, self.bodies_on_open_paths]
        self.phases += [self.requests_sent_ahead, self.long_highlights, self.token_files]
        self.phases += [self.moved_store]
        if small:
            self.phases.insert(2, self.full_temporary_folder)

    async def run(self, seconds, rate):
        """Go through all phases; the first of them begins when the service is warm."""
        self.free = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self.free.put_nowait(None)
        while len(self.service.workers()) < 2 or await once(self.place, READY) != 200:
            await asyncio.sleep(0.2)
        await asyncio.gather(*(self.search(m) for m in self.searches[:50]))
        await asyncio.sleep(5)
        self.answers.clear()
        self.done = threading.Event()
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        writing = asyncio.create_task(self.write())
        for phase in self.phases:
            self.phase = phase.__name__.replace("_", " ")
            await self.hold(phase, seconds / len(self.phases), rate)
        writing.cancel()
        self.done.set()
        watcher.join()

    async def hold(self, mischief, seconds, rate):
        """Search at the rate while the mischief goes on; wait for the answers."""
        begin, running = time.perf_counter(), set()
        running.add(asyncio.create_task(mischief(seconds)))
        for i in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, begin + i / rate - time.perf_counter()))
            message = self.searches[i % len(self.searches)]
            running.add(asyncio.create_task(self.search(message)))
        await asyncio.gather(*running)

    async def search(self, message):
        """Ask on a free connection; one that was closed meanwhile is opened anew first."""
        phase, begin, status, connection = self.phase, time.perf_counter(), 0, await self.free.get()
        try:
            async with asyncio.timeout(PATIENCE):
                if connection is None or connection[0].at_eof() or connection[1].is_closing():
                    connection = await asyncio.open_connection(*self.place)
                status, _ = await ask(connection, self.prepared(message))
        except (OSError, EOFError, TimeoutError) as error:
            connection = None
            self.problems.append(f"{phase}: {error!r}")
        self.free.put_nowait(connection)
        self.answers.append((phase, begin, time.perf_counter(), status))

    def prepared(self, message):
        """Return a message as it is sent now."""
        return with_token(message)

    async def write(self):
        """Write a document now and then, on connections of its own."""
        for number in range(10**6):
            body = {"documents": [{"id": f"written-{number}", "text": f"some words own{number}"}]}
            with suppress(OSError, EOFError):
                if await once(self.place, self.prepared(request("/v1/documents", body))) == 200:
                    self.written.append(f"written-{number}")
            await asyncio.sleep(0.2)

    def watch(self):
        """Note the most memory of each phase."""
        while not self.done.wait(0.05):
            self.peaks[self.phase] = max(self.peaks.get(self.phase, 0.0), self.service.memory())

    async def calm(self, seconds):
        """Do nothing."""

    async def kills(self, seconds):
        """Kill one worker, and later both at once."""
        await asyncio.sleep(0.1 * seconds)
        for victims in ([min(self.service.workers())], None):
            for victim in victims or self.service.workers():
                os.kill(victim, signal.SIGKILL)
            await asyncio.sleep(0.5 * seconds)

    async def full_temporary_folder(self, seconds):
        """Fill the folder, and kill a worker so that a new one starts there."""
        with suppress(OSError), Path(self.small, "full").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        os.kill(min(self.service.workers()), signal.SIGKILL)

    async def slow_clients(self, seconds):
        """Let 300 clients send their heads a byte at a time."""

        async def drip():
            with suppress(OSError):
                _, writer = await asyncio.open_connection(*self.place)
                for byte in b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\n":
                    writer.write(bytes([byte]))
                    await asyncio.sleep(seconds / 45)
                writer.close()

        await asyncio.gather(*(drip() for _ in range(300)))

    async def header_floods(self, seconds):
        """Send 8 MB of headers, again and again."""
        await self.flood(FLOOD, seconds)

    async def hostile_bodies(self, seconds):
        """Send 4 MB of what no call takes, again and again."""
        message = request("/v1/encode", {"texts": [0] * 1_300_000})
        await self.flood(self.prepared(message), seconds)

    async def bodies_on_open_paths(self, seconds):
        """Send 4 MB to a path that needs no token, on 50 connections at a time."""
        head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000000\r\n\r\n"
        await self.flood(head + bytes(4_000_000), seconds, n_connections=50)

    async def requests_sent_ahead(self, seconds):
        """Send 8 MB of requests that need no token on one connection, and read what comes."""
        message = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200_000

        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            reader, writer = await asyncio.open_connection(*self.place)
            reading = asyncio.create_task(reader.read())  # all that comes
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    writer.write(message)
                    await writer.drain()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            writer.transport.abort()

    async def long_highlights(self, seconds):
        """Ask two at a time for highlights of all documents that are long."""
        body = {"text": "longword7", "k": N_LONG, "highlight": True}
        message, end = self.prepared(request("/v1/search", body)), time.perf_counter() + seconds
        while time.perf_counter() < end:
            both = (once(self.place, message) for _ in range(2))
            await asyncio.gather(*both, return_exceptions=True)

    async def token_files(self, seconds):
        """Ruin the file of tokens, open it to others, and mend it."""
        other = "other read another-token-of-the-chaos"
        for lines, rights in ((["garbage"], 0o600), ([other], 0o644), ([other], 0o600)):
            self.service.write_tokens(
                *lines, *[f"chaos write {TOKEN}"][rights == 0o644 :], rights=rights
            )
            await asyncio.sleep(seconds / 4)
        self.service.write_tokens(f"chaos write {TOKEN}")

    async def expensive_filters(self, seconds):
        """Ask with as many labels as are let through, and with more."""
        end = time.perf_counter() + seconds
        for parts, labels in ((48, 200), (20, 2000)):
            some = [{"label": {"in": [f"{i}-{j}" for j in range(labels)]}} for i in range(parts)]
            body = {"text": "space", "where": {"or": some}}
            message = self.prepared(request("/v1/search", body))
            with suppress(OSError, EOFError):
                while time.perf_counter() < end - (seconds / 2 if parts == 48 else 0):
                    await asyncio.gather(*(once(self.place, message) for _ in range(4)))

    async def moved_store(self, seconds):
        """Move the store's folder away, and later put a copy in its place."""
        self.path.rename(self.away)
        await asyncio.sleep(seconds / 2)
        await asyncio.to_thread(shutil.copytree, self.away, self.path)

    async def flood(self, message, seconds, n_connections=4):
        """Send a message on some connections at a time; read what comes back, if anything."""
        end = time.perf_counter() + seconds

        async def one():
            while time.perf_counter() < end:
                reader, writer = await asyncio.open_connection(*self.place)
                with suppress(OSError, EOFError, TimeoutError):
                    writer.write(message)
                    async with asyncio.timeout(PATIENCE):
                        await writer.drain()
                        await reader.readuntil(b"\r\n\r\n")
                writer.transport.abort()

        await asyncio.gather(*(one() for _ in range(n_connections)))

    def rows(self):
        """Make a row of each phase."""
        rows = []
        for phase in self.peaks:
            some = sorted((b, e, s) for p, b, e, s in self.answers if p == phase)
            good = sorted(end for _, end, status in some if status == 200)
            times = [end - begin for begin, end, status in some if status]
            silences = np.diff([some[0][0], *good]) if some else [0.0]
            rows.append(
                {
                    "phase": phase,
                    "searches": len(some),
                    "lost": sum(status == 0 for _, _, status in some),
                    "not_200": sum(status not in (0, 200) for _, _, status in some),
                    "longest_silence_s": round(float(max(silences)), 2),
                    "p99_ms": round(1000 * float(np.quantile(times, 0.99))),
                    "peak_memory_mb": round(self.peaks[phase]),
                }
            )
        return rows

    def count_lost_writes(self):
        """Count documents that were answered `written` and are not there, or not found."""
        with open_store(self.away) as store:
            lost = sum(store.get(id) is None for id in self.written)
            queries = [f"own{id.removeprefix('written-')}" for id in self.written]
            best = [[hit.id for hit in hits] for hits in store.search_many(queries, 1)]
        unfound = sum(found != [id] for found, id in zip(best, self.written, strict=True))
        return {"written_and_lost": lost, "written_and_not_found_by_words": unfound}


if __name__ == "__main__":
    run(measure, seconds=60.0, rate=40.0)
