"""Mutated files of every kind are read or refused with one sentence (#16, the net)."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuzz_targets
import mutants
from vdsh.documents import read_documents
from vdsh.errors import VdshError

ROOT = Path(__file__).parents[1]

quickly = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_thousands_of_mutants_crash_nothing_and_write_nowhere_else():
    command = [sys.executable, "benchmarks/fuzz.py", "--quick", "--cases", "3000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return fuzz_targets.Index(tmp_path_factory.mktemp("index"))


@quickly
@given(seed=st.integers(0, 2**64))
def test_a_mutated_index_file_is_read_or_refused(seed, index, tmp_path):
    index.write(tmp_path, Random(seed))
    try:
        index.use(tmp_path, Random(seed))
    except VdshError as error:
        assert "\n" not in str(error)


@quickly
@given(
    data=st.binary(max_size=60), place=st.integers(0, 400), kind=st.sampled_from(["jsonl", "csv"])
)
def test_documents_with_any_bytes_inside_are_read_or_refused(data, place, kind, tmp_path):
    valid = fuzz_targets.Documents(kind).valid
    (tmp_path / f"d.{kind}").write_bytes(valid[:place] + data + valid[place + len(data) :])
    try:
        list(read_documents(tmp_path / f"d.{kind}"))
    except VdshError as error:
        assert "\n" not in str(error)


@given(seed=st.integers(0, 2**64))
def test_the_same_seed_makes_the_same_mutant(seed):
    valid = fuzz_targets.Vectors.valid
    assert mutants.of_bytes(valid, Random(seed)) == mutants.of_bytes(valid, Random(seed))
