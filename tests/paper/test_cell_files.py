"""Finished cells on disk: one line each, values beside them, and none of them ever lost."""

import json
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from vdsh.errors import WriteError
from vdsh.paper import cell_files
from vdsh.paper.cells import Cell

RESULTS = Path(__file__).parents[2] / "results"


def test_committed_results_stay_small():
    files = [path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert len(files) <= 60
    assert sum(path.stat().st_size for path in files) <= 3_000_000


def record(values, **fields):
    return {"data": "made up", "per_query_permille": {"median": values}} | fields


def test_a_cell_comes_back_with_the_values_of_its_queries(tmp_path):
    cell = Cell("tmc", "vdsh", 32, seed=2, preset="best")
    values = {"median": np.array([1, 0, 1000]), "best": [5, 6, 7]}
    cell_files.write(tmp_path, cell, {"data": "é", "per_query_permille": values})
    found = cell_files.read(tmp_path, cell)
    assert found["data"] == "é"
    assert {name: column.tolist() for name, column in found["per_query_permille"].items()} == {
        "median": [1, 0, 1000],
        "best": [5, 6, 7],
    }
    assert cell_files.read(tmp_path, cell._replace(seed=1)) is None
    assert cell_files.read(tmp_path, cell._replace(dataset="rcv1")) is None


def test_each_cell_is_a_line_and_a_cell_that_is_run_again_replaces_its_own(tmp_path):
    first, second = Cell("tmc", "vdsh", 8), Cell("tmc", "lsh", 8)
    cell_files.write(tmp_path, first, record([1, 2], run=1))
    cell_files.write(tmp_path, second, record([3, 4]))
    cell_files.write(tmp_path, first, record([5, 6], run=2))
    lines = (tmp_path / "tmc.jsonl").read_text().splitlines()
    assert [json.loads(line)["cell"]["model"] for line in lines] == ["lsh", "vdsh"]
    assert cell_files.read(tmp_path, first)["run"] == 2
    assert cell_files.read(tmp_path, first)["per_query_permille"]["median"].tolist() == [5, 6]
    assert cell_files.read(tmp_path, second)["per_query_permille"]["median"].tolist() == [3, 4]


def test_the_same_cells_give_the_same_bytes_in_any_order(tmp_path):
    cells = [Cell("tmc", "lsh", n_bits) for n_bits in (8, 16, 32)]
    for folder, order in ((tmp_path / "a", cells), (tmp_path / "b", cells[::-1])):
        for cell in order:
            cell_files.write(folder, cell, record(range(cell.n_bits)))
    for name in ("tmc.jsonl", "tmc.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_values_are_a_file_that_numpy_reads_by_itself(tmp_path):
    cell_files.write(tmp_path, Cell("tmc", "lsh", 8), record([1, 2, 3]))
    cell_files.write(tmp_path, Cell("tmc", "sph", 8), record([4, 5]))
    with np.load(tmp_path / "tmc.npz", allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == ["tmc/lsh-8-seed0 median", "tmc/sph-8-seed0 median"]
        assert arrays["permille"].T.tolist() == [[1, 2, 3], [4, 5, -1]]


LENGTHS = range(8, 129, 8)


def write_many(folder, seed):
    for n_bits in LENGTHS:
        cell_files.write(folder, Cell("tmc", "lsh", n_bits, seed), record([seed, n_bits]))


def check_that_no_cell_is_lost(folder, seeds):
    for seed in seeds:
        for n_bits in LENGTHS:
            found = cell_files.read(folder, Cell("tmc", "lsh", n_bits, seed))
            assert found["per_query_permille"]["median"].tolist() == [seed, n_bits]


def test_threads_that_write_at_once_lose_no_cell(tmp_path):
    seeds = range(4)
    with ThreadPoolExecutor(len(seeds)) as pool:
        list(pool.map(write_many, [tmp_path] * len(seeds), seeds))
    check_that_no_cell_is_lost(tmp_path, seeds)


@pytest.mark.slow
def test_processes_that_write_at_once_lose_no_cell(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_many, args=(tmp_path, seed)) for seed in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    check_that_no_cell_is_lost(tmp_path, range(2))


def test_a_process_that_is_killed_between_the_files_loses_only_the_cell_it_wrote(tmp_path):
    kept, again = Cell("tmc", "lsh", 8), Cell("tmc", "sph", 8)
    cell_files.write(tmp_path, kept, record([1, 2]))
    cell_files.write(tmp_path, again, record([3, 4]))
    lines = (tmp_path / "tmc.jsonl").read_bytes()
    cell_files.write(tmp_path, again, record([5, 6]))
    cell_files.write(tmp_path, Cell("tmc", "vdsh", 8), record([7, 8]))
    (tmp_path / "tmc.jsonl").write_bytes(lines)  # the values took their place, the lines did not
    assert cell_files.read(tmp_path, kept)["per_query_permille"]["median"].tolist() == [1, 2]
    assert cell_files.read(tmp_path, again) is None
    cell_files.write(tmp_path, again, record([5, 6]))
    assert cell_files.read(tmp_path, again)["per_query_permille"]["median"].tolist() == [5, 6]
    with np.load(tmp_path / "tmc.npz", allow_pickle=False) as arrays:
        assert len(arrays["names"]) == 2


def test_an_interrupted_write_changes_nothing(tmp_path, monkeypatch):
    cell = Cell("tmc", "lsh", 8)
    cell_files.write(tmp_path, cell, record([1, 2]))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cell_files, "_write_columns", stop)
    with pytest.raises(KeyboardInterrupt):
        cell_files.write(tmp_path, cell, record([3, 4]))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("damage", [b"", b"no zip", None], ids=["empty", "no zip", "cut short"])
def test_cells_whose_values_are_damaged_count_as_missing(damage, tmp_path):
    cell = Cell("tmc", "lsh", 8)
    cell_files.write(tmp_path, cell, record(range(500)))
    values = tmp_path / "tmc.npz"
    values.write_bytes(values.read_bytes()[:-200] if damage is None else damage)
    assert cell_files.read(tmp_path, cell) is None
    cell_files.write(tmp_path, cell, record([9]))
    assert cell_files.read(tmp_path, cell)["per_query_permille"]["median"].tolist() == [9]


@pytest.mark.parametrize("line", ["", "no JSON", "[]", "{}", '{"cell":{}}', '{"cell":{"a":1}}'])
def test_lines_that_cannot_be_read_do_not_hide_the_others(line, tmp_path):
    cell = Cell("tmc", "lsh", 8)
    cell_files.write(tmp_path, cell, record([1]))
    path = tmp_path / "tmc.jsonl"
    path.write_text(f"{line}\n{path.read_text()}")
    assert cell_files.read(tmp_path, cell)["data"] == "made up"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "cells").write_text("a file")
    with pytest.raises(WriteError, match="Could not write"):
        cell_files.write(tmp_path / "cells", Cell("tmc", "lsh", 8), record([1]))
