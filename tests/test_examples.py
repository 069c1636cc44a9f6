"""The examples, run as a reader runs them: their stories must come true."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from vdsh.documents import docstrings

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def story(tmp_path, monkeypatch, capsys):
    """Run an example in an empty folder; give what it prints."""

    monkeypatch.setattr(docstrings, "collect", collected)

    def run(name):
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"
        return capsys.readouterr().out

    return run


collect = cache(docstrings.collect)  # most examples begin with the same ones


def collected(**options):
    return list(collect(**options))


def numbers(text):
    """Read lines that end in a number: {"all labels": 0.985}."""
    return {
        name: float(value)
        for name, value in re.findall(r"^ +(\S.*?) +(\d\.\d+)$", text, re.MULTILINE)
    }


def test_hash_and_search_finds_what_was_asked_for(story):
    text = story("hash_and_search")
    answers = [block.splitlines()[1:] for block in text.split("\n\n")[1:]]
    wanted = ("turtle.", "email.", "sklearn.metrics.")
    right = [line.split()[-1].startswith(area) for area, hits in zip(wanted, answers, strict=True)
             for line in hits]  # fmt: skip
    assert len(right) == 9
    assert sum(right) >= 6


def test_labels_make_codes_better(story):
    found = numbers(story("supervised_codes"))
    assert list(found) == ["no labels", "every eighth label", "all labels"]
    assert found["all labels"] > found["no labels"] > 0.5
    assert found["all labels"] > found["every eighth label"] > 0.5


def test_planted_near_duplicates_are_found_and_deleted(story):
    text = story("near_duplicates")
    found = re.findall(r"similarity \S+: (\d) of 9 planted copies found, (\d+) other", text)
    planted = [int(n) for n, _ in found]
    assert planted == sorted(planted)
    assert planted[-1] == 9
    deleted, left = map(int, re.search(r"Deleted (\d+); (\d+) documents", text).groups())
    assert deleted == sum(map(int, found[-1]))
    assert deleted + left > 600


def test_bits_and_texts_are_explained(story):
    text = story("explain_a_bit")
    assert len(re.findall(r"^ +\d  1: \w+", text, re.MULTILINE)) == 4
    assert re.search(r"Its surest bit is \d+: a [01], because of \w+", text)
    drawn = dict(re.findall(r"^  (turtle|email): (.*)$", text, re.MULTILINE))
    assert "turtle" in drawn["turtle"].split()
    assert {"message", "header"} & set(drawn["email"].split())


@pytest.mark.slow
def test_a_hasher_works_in_a_pipeline(story):
    text = story("sklearn_pipeline")
    shares = [int(share) for share in re.findall(r"(\d+)%", text)]
    assert len(shares) == 4
    assert min(shares) > 50  # one in six by chance
    assert text.endswith("is about turtle\n")


def test_faiss_gives_the_answers_of_the_store(story):
    pytest.importorskip("faiss")
    text = story("faiss_export")
    assert len(re.findall(r"^ +\d+  scipy\.signal", text, re.MULTILINE)) >= 3
    assert text.endswith("the same.\n")


def test_a_store_is_a_retriever_of_langchain(story):
    pytest.importorskip("langchain_core")
    text = story("langchain_retriever")
    assert text.startswith("turtle.TNavigator.circle: Draw a circle")
    assert "Answer from these pages:\n['turtle." in text


def test_a_store_is_a_retriever_of_llamaindex(story):
    pytest.importorskip("llama_index.core")
    found = re.findall(r"^  \d\.\d\d  (\w+)\.", story("llamaindex_retriever"), re.MULTILINE)
    assert found == ["turtle"] * 3 + ["email"] * 3


def test_methods_are_compared(story):
    text = story("compare_methods")
    found = numbers(text)
    assert {"random", "exact tf-idf cosine", "lsh", "sph", "itq", "vdsh", "vdsh-s"} == set(found)
    assert min(found, key=found.get) == "random"
    assert max(found, key=found.get) == "vdsh-s"
    assert len(re.findall(r"p = \S+: (is real|may be luck)", text)) == 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_is_short_and_tested(path):
    assert len(path.read_text().splitlines()) < 60
    assert f'story("{path.stem}")' in Path(__file__).read_text()


def test_codes_of_embeddings_find_neighbours_and_more_with_a_query_that_keeps_its_numbers(story):
    found = numbers(story("small_embeddings"))
    for model in ("lsh", "itq"):
        by_code = found[f"{model}, 8 bytes against 8 bytes"]
        assert found[f"{model}, a query with its numbers"] > by_code
    assert found["itq, 8 bytes against 8 bytes"] > found["lsh, 8 bytes against 8 bytes"]
