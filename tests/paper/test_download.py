"""Downloads from a real server on localhost that drops connections or lies."""

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
from vdsh.errors import DownloadError, WriteError
from vdsh.paper.datasets.download import File, fetch

CONTENT = bytes(range(256)) * 2000
SUM = hashlib.sha256(CONTENT).hexdigest()
FILE = File("corpus.tar.gz", (), SUM)


class Handler(BaseHTTPRequestHandler):
    """Serve `server.files`; `server.tricks` are used up, one a request."""

    def do_GET(self):
        content = self.server.files.get(self.path.strip("/"))
        self.server.n_requests += 1
        trick = self.server.tricks.pop(0) if self.server.tricks else ""
        if content is None or trick.isdigit():
            return self.send_error(int(trick or 404))
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if trick == "cut" else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.tricks, server.n_requests = {FILE.name: CONTENT}, [], 0
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("VDSH_MIRROR", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("VDSH_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("VDSH_DATA", raising=False)
        yield server
        server.shutdown()


def get(folder, file=FILE):
    return fetch(file, folder, home="http://home.example/")


def test_a_file_is_downloaded_once(server, tmp_path):
    path = get(tmp_path / "new")
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == [FILE.name]
    get(path.parent)
    assert server.n_requests == 1


def test_a_dropped_connection_leaves_nothing_and_is_said(server, tmp_path):
    server.tricks = ["cut"]
    with pytest.raises(DownloadError, match="the connection broke after 256,000 of 512,000 bytes"):
        get(tmp_path)
    assert not list(tmp_path.iterdir())
    assert get(tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("trick", "reason"), [("503", "Service Unavailable"), ("404", "Not Found")]
)
def test_a_server_that_fails_is_said(server, tmp_path, trick, reason):
    server.tricks = [trick]
    with pytest.raises(DownloadError, match=rf"HTTP {trick} \({reason}\)"):
        get(tmp_path)


def test_wrong_bytes_are_never_used(server, tmp_path):
    server.files[FILE.name] = b"not the corpus"
    found = hashlib.sha256(b"not the corpus").hexdigest()
    with pytest.raises(DownloadError, match=f"sha256 {found} instead of {SUM}"):
        get(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / FILE.name).write_bytes(b"put there by hand")
    with pytest.raises(DownloadError, match=f"instead of {SUM}"):
        get(tmp_path)


def test_a_file_without_a_published_checksum_is_taken_as_it_is(server, tmp_path):
    assert get(tmp_path, File(FILE.name, ())).read_bytes() == CONTENT


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
    with pytest.raises(WriteError, match="Could not write '.*taken'"):
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
    n_requests = published.n_requests
    published.files.clear()
    again = datasets.load(name, quiet=True)
    assert again.test.ids == first.test.ids
    assert published.n_requests == n_requests
    assert {id.split("/")[0] for part in parts for id in part.ids} & {"test", "sci.space"}


def test_a_file_other_than_the_published_one_is_not_parsed(server, tmp_path):
    pack_stories(tmp_path)
    server.files["reuters21578.tar.gz"] = (tmp_path / "reuters21578.tar.gz").read_bytes()
    with pytest.raises(DownloadError, match="wrong checksum and is not used: .* of 3bae43c9b14e"):
        datasets.load("reuters")
    assert not list((tmp_path / "cache" / "reuters").iterdir())


def test_all_checksums_but_those_of_tmc_are_published():
    for name, source in datasets.DATASETS.items():
        sums = {len(file.sha256 or "") for file in source.files}
        assert sums == {"tmc": {0}}.get(name, {64})


def test_datasets_lists_what_there_is(vdsh, published, tmp_path):
    lines = vdsh("datasets").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *datasets.DATASETS]
    assert "18,846" in lines[1] and "not here" in lines[1]
    rows = [json.loads(line) for line in vdsh("datasets", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == list(datasets.DATASETS)
    assert rows[3]["where"] is None


def test_datasets_downloads_one_and_tells_about_it(vdsh, published, tmp_path):
    before = vdsh("datasets", "tmc").stdout
    assert "not here; get it with: vdsh research datasets tmc --download" in before
    assert "sha256\tnot published" in before
    after = vdsh("datasets", "tmc", "--download").stdout
    assert f"where      {tmp_path / 'cache' / 'tmc'}\n" in after
    fact = json.loads(vdsh("datasets", "tmc", "--json", "--root", tmp_path / "cache").stdout)
    assert fact["where"] == str(tmp_path / "cache" / "tmc")
    assert fact["files"][0]["name"] == "tmc2007_train.svm.bz2"


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
