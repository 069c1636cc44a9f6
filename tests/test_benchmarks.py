"""Benchmarks measure, record and print in one way (#32)."""

import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import columns  # noqa: E402
import common  # noqa: E402


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("VDSH_RESULTS", str(tmp_path))

    def run(measure, words="", **defaults):
        monkeypatch.setattr(sys, "argv", ["benchmarks/bench_toy.py", *words.split()])
        common.run(measure, **defaults)
        return {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}

    return run


def seen(given):
    return {name: value for name, value in vars(given).items() if name not in ("only", "quick")}


def test_a_result_has_its_circumstances(results, capsys):
    found = results(lambda given: {"rows": [{"a": 1}, {"a": 2, "b": 3}]})["toy"]
    assert {"commit", "machine", "versions"} <= found["circumstances"].keys()
    assert found["seed"] == 0 and found["load"] >= 0
    assert "| 1 |  |" in capsys.readouterr().out


def test_a_quick_run_takes_a_hundredth_of_what_is_large(results):
    options = {"documents": 1_000_000, "sizes": (20_000, 50), "rounds": 5, "folder": Path}
    small = {"documents": 10_000, "sizes": [200, 50], "rounds": 5, "folder": None}
    assert results(seen, "--quick", **options)["toy"].items() >= small.items()
    given = results(seen, "--quick --documents 70 --folder x", documents=1_000_000, folder=str)
    assert given["toy"]["documents"] == 70 and given["toy"]["folder"] == "x"


def test_another_number_of_documents_has_a_result_of_its_own(results):
    results(seen, documents=500)
    assert results(seen, "--documents 7", documents=500).keys() == {"toy", "toy_7"}


def test_parts_are_chosen_and_leave_out_what_cannot_be_measured(results):
    parts = {"": seen, "gpu": lambda given: None, "other": seen}
    assert results(parts).keys() == {"toy", "toy_other"}
    assert results({"a": seen, "b": seen}, "--only b").keys() == {"toy", "toy_other", "toy_b"}


def test_contenders_take_turns_and_the_first_round_does_not_count(monkeypatch):
    calls = []
    work = {name: lambda name=name: calls.append(name) for name in "abc"}
    assert common.alternate(work, 2).keys() == set("abc")
    assert "".join(calls) == "abcbcacab"
    clock = iter([0.0, 9.0, 9.0, 10.0, 10.0, 13.0, 13.0, 15.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert common.alternate({"a": lambda: None}, 3) == {"a": 2.0}


def test_a_cell_is_filled_from_a_row():
    row = {"n": 1234.5, "ms": {"ours": 0.0123}}
    assert columns.shown("{n:three} {ms[ours]:three}", row) == "1,234 0.0123"
    assert [columns.shown(f"{{n:{digits}}}", {"n": 7.85}) for digits in ("one", "two")] == (
        ["7.8", "7.8"]
    )
    assert columns.maybe("{missing} ms", "–")(row) == "–"
    assert common.markdown(["", "b"], [["1", "2"]], tight=True) == "| | b |\n|---|---|\n| 1 | 2 |"
