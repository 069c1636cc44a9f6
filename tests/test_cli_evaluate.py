import json

import pytest

from conftest import toy_corpus
from vdsh.pipeline import TextHasher


def test_documents_of_a_file_search_one_another(vdsh, model_folder, docs):
    result = vdsh("evaluate", model_folder, docs, "-k", 10)
    assert result.returncode == 0, result.stderr
    assert "80 queries, 79 documents each" in result.stdout
    assert "precision@10     1.0000" in result.stdout


def test_json_holds_every_measure(vdsh, model_folder, docs):
    facts = json.loads(vdsh("evaluate", model_folder, docs, "-k", 10, "--json").stdout)
    assert set(facts["measures"]) == {
        "precision@10",
        "precision<=2",
        "recall@10",
        "recall<=2",
        "MAP",
        "NDCG@10",
    }


def test_queries_may_search_other_documents(vdsh, model_folder, docs, tmp_path):
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "q", "text": "orbit moon crew", "labels": ["space"]}\n')
    facts = json.loads(
        vdsh("evaluate", model_folder, queries, "--database", docs, "-k", 5, "--json").stdout
    )
    assert (facts["queries"], facts["documents"]) == (1, 80)
    assert facts["measures"]["precision@5"] == 1


def test_two_models_are_compared_on_the_same_queries(vdsh, model_folder, docs, tmp_path):
    TextHasher("lsh", 8, random_state=0).fit(toy_corpus()[0]).save(tmp_path / "lsh")
    arguments = ["evaluate", model_folder, docs, "--against", "lsh", "-k", 10]
    facts = json.loads(vdsh(*arguments, "--json").stdout)
    found = facts["comparison"]
    gain = facts["measures"]["precision@10"] - facts["against"]["precision@10"]
    assert found["difference"] == pytest.approx(gain)
    assert found["low"] < found["difference"] < found["high"]
    lines = vdsh(*arguments).stdout.splitlines()
    assert "paired t-test p =" in lines[-1]
    assert lines[1].split() == [str(model_folder), "lsh"]  # #16 D4
    column = lines[1].index("lsh")
    assert lines[2][column:] == f"{facts['against']['precision@10']:.4f}"


def test_values_of_each_query_are_written_whole_or_not(vdsh, model_folder, docs, tmp_path):
    arguments = ["evaluate", model_folder, docs, "--per-query", "values.json"]
    assert vdsh(*arguments).returncode == 0
    assert len(json.loads((tmp_path / "values.json").read_text())["MAP"]) == 80
    again = vdsh(*arguments)
    assert again.returncode == 1 and "'values.json' exists" in again.stderr
    assert vdsh(*arguments, "--force").returncode == 0


def test_fewer_than_k_documents_are_said(vdsh, model_folder, docs):
    result = vdsh("evaluate", model_folder, docs)
    assert "Only 79 documents can be found, so k is 79 instead of 100." in result.stderr


def test_documents_without_labels_are_refused(vdsh, model_folder, tmp_path):
    (tmp_path / "plain.jsonl").write_text('{"id": "a", "text": "orbit"}\n' * 1)
    result = vdsh("evaluate", model_folder, "plain.jsonl")
    assert result.returncode == 1
    assert "None of the 1 documents has labels" in result.stderr


def test_a_name_that_is_neither_corpus_nor_file(vdsh, model_folder):
    result = vdsh("evaluate", model_folder, "20newsgroup")
    assert result.returncode == 1
    assert "No file and no dataset '20newsgroup'. Did you mean '20newsgroups'?" in result.stderr
