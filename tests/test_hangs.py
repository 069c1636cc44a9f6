"""No input takes longer than its length: double it, and it takes twice the time."""

import sys
import time
from pathlib import Path
from random import Random

import pytest

from vdsh.documents import Document
from vdsh.documents.ignore import Patterns
from vdsh.documents.markup import text_of, title_of_html, title_of_text
from vdsh.documents.split import place_of, split_text
from vdsh.store import open_store
from vdsh.text.tokenizer import find_spans, find_tokens, tokenize

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import hostile  # noqa: E402

N_INPUTS = 50  # of each kind; benchmarks/bench_hangs.py tries 10,000
SHORT = 5_000  # characters
TIMES = 16  # so many times longer; a quadratic function takes 256 times as long
MOST_TIMES = 64
MEASURABLE = 0.003  # seconds


def seconds(use, text):
    """Say how long a call takes, on a machine that does other work too: the least of two."""
    found = []
    for _ in range(2):
        start = time.process_time()
        use(text)
        found.append(time.process_time() - start)
    return min(found)


def check_linear(use, piece, before=""):
    short = before + piece * (SHORT // len(piece))
    long = before + piece * (TIMES * SHORT // len(piece))
    assert seconds(use, long) < MOST_TIMES * max(MEASURABLE, seconds(use, short))


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("<pre>", " "),
        ("", "&nbsp;"),
        ("", "\t\xa0"),
        ("<ul>", "<li><a>x</a>"),
        ("", "<li><a>x</a> x"),
        ("", "<!--"),
        ("", "<a "),
        ("", "</"),
        ("", "<h1>"),
        ("<script>", "</script "),
        ("<p ", "role="),
        ("&#", "1"),
        ("&#x", "0"),
        ("---\n", "title:\n"),
        ("# a", " #"),
        ("# a", " "),
    ],
)
def test_html_and_titles_are_read_in_the_time_of_their_length(before, piece):
    for use in (text_of, title_of_html, title_of_text):
        check_linear(use, piece, before)


@pytest.mark.parametrize(
    "piece",
    [
        ".", "?!", "…", ".)", "。", "。」", ". ", "\n", " \n", "\n \t", "# ", "\n# a", "\n\n# ",
        "\n\n# " + " " * 5000, "\n## ", "#", "\f", "\x00", "漢", "\u0301", "x",
    ],
)  # fmt: skip
def test_texts_are_split_in_the_time_of_their_length(piece):
    check_linear(split_text, piece)
    check_linear(lambda text: place_of(text, len(text)), piece)


@pytest.mark.parametrize(
    "piece",
    [
        "a", "a'", "'", "'s ", ".", "a.b_", "aB", "\u0301\u0316", "\u0316\u0301x", "ᄀ", "한", "漢",
        "ก็", "\u0e30", "😀\ufe0f", "İ", "\u2019",
    ],
)  # fmt: skip
def test_words_are_found_in_the_time_of_their_text(piece):
    for use in (tokenize, find_spans, lambda text: find_tokens([text])):
        check_linear(use, piece)


@pytest.mark.parametrize("piece", [".", "\u0301\u0316", "a.b_"])
def test_documents_are_written_in_the_time_of_their_length(piece, tmp_path):
    with open_store(tmp_path / "store") as store:
        store.upsert([Document("d", "compiles and loads")])
        check_linear(lambda text: store.upsert([Document("d", text)]), piece)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/a/" * 12 + "b", "a/" * 40 + "c"),
        ("/**" + "/a*/**" * 12 + "/b", "ab/" * 40 + "c"),
        ("a*" * 30 + "b", "a" * 200),
        ("*a" * 30 + "*b", "a" * 200),
        ("?*" * 30 + "b", "a" * 200),
        ("[" * 20_000, "a"),
        (" " * 100_000 + "a", "a"),
    ],
)
def test_nested_stars_of_an_ignore_file_take_no_time(pattern, path):
    start = time.process_time()
    assert not Patterns([pattern]).leave_out(path)
    assert time.process_time() - start < 1


def test_nested_stars_find_what_they_name():
    patterns = Patterns(["**/a/**/b/**/c", "/x/**/y*/**/z"])
    assert patterns.leave_out("q/a/a/b/q/q/c")
    assert patterns.leave_out("a/b/c")
    assert patterns.leave_out("x/y/z") and patterns.leave_out("x/q/y1/q/z/y2/z")
    assert not patterns.leave_out("b/a/c") and not patterns.leave_out("x/y/z/q")


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return hostile.targets(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("name", ["readers", "splitter", "tokenizer", "ignore files", "queries"])
def test_hostile_inputs_take_no_longer_than_their_length_allows(name, targets):
    hostile.measure(name, targets[name], 0)  # kernels are compiled, libraries loaded
    for case in range(N_INPUTS):
        found = hostile.measure(name, targets[name], case)
        assert not found.error, f"case {case}: {found.error}"
        assert found.share <= 1, f"case {case} took {found.seconds:.2f} s for {found.size} bytes"


@pytest.mark.parametrize("query", ["hello \u0301", "\u0301", "\u0301\u0316", "hello \u20dd \u0301"])
def test_a_mark_without_a_letter_in_a_query_is_passed_over(query, targets):
    answer = targets["queries"].store.search(query, k=3)
    assert isinstance(list(answer), list)


def test_the_same_case_is_the_same_input(targets):
    first, again = (targets["readers"].make(Random("readers 5")) for _ in range(2))
    assert first == again
