"""`Searcher` over texts in memory: what it finds, and that filters and signs hold."""

import numpy as np
import pytest

from vdsh.codes import pack
from vdsh.retrieval import Query
from vdsh.retrieval.in_memory import TextsInMemory, search_in_memory
from vdsh.retrieval.query import read_words
from vdsh.retrieval.searcher import Searcher
from vdsh.text.languages import language

TEXTS = [
    "The moon orbits the earth.",
    "A rocket flies to the moon and back.",
    "The engine of a car needs oil.",
    "Cars and engines on the road.",
    "The earth has one moon, the red planet has two.",
    "A red car on the road to the moon.",
]
# Even rows are about space, odd ones about cars: by code, not by word.
BITS = np.array([[row % 2 == 0] * 8 for row in range(len(TEXTS))])
CODES = pack(BITS)


class Filtered(TextsInMemory):
    """Texts of which only some may be found."""

    is_filtered = True

    def __init__(self, texts, allowed, *, are_few):
        super().__init__(texts)
        self._allowed = np.array(sorted(allowed))
        self._are_few = are_few

    def few_rows(self):
        return self._allowed if self._are_few else None

    def passing(self, rows):
        return rows[np.isin(rows, self._allowed)]

    def all_rows(self):
        return self._allowed

    def texts(self, rows, phrases):
        return super().texts(self.passing(rows), phrases)


def searcher(documents=None, codes=CODES):
    whole = search_in_memory(TEXTS, codes, language("english"))
    return Searcher(whole.words, whole.codes, documents or TextsInMemory(TEXTS))


def ask(text, bit=None):
    probabilities = np.full(8, 0.5 if bit is None else float(bit))
    return Query(
        code=pack((probabilities > 0.5)[None])[0],
        words=read_words(text, "relevance"),
        probabilities=probabilities,
        has_code=bit is not None,
    )


def test_the_documents_with_the_words_come_first():
    ranking = searcher().by_relevance(ask("moon"), 10)
    with_word = {row for row, text in enumerate(TEXTS) if "moon" in text}
    assert set(ranking.rows[~ranking.related].tolist()) <= with_word
    assert ranking.rows[0] in with_word


def test_words_that_no_document_has_are_corrected_and_named():
    ranking = searcher().by_relevance(ask("mooon"), 10)
    assert ranking.corrections == {"mooon": "moon"}
    ranking = searcher().by_relevance(ask("moon xyzzyx"), 10)
    assert ranking.words_without_documents == ["xyzzyx"]


def test_a_phrase_must_stand_as_typed_and_an_excluded_word_must_not():
    phrase = searcher().by_relevance(ask('"red planet"'), 10)
    assert phrase.rows.tolist() == [4]
    without = searcher().by_relevance(ask("moon -earth"), 10)
    assert {0, 4}.isdisjoint(without.rows.tolist())
    assert {1, 5} <= set(without.rows.tolist())
    without_phrase = searcher().by_relevance(ask('moon -"red planet"'), 10)
    assert 4 not in without_phrase.rows.tolist()


@pytest.mark.parametrize("are_few", [True, False])
@pytest.mark.parametrize("text", ["moon", "moon -rocket", '"the moon"', "car road"])
def test_a_filter_holds_in_every_way_to_find_documents(text, are_few):
    allowed = {1, 3, 5}
    documents = Filtered(TEXTS, allowed, are_few=are_few)
    filtered = searcher(documents).by_relevance(ask(text, bit=1), 10)
    assert set(filtered.rows.tolist()) <= allowed
    everything = searcher().by_relevance(ask(text, bit=1), 10)
    has_words = set(everything.rows[~everything.related].tolist()) & allowed
    assert has_words <= set(filtered.rows.tolist())
    by_distance = searcher(documents).by_distance(ask(text, bit=1), 10)
    assert by_distance.rows.tolist() == sorted(allowed)
    within = searcher(documents).within(ask(text, bit=0), 0)
    assert within.rows.tolist() == sorted(allowed)
    assert within.total == len(allowed)


def test_by_code_alone_the_nearest_come_first_and_ties_by_id():
    ranking = searcher().by_distance(ask("", bit=1), 4)
    assert ranking.rows.tolist() == [0, 2, 4, 1]
    assert ranking.distances.tolist() == [0, 0, 0, 8]
    expected = searcher().by_expected_distance(ask("", bit=1), 4)
    assert expected.rows.tolist() == [0, 2, 4, 1]
    within = searcher().within(ask("", bit=1), 0, limit=2)
    assert within.rows.tolist() == [0, 2]
    assert within.total == 3


def test_without_codes_words_alone_answer():
    without_codes = searcher(codes=np.zeros((len(TEXTS), 0), np.uint8))
    query = Query(code=np.zeros(0, np.uint8), words=read_words("engine oil", "relevance"))
    ranking = without_codes.by_relevance(query, 10)
    assert ranking.rows.tolist() == [2, 3]
    assert len(without_codes.by_distance(query, 10)) == 0
