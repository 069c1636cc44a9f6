"""The demo on a few packages; CI runs `make demo`, which is the whole of it."""

import json
from functools import partial

import pytest

from vdsh.documents import docstrings

PACKAGES = (
    "asyncio",
    "email",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
)
QUERIES = (
    "solve a system of linear equations",
    "wait until a task is done",
    "copy a directory tree",
)


@pytest.fixture
def few_packages(monkeypatch):
    monkeypatch.setattr(docstrings, "collect", partial(docstrings.collect, modules=PACKAGES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vdsh.model.health.BitHealthWarning")  # four areas: bits repeat
def test_the_demo_adds_learns_and_searches(vdsh, few_packages, tmp_path):
    result = vdsh("demo", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    found = facts["quality"]["values"]
    assert found["codes"] > 2 * found["random"]
    assert [one["query"] for one in facts["searches"]] == list(QUERIES)
    assert all(len(one["hits"]) == 3 for one in facts["searches"])
    search = vdsh("search", facts["store"], "sparse matrix", "--json")
    assert len(search.stdout.splitlines()) == 10
    drift = vdsh("drift", facts["store"])  # #31: nothing in it is newer than its model
    assert drift.returncode == 0 and drift.stdout.startswith("Nothing to compare")
    again = json.loads(vdsh("add", facts["store"], facts["documents"], "--json").stdout)
    assert again["added"] == again["changed"] == 0 and again["unchanged"] > 1000
    assert vdsh("search", facts["store"], "gradient descent", "-k", 3).stdout.count("sklearn") >= 3
