"""The demo on a few packages; CI runs `make demo`, which is the whole of it."""

import json
from functools import partial

import pytest

from vdsh import TextHasher
from vdsh.datasets import docstrings

PACKAGES = (
    "asyncio",
    "email",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
)
QUERIES = ("how to sort a list", "gradient descent optimizer", "read a csv file")


@pytest.fixture
def few_packages(monkeypatch):
    monkeypatch.setattr(docstrings, "collect", partial(docstrings.collect, modules=PACKAGES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vdsh.model.health.BitHealthWarning")  # four areas: bits repeat
def test_the_demo_learns_and_leaves_a_model(vdsh, few_packages, tmp_path):
    result = vdsh("demo", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    precision = facts["precision_at_100"]
    assert precision["codes"] > precision["exact tf-idf cosine"] > 2 * precision["random"]
    assert [one["query"] for one in facts["searches"]] == list(QUERIES)
    assert all(len(one["hits"]) == 3 for one in facts["searches"])
    assert TextHasher.load(tmp_path / facts["model"]).n_bits == 32
    search = vdsh("search", facts["store"], "sparse matrix", "--json")
    assert len(search.stdout.splitlines()) == 10
    drift = vdsh("drift", facts["store"])  # #31: nothing in it is newer than its model
    assert drift.returncode == 0 and drift.stdout.startswith("Nothing to compare")
    encode = vdsh("encode", facts["model"], facts["documents"])
    assert len(encode.stdout.splitlines()) > 1000
    assert vdsh("search", facts["store"], "gradient descent", "-k", 3).stdout.count("sklearn") >= 3
