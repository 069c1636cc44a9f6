"""Passages of long texts, and places in them (#33, #35)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vdsh.documents.split import place_of, split_text


def passages(text, words=250):
    return [text[begin:end] for begin, end in split_text(text, words)]


def sentences(number):
    return [f"This is sentence number {n} of a long text about the moon." for n in range(number)]


def test_a_short_text_is_one_passage():
    assert split_text("") == []
    text = " ".join(["word"] * 299)
    assert split_text(text) == [(0, len(text))]
    assert len(split_text(text + " word" * 20)) == 2


def test_passages_end_with_sentences_and_repeat_the_last_one():
    found = passages(" ".join(sentences(100)))
    assert len(found) == 5
    for before, after in zip(found, found[1:], strict=False):
        assert before.endswith(". ") and after.startswith("This is")
        assert after.startswith(before[before.rindex("This is") :])
        assert 1100 < len(before) < 1500


def test_passages_end_before_headings_and_behind_pages_without_overlap():
    section = " ".join(sentences(15))  # 165 words
    text = f"# One\n\n{section}\n\n## Two\n\n{section}\n## Three\n{section}"
    assert [passage.split("\n")[0] for passage in passages(text)] == ["# One", "## Two", "## Three"]
    assert "".join(passages(text)) == text
    assert passages("\f".join([section] * 3)) == [f"{section}\f", f"{section}\f", section]


def test_passages_prefer_the_end_of_a_paragraph():
    text = "\n\n".join([" ".join(sentences(8))] * 9)
    assert all(passage.endswith("\n\n") for passage in passages(text)[:-1])


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("x" * 2_000_000, 6200),
        ("这是一个没有空格的句子" * 5000, 620),
        ("这是一个句子。" * 5000, 620),
        ("ภาษาไทยไม่มีช่องว่าง" * 5000, 620),
        ("word and " * 20_000, 1500),
        (" " * 300_000, 6200),
        ("\n\n# a" * 20_000, 2000),
    ],
    ids=["one word", "chinese", "sentences", "thai", "no sentence", "spaces", "headings"],
)
def test_texts_without_ends_are_split_into_passages_of_a_size(text, longest):
    spans = split_text(text)
    sizes = [end - begin for begin, end in spans]
    assert 2 <= len(spans) <= 2.4 * len(text) / max(sizes) and max(sizes) <= longest
    assert sum(sizes) <= 1.2 * len(text)


PIECES = st.sampled_from(
    [
        "word ",
        "End. ",
        "\n\n",
        "\n# Head\n\n",
        "\n## H\n",
        "\f",
        " ",
        "\r\n",
        "漢字",
        "。",
        "x" * 50,
        "#",
    ]
)


@given(
    text=st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=300).map("".join),
    words=st.integers(2, 60),
)
@example("word word word 0000000000000\u3400word word ", 2)  # one was inside the one before
def test_passages_cover_the_text_in_order_within_a_size(text, words):
    spans = split_text(text, words)
    assert bool(spans) == bool(text)
    assert spans == split_text(text, words)
    if text:
        assert spans[0][0] == 0 and spans[-1][1] == len(text)
    for (begin, end), (following, last) in zip(spans, spans[1:], strict=False):
        assert begin < following <= end < last
        assert end - following <= 0.15 * (end - begin) + 1
    assert all(0 < end - begin <= 28 * (1.2 * words + 3) for begin, end in spans)


MARKDOWN = """# Guide

Words.

## Install
First of all,

### Linux

unpack.

## Use ##

Run it.
"""


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("Words.", "Guide"),
        ("## Install", "Guide > Install"),
        ("First", "Guide > Install"),
        ("unpack", "Install > Linux"),
        ("Run", "Guide > Use"),
    ],
)
def test_a_place_is_named_by_the_headings_above(words, place):
    for text in (MARKDOWN, MARKDOWN.replace("\n", "\r\n")):
        assert place_of(text, text.index(words)) == place


def test_a_place_in_a_text_with_pages_is_the_page():
    text = "# One\f\n## Two\f"
    assert [place_of(text, at) for at in (0, 5, 6, len(text))] == ["page 1", "page 1", "page 2"] + [
        "page 3"
    ]


def test_comments_in_code_are_no_headings():
    code = "#!/bin/sh\n\n# Make it\n# whole.\nmake\n\n# Then clean\nrm x\n\n#define X\n"
    assert place_of(code, len(code)) == ""


@given(text=st.text("#ab \n\r\f", max_size=80), at=st.integers(0, 90))
def test_every_character_has_a_place(text, at):
    assert "\n" not in place_of(text, at)
