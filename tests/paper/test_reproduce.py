"""The paper's tables and figures on corpora small enough to run in seconds."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from conftest import toy_corpus
from vdsh.errors import InputError
from vdsh.hashers import VDSH
from vdsh.hashers.vdsh import defaults
from vdsh.hashers.vdsh.presets import PAPER, paper_settings
from vdsh.paper import cell_files, cells, reproduction, settings
from vdsh.paper.cells import Cell
from vdsh.paper.corpora import TITLES, Part, show_some
from vdsh.paper.reference import BITS, DATASETS, METHODS, OURS, TABLE1, TABLE2
from vdsh.paper.reproduction import ITEMS, reproduce
from vdsh.paper.results import Request, Results, is_better
from vdsh.paper.runner import Plan
from vdsh.paper.settings import ABLATIONS, GRIDS
from vdsh.paper.tables import table1


def write_corpus(folder: Path, documents: list[dict]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "documents.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data folder with the two-topic corpus in the place of Reuters."""
    texts, labels = toy_corpus(240)
    documents = [
        {"id": f"d{i}", "text": text, "labels": [label], "split": "train"}
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    write_corpus(tmp_path / "data" / "reuters", documents)
    for preset in PAPER.values():
        monkeypatch.setitem(preset, "epochs", 5)  # a toy needs no more
        monkeypatch.setitem(preset, "hidden_size", 50)
    monkeypatch.setenv("VDSH_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def record_of(cells_folder: Path, name: str) -> dict:
    """Read a cell by its name, such as "reuters20/lsh-8-seed0"."""
    path = cells_folder / f"{name.partition('/')[0]}.jsonl"
    for line in path.read_text().splitlines():
        cell = Cell(**json.loads(line)["cell"])
        if cell.name == name:
            return cell_files.read(cells_folder, cell)
    raise AssertionError(f"{path} has no cell {name}")


def names_in(path: Path) -> list[str]:
    return [Cell(**json.loads(line)["cell"]).name for line in path.read_text().splitlines()]


TABLE = ["reproduce", "table1", "--datasets", "reuters20", "--models", "vdsh-s", "--models", "lsh"]


def test_a_table_is_run_printed_and_written(vdsh, root, tmp_path):
    result = vdsh(*TABLE, "--bits", 8, "--bits", 16, "-q")
    assert result.returncode == 0, result.stderr
    assert "VDSH-S" in result.stdout and "0.912 /" in result.stdout  # the paper's 16 bits
    assert "20 most frequent categories" in (tmp_path / "results" / "table1.md").read_text()
    names = names_in(tmp_path / "results/cells/reuters20.jsonl")
    assert names == [f"reuters20/{m}-{n}-seed0" for m in ("lsh", "vdsh-s") for n in (16, 8)]


def test_a_row_shows_what_a_person_without_labels_gets(vdsh, root, tmp_path):  # #31 C4
    table = ["reproduce", "table1", "--datasets", "reuters20", "--models", "vdsh", "--bits", 8]
    assert vdsh(*table).returncode == 0
    found = record_of(tmp_path / "results/cells", "reuters20/vdsh-8-0percent-seed0")
    assert len(found["tried"]) == 1 and found["learned_from"]["labelled"] == 0
    assert "| VDSH, no labels at all | 0." in (tmp_path / "results/table1.md").read_text()


def test_check_lists_cells_that_are_not_of_todays_code(vdsh, root, monkeypatch):  # #31 C1
    only = Request(("reuters20",), (8,), ("lsh",))
    monkeypatch.setitem(ITEMS, "table1", ITEMS["table1"]._replace(defaults=only))
    check = ["reproduce", "table1", "--check"]
    missing = vdsh(*check)
    assert missing.returncode == 1 and missing.stdout == "reuters20/lsh-8-seed0\n"
    assert vdsh("reproduce", "table1").returncode == 0
    found = vdsh(*check)
    assert (found.returncode, found.stdout) == (0, "")
    monkeypatch.setitem(settings.METHOD, "lsh", 99)
    assert "reuters20/lsh-8-seed0" in vdsh(*check).stdout
    assert "1 cells are missing or not of today's code." in vdsh(*check).stderr


def test_the_preset_of_rcv1_takes_fifteen_epochs():  # #31 C4, section 4.2 of the paper
    assert paper_settings("vdsh", "rcv1")["epochs"] == 15


def test_a_cell_keeps_what_is_needed_to_trace_and_compare_it(vdsh, root, tmp_path):
    vdsh(*TABLE, "--bits", 8)
    cell = record_of(tmp_path / "results/cells", "reuters20/vdsh-s-8-seed0")
    assert cell["cell"] == {"dataset": "reuters20", "model": "vdsh-s", "n_bits": 8}
    assert cell["settings"]["learning_rate"] == 0.001
    assert set(cell["circumstances"]) >= {"commit", "date", "machine", "versions"}
    assert "seed 0" in cell["data"]
    queries = cell["per_query_permille"]["median"]
    assert len(queries) == cell["queries"] == 24
    assert np.mean(queries) / 1000 == pytest.approx(cell["precision"]["median"], abs=1e-3)
    assert [tried["validation"] for tried in cell["tried"]]


def test_finished_cells_are_not_run_again(vdsh, root, tmp_path, monkeypatch):
    vdsh(*TABLE, "--bits", 8)

    def fail(*_, **__):
        raise AssertionError("a finished cell was run again")

    monkeypatch.setattr(cells, "run", fail)
    assert vdsh(*TABLE, "--bits", 8).returncode == 0


def test_an_interrupted_table_goes_on_where_it_stopped(vdsh, root, tmp_path, monkeypatch):
    run, done = cells.run, []

    def stop_at_the_second(cell, **options):
        if done:
            raise KeyboardInterrupt
        done.append(cell)
        return run(cell, **options)

    monkeypatch.setattr(cells, "run", stop_at_the_second)
    result = vdsh(*TABLE, "--bits", 8)
    assert result.returncode == 130
    assert "the same command resumes" in result.stderr
    lines = tmp_path / "results/cells/reuters20.jsonl"
    (kept,) = lines.read_text().splitlines()
    monkeypatch.setattr(cells, "run", run)
    assert vdsh(*TABLE, "--bits", 8).returncode == 0
    after = lines.read_text().splitlines()
    assert kept in after and len(after) == 2


def test_a_cell_with_a_new_candidate_is_run_again(vdsh, root, tmp_path, monkeypatch):
    table = ["reproduce", "table1", "--datasets", "reuters20", "--models", "ksh", "--bits", 8]
    monkeypatch.setitem(GRIDS, "ksh", [{"ridge": 0.1}])
    vdsh(*table)
    before = record_of(tmp_path / "results/cells", "reuters20/ksh-8-seed0")
    monkeypatch.setitem(GRIDS, "ksh", [{"ridge": 0.1}, {"ridge": 1e9}])
    assert vdsh(*table).returncode == 0
    after = record_of(tmp_path / "results/cells", "reuters20/ksh-8-seed0")
    assert [one["settings"]["ridge"] for one in after["tried"]][::2] == [0.1, 1e9]
    scores = [one["validation"] for one in after["tried"]]
    assert (max(scores[2:]) > max(scores[:2])) == (after["precision"] != before["precision"])


def test_cells_of_older_defaults_and_rules_are_run_again(vdsh, root, tmp_path, monkeypatch):
    """#16 A10: the key of our defaults was {}, whatever they were."""
    runs, run = [], cells.run
    monkeypatch.setattr(cells, "run", lambda *a, **o: runs.append(a) or run(*a, **o))
    monkeypatch.setattr(defaults, "_epochs", lambda usual, n_bits: 1)
    monkeypatch.setitem(VDSH.__init__.__kwdefaults__, "hidden_size", 16)
    table = ["reproduce", "defaults", "--datasets", "reuters20", "--models", "vdsh", "--bits", 8]
    changes = [
        lambda: None,
        lambda: monkeypatch.setitem(VDSH.__init__.__kwdefaults__, "dropout", 0.5),
        lambda: monkeypatch.setattr(defaults, "_epochs", lambda usual, n_bits: 2),
    ]
    for done, change in enumerate(changes, 1):
        change()
        for _ in range(2):
            assert vdsh(*table, "--seeds", 0, "-q").returncode == 0
            assert len(runs) == done
    cell = record_of(tmp_path / "results/cells", "reuters20/vdsh-8-best-seed0")
    assert (cell["settings"]["dropout"], cell["settings"]["epochs"]) == (0.5, 2)
    (tried,) = cell["tried"]
    assert tried["settings"] == {}
    assert cell["learned_from"] == {"documents": 192, "labelled": 192}


def test_a_damaged_cell_is_run_again(vdsh, root, tmp_path):
    vdsh(*TABLE, "--bits", 8)
    path = tmp_path / "results/cells/reuters20.jsonl"
    damaged, whole = path.read_text().splitlines()
    path.write_text(f"{damaged[:100]}\n{whole}\n")
    assert vdsh(*TABLE, "--bits", 8).returncode == 0
    lsh, vdsh_s = path.read_text().splitlines()
    assert json.loads(lsh)["cell"]["model"] == "lsh"
    assert vdsh_s == whole


@pytest.mark.slow
def test_cells_run_side_by_side_give_the_same_numbers(root, tmp_path):
    for jobs in (1, 2):
        plan = Plan(tmp_path / str(jobs), str(root), "cpu", jobs, quiet=True)
        options = {"datasets": ["reuters20"], "bits": [8, 16], "models": ["lsh", "sph"]}
        assert not reproduce("table1", tmp_path / "out", plan, **options).failed
    names = names_in(tmp_path / "1" / "reuters20.jsonl")
    assert len(names) == 4
    assert names_in(tmp_path / "2" / "reuters20.jsonl") == names
    for name in names:
        alone, together = (record_of(tmp_path / jobs, name) for jobs in ("1", "2"))
        assert alone["precision"] == pytest.approx(together["precision"])


def test_seeds_are_averaged_over_their_own_splits(root, tmp_path):
    plan = Plan(tmp_path / "cells", str(root), "cpu", quiet=True)
    reproduce(
        "table1", tmp_path, plan, datasets=["reuters20"], bits=[8], models=["lsh"], seeds=[1, 2]
    )
    outcome = Results(tmp_path / "cells", [1, 2]).precision(Cell("reuters20", "lsh", 8))
    each = [Results(tmp_path / "cells", [s]).precision(Cell("reuters20", "lsh", 8)) for s in (1, 2)]
    assert outcome.mean == pytest.approx(np.mean([one.mean for one in each]))
    assert len(outcome.per_query) == 48


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tabel1"], "No table or figure 'tabel1'. Did you mean 'table1'?"),
        (["table1", "--datasets", "reuter20"], "No dataset 'reuter20'. Did you mean 'reuters20'?"),
        (["table1", "--models", "vdshs"], "No method 'vdshs'. Did you mean 'vdsh-s'?"),
        (["table1", "--bits", "12"], "n_bits must be a multiple of 8 from 8 to 1024. Got 12."),
        (["table1", "--jobs", "0"], "jobs must be at least 1. Got 0."),
        ([], "Name a table or figure: table1, table2"),
        (["tabel1", "--check"], "No table or figure 'tabel1'. Did you mean 'table1'?"),
    ],
)
def test_wrong_names_are_refused_with_a_suggestion(vdsh, arguments, sentence):
    result = vdsh("reproduce", *arguments)
    assert result.returncode == 1
    assert sentence in result.stderr


def test_unlabelled_documents_are_not_judged_and_the_table_says_so(vdsh, root, tmp_path):
    texts, labels = toy_corpus(240)
    documents = [
        {"id": f"d{i}", "text": text, "labels": [label] if i % 4 else None}
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    write_corpus(root / "reuters", documents)
    result = vdsh("reproduce", "table1", "--datasets", "reuters", "--bits", 8, "--models", "vdsh-s")
    assert result.returncode == 0, result.stderr
    assert (
        "documents without labels were not judged" in (tmp_path / "results/table1.md").read_text()
    )


def test_a_corpus_without_labels_fails_with_a_sentence(vdsh, root):
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(toy_corpus()[0])]
    write_corpus(root / "reuters", documents)
    result = vdsh("reproduce", "table1", "--datasets", "reuters", "--bits", 8, "--models", "vdsh-s")
    assert result.returncode == 1
    assert "reuters/vdsh-s-8-seed0 was not made." in result.stderr
    assert "labels" in result.stderr


def test_fewer_than_k_documents_are_all_counted_and_the_table_says_so(vdsh, root, tmp_path):
    texts, labels = toy_corpus(80)
    rows = enumerate(zip(texts, labels, strict=True))
    write_corpus(
        root / "reuters", [{"id": f"d{i}", "text": t, "labels": [y]} for i, (t, y) in rows]
    )
    vdsh("reproduce", "table1", "--datasets", "reuters", "--bits", 8, "--models", "lsh")
    note = "only 64 documents to find, so precision at 64"
    assert note in (tmp_path / "results/table1.md").read_text()


def test_a_missing_corpus_is_said_before_anything_else(vdsh, root):
    result = vdsh("reproduce", "table1", "--datasets", "tmc", "--bits", 8, "--models", "lsh")
    assert result.returncode == 1
    assert "tmc" in result.stderr and "VDSH_DATA" in result.stderr


def test_table_2_and_figures_2_and_3_come_from_cells(vdsh, root, tmp_path):
    vdsh("reproduce", "table2", "--datasets", "reuters20", "--bits", 8, "--models", "vdsh")
    assert "median" in (tmp_path / "results/table2.md").read_text()
    common = ["--datasets", "reuters20", "--bits", 8]
    assert (
        vdsh("reproduce", "figure2", *common, "--models", "lsh", "--models", "vdsh").returncode == 0
    )
    assert vdsh("reproduce", "figure3", *common, "--models", "vdsh").returncode == 0
    for name in ("figure2.png", "figure3.png"):
        assert (tmp_path / "results" / name).read_bytes().startswith(b"\x89PNG")
    assert "TFIDF" in (tmp_path / "results/figure3.md").read_text()


def test_few_labels_and_single_changes_have_tables(vdsh, root, tmp_path, monkeypatch):
    monkeypatch.setitem(ABLATIONS, "vdsh", {"median": {"threshold": "median"}})
    monkeypatch.setattr(reproduction, "SHARES", (10, 100))  # 1 % of the toy is one document
    common = ["--datasets", "reuters20", "--bits", 8, "--seeds", 0]
    assert vdsh("reproduce", "semisupervised", *common, "--models", "vdsh-s").returncode == 0
    rows = (tmp_path / "results/semisupervised.md").read_text()
    assert "VDSH, no labels" in rows and "VDSH-S, 10 % of the labels" in rows
    assert vdsh("reproduce", "ablation", *common, "--models", "vdsh").returncode == 0
    assert re.search(
        r"\| median \| 0\.\d+ \([+-]0\.\d+\) \|", Path("results/ablation.md").read_text()
    )


def test_hidden_labels_are_not_seen():
    part = Part(np.zeros((200, 3)), ["a"] * 200)
    assert sum(label is not None for label in show_some(part, 10, 0).labels) == 20
    assert show_some(part, 100, 0).labels == part.labels
    assert set(show_some(part, 0, 0).labels) == {None}


def test_figure_4_maps_test_documents_and_names_the_papers_posts(vdsh, root, tmp_path):
    texts, labels = toy_corpus(240)
    posts = [
        {"id": f"{y}/{i}", "text": f"From: a@b\nSubject: post {i}\n\n{t}", "labels": [y]}
        for i, (t, y) in enumerate(zip(texts, labels, strict=True))
    ]
    for post, title in zip(posts[1::2], TITLES, strict=False):
        post["text"] = post["text"].replace("post", title + "\nX-Old:", 1)
    write_corpus(root / "20newsgroups", posts)
    result = vdsh("reproduce", "figure4", "--bits", 8)
    assert result.returncode == 0, result.stderr
    found = record_of(tmp_path / "results/cells", "20newsgroups/vdsh-s-8-map-seed0")
    assert len(found["points"]) == len(found["class_of_point"]) >= 24
    assert found["classes"] == ["space", "sport"]
    assert set(found["titles"]) == set(TITLES)
    assert (tmp_path / "results/figure4.png").read_bytes().startswith(b"\x89PNG")
    assert "hockey pair" in (tmp_path / "results/figure4.md").read_text()
    stale = reproduction.stale("figure4", tmp_path / "results/cells")
    assert [cell.model for cell in stale] == ["shttm", "vdsh-s"]  # of 32 bits: cells like others


def test_the_mark_needs_a_significant_difference(tmp_path):
    rng = np.random.default_rng(0)
    near = rng.integers(400, 600, 200)
    made = {"lsh": near, "vdsh-s": near + 30, "vdsh-sp": near + rng.integers(-100, 101, 200)}
    for model, values in made.items():
        _keep(tmp_path, Cell("tmc", model, 8), values)
    results = Results(tmp_path, [0])
    better, unsure, base = (
        results.precision(Cell("tmc", model, 8)) for model in ("vdsh-s", "vdsh-sp", "lsh")
    )
    assert is_better(better, base) and not is_better(unsure, base)
    sheet = table1(Request(("tmc",), (8,), tuple(made)), Results(tmp_path, (0,)))
    assert ["†" in row[1] for row in sheet.rows] == [False, True, False]


def _keep(folder: Path, cell: Cell, permille) -> None:
    mean = float(np.mean(permille)) / 1000
    result = {
        "cell": cell._asdict(),
        "data": "made up",
        "k": 100,
        "unlabelled": 0,
        "threshold": "median",
        "precision": {"median": mean},
        "per_query_permille": {"median": permille},
    }
    cell_files.write(folder, cell, result)


def test_the_papers_numbers_are_complete():
    assert set(TABLE1) == set(TABLE2) == set(DATASETS)
    for rows in TABLE1.values():
        assert set(rows) == set(METHODS) - {"itq"}
        assert all(len(row) == len(BITS) for row in rows.values())
    assert all(set(rows) == set(OURS) for rows in TABLE2.values())
    # Ten methods and VDSH without labels, five lengths, four corpora and Reuters with 90 labels.
    assert len(ITEMS["table1"].cells(ITEMS["table1"].defaults)) == 11 * 5 * 5


def test_an_unknown_name_raises_from_python_too(tmp_path):
    with pytest.raises(InputError, match="No table or figure"):
        reproduce("figure9", tmp_path, Plan(tmp_path))
