"""Training in two processes that torchrun starts."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import product

import numpy as np
import pytest
import torch

from conftest import toy_corpus
from vdsh import TextHasher
from vdsh.hashers.vdsh.updates import Processes

pytestmark = pytest.mark.linux("finds the processes of torchrun in /proc, and kills them")
QUICK = ["--bits", "16", "--epochs", "6", "--set", "hidden_size=32", "--set", "batch_size=16"]
QUICK += ["--model", "vdsh-s", "--device", "cpu"]

# `vdsh fit` without a seed, and every process leaves its model.
REPLICAS = """
import os
from vdsh import TextHasher
from vdsh.cli import main

fit = TextHasher.fit

def fit_and_save(self, *arguments, **options):
    self.set_params(random_state=None)
    fit(self, *arguments, **options).save(f"process-{os.environ['RANK']}")
    return self

TextHasher.fit = fit_and_save
main()
"""


@contextmanager
def torchrun(folder, *arguments):
    """Start two processes; none of them survives the test."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    with subprocess.Popen(
        [*command, "--nproc-per-node", "2", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def write_docs(folder):
    texts, labels = toy_corpus(400)
    lines = [json.dumps({"text": t, "labels": y}) for t, y in zip(texts, labels, strict=True)]
    (folder / "docs.jsonl").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder where two processes trained without a seed, and what they printed."""
    folder = tmp_path_factory.mktemp("torchrun")
    write_docs(folder)
    (folder / "replicas.py").write_text(REPLICAS)
    with torchrun(folder, "replicas.py", "fit", "docs.jsonl", "--out", "two", *QUICK) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return folder, out


@pytest.mark.slow
def test_two_processes_learn_one_model_as_good_as_that_of_one(trained, vdsh, tmp_path):
    folder, out = trained
    assert out.count("The model is in two") == 1
    assert vdsh("fit", folder / "docs.jsonl", "--out", "one", *QUICK).returncode == 0
    for path in (folder / "two", tmp_path / "one"):
        learned = TextHasher.load(path).hasher_
        assert learned.history_[learned.best_epoch_]["validation"] > 0.97


@pytest.mark.slow
def test_the_processes_stay_identical_even_without_a_seed(trained):
    folder, _ = trained
    names = ("process-0", "process-1", "two")
    first, *others = (TextHasher.load(folder / name).hasher_ for name in names)
    for name, other in product(
        ("W1_", "W2_", "W3_", "W4_", "G_", "D_", "U_", "thresholds_"), others
    ):
        np.testing.assert_array_equal(getattr(first, name), getattr(other, name))
    assert all(first.history_ == other.history_ for other in others)


@pytest.mark.slow
def test_a_process_killed_in_the_middle_leaves_no_model(tmp_path):
    write_docs(tmp_path)
    settings = [*QUICK[:2], "--epochs", "100000", *QUICK[4:], "--set", "patience=100000"]
    before = sorted(os.listdir(tmp_path))
    with torchrun(tmp_path, "-m", "vdsh", "fit", "docs.jsonl", "--out", "m", *settings) as process:
        os.kill(_training_child(process.pid), signal.SIGKILL)
        process.communicate(timeout=100)
    assert process.returncode not in (0, None)
    assert sorted(os.listdir(tmp_path)) == before


def _training_child(parent):
    """Wait until a process of torchrun has worked for some seconds; return its number."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            busy = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            if int(fields[1]) == parent and busy > 6:
                return int(number)
        time.sleep(0.2)
    raise AssertionError("no process trained")


def test_the_shares_of_a_team_make_up_the_batches_of_one(monkeypatch):
    monkeypatch.setattr(torch.distributed, "broadcast", lambda order, src: None)
    order, shares = torch.randperm(23), []
    for rank in range(3):
        processes = Processes()
        processes.rank, processes.size = rank, 3
        shares.append(processes.share(order))
    assert [len(share) for share in shares] == [7, 7, 7]
    for first in range(0, 7, 2):  # batches of two in each process, of six in all
        together = torch.cat([share[first : first + 2] for share in shares])
        assert set(together.tolist()) == set(order[3 * first : min(3 * first + 6, 21)].tolist())


def test_a_process_alone_is_a_team_of_one():
    processes, weight = Processes(), torch.ones(2, requires_grad=True)
    weight.sum().backward()
    processes.average([weight])
    assert (processes.rank, processes.size, weight.grad.tolist()) == (0, 1, [1.0, 1.0])
    assert processes.agree(lambda: 3) == 3
    assert processes.share(torch.arange(3)).tolist() == [0, 1, 2]
