"""Passages in one line: never longer than asked, always with the words."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vdsh.words.passages import cut_passage, find_passage, n_cells, one_line, show_passage

WORDS = st.lists(
    st.sampled_from(["mars", "rover", "the", "\u706b\u661f", "e\u0301t\u00e9", "x" * 30])
)

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine


@CALM
@given(WORDS, st.integers(20, 90))
def test_a_passage_fits_and_is_of_the_text(words, width):
    text = " \n".join(words)
    pieces = show_passage(text, {"mars", "\u706b\u661f"}, width)
    line = "".join(piece.text for piece in pieces)
    assert n_cells(line) <= width
    assert line.strip("\u2026") in one_line(text)
    assert all(piece.text.lower() in ("mars", "\u706b\u661f") for piece in pieces if piece.marked)


def test_a_short_passage_has_the_word_that_is_looked_for():
    text = (
        "one two three four five six seven eight nine ten " * 5 + "mars is red " + "and far " * 30
    )
    for width in (20, 30, 40, 60, 100):
        pieces = show_passage(text, {"mars"}, width)
        assert [piece.text for piece in pieces if piece.marked] == ["mars"]


def test_the_end_of_a_text_is_shown_with_what_is_before_it():
    text = "one two three four five six seven eight nine ten " * 5 + "at last mars"
    start, stop, marks = find_passage(text, {"mars"}, 100)
    assert 80 < stop - start <= 100
    assert stop == len(text) and text[slice(*marks[0])] == "mars"


@CALM
@given(st.text("ab ", max_size=200), st.integers(0, 200), st.integers(1, 120))
def test_a_passage_is_never_turned_around(text, at, length):
    start, stop = cut_passage(text, min(at, len(text)), length)
    assert 0 <= start <= stop <= len(text)
    assert stop - start <= length
