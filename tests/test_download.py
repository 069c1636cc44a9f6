"""Downloads from a real server on localhost that drops connections, ignores Range or lies."""

import dataclasses
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from test_datasets_originals import (
    pack_libsvm,
    pack_posts,
    pack_stories,
    pack_vectors,
)
from vdsh import datasets
from vdsh.datasets.download import File, fetch
from vdsh.errors import DownloadError, WriteError

CONTENT = bytes(range(256)) * 2000
SUM = hashlib.sha256(CONTENT).hexdigest()
FILE = File("corpus.tar.gz", (), SUM)


class Handler(BaseHTTPRequestHandler):
    """Serve `server.files`; `server.tricks` are used up, one a request."""

    def do_GET(self):
        content = self.server.files.get(self.path.strip("/"))
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        trick = self.server.tricks.pop(0) if self.server.tricks else ""
        if content is None or trick.isdigit():
            return self.send_error(int(trick or 404))
        start = int(wanted[6:-1]) if wanted and trick != "ignore range" else 0
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = start + (len(content) - start) // 2 if trick == "cut" else len(content)
        self.wfile.write(content[start:stop])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.tricks, server.ranges = {FILE.name: CONTENT}, [], []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("VDSH_MIRROR", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("VDSH_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("VDSH_DATA", raising=False)
        yield server
        server.shutdown()


def get(folder, file=FILE):
    return fetch(file, folder, home="http://home.example/", timeout=5, wait=0.01)


def test_a_file_is_downloaded_once(server, tmp_path):
    path = get(tmp_path / "new")
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == [FILE.name]
    get(path.parent)
    assert server.ranges == [None]


def test_a_dropped_connection_is_resumed_where_it_broke(server, tmp_path):
    server.tricks = ["cut", "503", "cut"]
    assert get(tmp_path).read_bytes() == CONTENT
    half, more = len(CONTENT) // 2, len(CONTENT) * 3 // 4
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half}-", f"bytes={more}-"]


def test_an_interrupted_download_goes_on_in_the_next_run(server, tmp_path):
    (tmp_path / f"{FILE.name}.part").write_bytes(CONTENT[:1000])
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_server_that_ignores_range_starts_again(server, tmp_path):
    (tmp_path / f"{FILE.name}.part").write_bytes(b"old bytes")
    server.tricks = ["ignore range"]
    assert get(tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=9-"]


@pytest.mark.parametrize("extra, requests", [(b"", 1), (b"too long", 2)])
def test_a_part_that_is_whole_or_too_long_is_settled(server, tmp_path, extra, requests):
    (tmp_path / f"{FILE.name}.part").write_bytes(CONTENT + extra)
    assert get(tmp_path).read_bytes() == CONTENT
    assert len(server.ranges) == requests


def test_a_server_that_keeps_failing_is_given_up(server, tmp_path):
    server.tricks = ["503"] * 9
    with pytest.raises(DownloadError, match=r"HTTP 503 \(Service Unavailable\)"):
        get(tmp_path)
    assert len(server.ranges) == 4
    server.tricks, server.files = [], {}
    with pytest.raises(DownloadError, match=r"HTTP 404"):
        get(tmp_path)
    assert len(server.ranges) == 5


def test_wrong_bytes_are_kept_aside_and_never_used(server, tmp_path):
    server.files[FILE.name] = b"not the corpus"
    found = hashlib.sha256(b"not the corpus").hexdigest()
    with pytest.raises(DownloadError, match=f"sha256 {found} instead of {SUM}. It is kept as"):
        get(tmp_path)
    aside = tmp_path / f"{FILE.name}.wrong-checksum"
    assert [path.name for path in tmp_path.iterdir()] == [aside.name]
    assert aside.read_bytes() == b"not the corpus"
    server.files[FILE.name] = CONTENT
    assert get(tmp_path).read_bytes() == CONTENT


def test_without_a_published_checksum_the_first_download_is_the_measure(server, tmp_path):
    file = File(FILE.name, ())
    path = get(tmp_path, file)
    assert (tmp_path / f"{FILE.name}.sha256").read_text() == f"{SUM}  {FILE.name}\n"
    path.write_bytes(b"changed behind our back")
    with pytest.raises(DownloadError, match=f"instead of {SUM}"):
        get(tmp_path, file)


def test_several_addresses_are_tried_in_order(server, tmp_path, monkeypatch):
    monkeypatch.delenv("VDSH_MIRROR")
    home = f"http://127.0.0.1:{server.server_port}"
    urls = (f"{home}/gone", f"{home}/{FILE.name}")
    assert get(tmp_path, File(FILE.name, urls, SUM)).read_bytes() == CONTENT


def test_no_network_says_how_to_give_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VDSH_MIRROR", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("VDSH_CACHE", str(tmp_path))
    monkeypatch.delenv("VDSH_DATA", raising=False)
    sentence = (
        r"Could not download reuters21578.tar.gz: .* gave 'Connection refused'. Download it by "
        r"hand from http://www.daviddlewis.com/.* into '.*/reuters', or give a folder that holds "
        r"the corpus with root= or VDSH_DATA."
    )
    with pytest.raises(DownloadError, match=sentence):
        datasets.load("reuters20")


def test_a_mirror_may_be_a_folder(tmp_path, monkeypatch):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / FILE.name).write_bytes(CONTENT)
    monkeypatch.setenv("VDSH_MIRROR", (tmp_path / "mirror").as_uri())
    assert get(tmp_path / "new").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_gets_a_sentence(server, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(WriteError, match="Could not write to '.*taken'"):
        get(tmp_path / "taken")


@pytest.fixture
def published(server, tmp_path, monkeypatch):
    """Serve miniatures of all original files; their checksums are not the published ones."""
    for pack in (pack_posts, pack_stories, pack_vectors, pack_libsvm):
        pack(tmp_path / "originals")
    server.files = {path.name: path.read_bytes() for path in (tmp_path / "originals").iterdir()}
    for name, source in datasets.DATASETS.items():
        files = tuple(dataclasses.replace(file, sha256=None) for file in source.files)
        changed = dataclasses.replace(source, files=files)
        monkeypatch.setitem(datasets.DATASETS, name, changed)
    return server


@pytest.mark.parametrize(
    "name, documents", [("20newsgroups", 3), ("reuters", 3), ("tmc", 3), ("rcv1", 10)]
)
def test_a_corpus_is_downloaded_parsed_and_kept(published, name, documents):
    first = datasets.load(name, quiet=True)
    parts = (first.train, first.validation, first.test)
    assert sum(len(part.ids) for part in parts) == documents
    n_requests = len(published.ranges)
    published.files.clear()
    again = datasets.load(name, quiet=True)
    assert again.test.ids == first.test.ids
    assert len(published.ranges) == n_requests
    official = datasets.load(name, quiet=True, split="official")
    assert {part.split("/")[0] for part in official.test.ids} & {"test", "sci.space"}


def test_a_file_other_than_the_published_one_is_not_parsed(server, tmp_path):
    pack_stories(tmp_path)
    server.files["reuters21578.tar.gz"] = (tmp_path / "reuters21578.tar.gz").read_bytes()
    with pytest.raises(DownloadError, match="wrong checksum and is not used: .* of 3bae43c9b14e"):
        datasets.load("reuters")
    names = [path.name for path in (tmp_path / "cache" / "reuters").iterdir()]
    assert names == ["reuters21578.tar.gz.wrong-checksum"]


def test_all_checksums_but_those_of_tmc_are_published():
    for name, source in datasets.DATASETS.items():
        sums = {len(file.sha256 or "") for file in source.files}
        assert sums == {"tmc": {0}, "docstrings": set()}.get(name, {64})


def test_datasets_lists_what_there_is(vdsh, published, tmp_path):
    lines = vdsh("datasets").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *datasets.DATASETS]
    assert "18,846" in lines[1] and "not here" in lines[1]
    assert "varies" in lines[-1] and "this machine" in lines[-1]
    rows = [json.loads(line) for line in vdsh("datasets", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == list(datasets.DATASETS)
    assert rows[3]["where"] is None


def test_datasets_downloads_one_and_tells_about_it(vdsh, published, tmp_path):
    before = vdsh("datasets", "tmc").stdout
    assert "not here; get it with: vdsh research datasets tmc --download" in before
    assert "sha256   not published; the first download's is kept" in before
    after = vdsh("datasets", "tmc", "--download").stdout
    assert f"where      {tmp_path / 'cache' / 'tmc'}\n" in after
    assert "at hand    counts.svm.gz, " in after
    assert "that of the first download is" in after
    fact = json.loads(vdsh("datasets", "tmc", "--json", "--root", tmp_path / "cache").stdout)
    assert fact["where"] == str(tmp_path / "cache" / "tmc")
    assert fact["files"][0]["downloaded"]


def test_datasets_says_what_is_wrong(vdsh, server):
    server.files = {}
    unknown = vdsh("datasets", "router")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "Error: No dataset 'router'. Did you mean 'reuters'?" in unknown.stderr
    assert "Name the data set to download" in vdsh("datasets", "--download").stderr
    failed = vdsh("datasets", "reuters", "--download")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: Could not download reuters21578.tar.gz: http")
    assert failed.stderr.count("\n") == 1
