"""Encoding on a Ray cluster of two nodes, with workers that are really killed."""

import filecmp
import os
import signal
import sys
import time
from copy import copy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from ray.cluster_utils import Cluster

from conftest import toy_corpus
from vdsh import Model
from vdsh.errors import InputError
from vdsh.scale import parquet
from vdsh.scale.cluster import Machines
from vdsh.scale.encode import codes_folder, encode_files
from vdsh.scale.parquet import open_files

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*use_push_based_shuffle:DeprecationWarning",
    "ignore:.*use_polars:DeprecationWarning",
    "ignore:.*use_arrow_tensor_v2:DeprecationWarning",
)
TWO = Machines(workers=2)


@pytest.fixture(scope="module")
def address():
    """A cluster of two nodes with a CPU each, which do not wait for the tests beside."""
    node = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # Ray's 15 lets all others go first
        cluster = Cluster(initialize_head=True, head_node_args=node)
        cluster.add_node(num_cpus=1, object_store_memory=200 * 2**20)
        cluster.wait_for_nodes()
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(scope="module")
def connected(address):
    """A connection for all tests of this file, since each takes seconds."""
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Eight pieces of ten documents in three files."""
    monkeypatch.setattr(parquet, "PIECE", 10)
    texts = toy_corpus()[0]
    (tmp_path / "docs").mkdir()
    for name, first, last in (("a", 0, 20), ("b", 20, 40), ("c", 40, 80)):
        rows = {"id": [f"d{i}" for i in range(first, last)], "text": texts[first:last]}
        pq.write_table(pa.table(rows), tmp_path / "docs" / f"{name}.parquet", row_group_size=10)
    return tmp_path / "docs"


def write_codes(model, docs, out, machines=None, after_a_piece=lambda: None):
    files = open_files(str(docs))
    with codes_folder(str(out)) as folder:
        for _ in encode_files(model, files, folder, machines):
            after_a_piece()
    return len(files.pieces)


def assert_same_files(one, other):
    names = sorted(os.listdir(one))
    assert sorted(os.listdir(other)) == names
    assert filecmp.cmpfiles(one, other, names, shallow=False) == (names, [], [])


def pids(folder):
    return {int(name) for name in os.listdir(folder)}


@pytest.mark.slow
def test_a_process_of_its_own_reaches_the_cluster(vdsh, address, docs, model_folder, tmp_path):
    """Pieces of the usual size here, so one a file."""
    command = ("encode", model_folder, "docs/*.parquet", "--quiet", "--out")
    result = vdsh(*command, "on-ray", "--engine", "ray", "--address", address, timeout=200)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert vdsh(*command, "here", timeout=200).returncode == 0
    assert len(os.listdir(tmp_path / "here")) == 3
    assert_same_files(tmp_path / "here", tmp_path / "on-ray")


@pytest.mark.slow
def test_ray_gives_the_files_of_the_local_run_byte_for_byte(connected, docs, fitted, tmp_path):
    assert write_codes(fitted.model_, docs, tmp_path / "here") == 8
    write_codes(fitted.model_, docs, tmp_path / "on-ray", TWO)
    assert_same_files(tmp_path / "here", tmp_path / "on-ray")


@pytest.mark.posix("kills a process by SIGKILL")
@pytest.mark.slow
def test_a_worker_killed_while_encoding_changes_nothing(connected, docs, fitted, tmp_path, capsys):
    seen = tmp_path / "seen"
    seen.mkdir()

    class Slow(Model):
        """Leaves its process id, and takes its time."""

        def encode_and_count(self, texts, vectors=None):
            (seen / str(os.getpid())).touch()
            time.sleep(0.5)
            return super().encode_and_count(texts, vectors)

    slow = copy(fitted.model_)
    slow.__class__ = Slow
    killed = []

    def kill_once():
        if not killed:
            killed.append(max(pids(seen)))
            os.kill(killed[0], signal.SIGKILL)

    write_codes(slow, docs, tmp_path / "on-ray", TWO, kill_once)
    assert len(pids(seen)) == 3, "another worker took over"
    assert capsys.readouterr().out == "", "standard output is for codes"
    write_codes(fitted.model_, docs, tmp_path / "here")
    assert_same_files(tmp_path / "here", tmp_path / "on-ray")


@pytest.mark.slow
def test_a_bad_row_is_named_by_the_worker_that_meets_it(connected, vdsh, model_folder, tmp_path):
    pq.write_table(pa.table({"text": ["orbit", None]}), tmp_path / "null.parquet")
    result = vdsh("encode", model_folder, "null.parquet", "--engine", "ray", "--out", "codes")
    assert (result.returncode, result.stdout) == (1, "")
    assert "null.parquet', row 2: the text must be a string" in result.stderr
    assert os.listdir(tmp_path) == ["null.parquet"]


@pytest.mark.slow
def test_more_workers_than_cpus_are_refused(connected, docs, fitted, tmp_path):
    with (
        pytest.raises(InputError, match="has 2 CPUs, one a worker. Got workers=3"),
        codes_folder(str(tmp_path / "codes")) as folder,
    ):
        list(encode_files(fitted.model_, open_files(str(docs)), folder, Machines(workers=3)))


def test_a_missing_ray_names_the_extra(vdsh, docs, model_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = vdsh("encode", model_folder, "docs", "--engine", "ray", "--out", "codes")
    assert result.returncode == 1
    assert "Run: pip install 'vdsh[ray]'" in result.stderr


def test_no_cluster_at_the_address(vdsh, docs, model_folder):
    ray.shutdown()  # a connection that is there would be used
    at = ("--engine", "ray", "--address", "127.0.0.1:1", "--out", "codes")
    result = vdsh("encode", model_folder, "docs", *at)
    assert (result.returncode, result.stdout) == (1, "")
    assert "No Ray cluster answers at '127.0.0.1:1'. Start one with `ray start" in result.stderr
