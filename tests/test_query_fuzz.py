"""Whatever a person types, a query is answered: characters of every Unicode category."""

import unicodedata
from collections import defaultdict
from random import Random

import pytest

from engines import doc
from vdsh.errors import VdshError
from vdsh.store import open_store
from vdsh.text.languages import language
from vdsh.words import read_query

pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

BY_CATEGORY = defaultdict(list)
for point in range(0x11000):
    BY_CATEGORY[unicodedata.category(chr(point))].append(chr(point))
# Characters that come apart, join or change length when they are normalised or put in lower case.
ODD = "\u0130\u0131\u00df\ufb01\u1e9e\u0345\u0301\u0323\u200d\ufe0f\u3099\u1100\u1161\u11a8\u0e33"
WORDS = ["moon", "orbit", "the", "x", "orbitt", "foo.bar", "textHasher", "E_TIMEOUT", "anti-viral"]
SIGNS = [" ", " ", " ", "-", '"', "_", ".", "'", "+", "\n", "\t", "/", ":", "#", "\u201c", "\u00ab"]


def make_query(rng):
    pieces = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(4)
        if kind == 0:
            pieces.append(rng.choice(BY_CATEGORY[rng.choice(sorted(BY_CATEGORY))]))
        elif kind == 1:
            pieces.append(rng.choice(ODD))
        elif kind == 2:
            pieces.append(rng.choice(WORDS))
        else:
            pieces.append(rng.choice(SIGNS))
    return "".join(pieces)


def check(hits):
    assert repr(hits)
    hits.about_query()
    for hit in hits:
        hit.as_fields()
        assert isinstance(hit.passage(), str)


@pytest.fixture
def store(place, fitted):
    with open_store(place, fitted) as store:
        rng = Random(1)
        texts = [make_query(rng) for _ in range(60)]
        texts = [text.encode(errors="replace").decode().replace("\0", "") for text in texts]
        store.upsert([doc(f"d{i}", f"moon {text} orbit") for i, text in enumerate(texts)])
        yield store


MARKS = ["hello \u0301", "\u0301", "-\u0301", '"\u0301"', 'moon "\u0301 x"']


@pytest.mark.parametrize("query", MARKS)
def test_a_lone_combining_mark_is_no_word(store, query):
    check(store.search(query))
    assert "" not in read_query(query).words
    assert read_query(query).phrases in ([], [["x"]], ())


def test_queries_of_all_kinds_of_characters_are_answered(store):
    rng = Random(2)
    queries = [make_query(rng) for _ in range(150)]
    for query in queries[:75]:
        try:
            check(store.search(query, 3))
            check(store.within(query, 2))
        except VdshError as error:  # half a surrogate pair is refused by some engines
            assert not query.isascii() and str(error)
    valid = [query.encode(errors="replace").decode() for query in queries]
    for hits in store.search_many(valid, 3):
        check(hits)


def test_every_character_alone_and_behind_a_word_is_read():
    english = language("english")
    for category, characters in BY_CATEGORY.items():
        for character in Random(category).sample(characters, min(60, len(characters))):
            signs = f'"{character}" -{character} x_{character}y'
            for text in (character, f"moon {character}", signs):
                query = read_query(text)
                assert all(term.term.strip("=") for term in query.terms(english)), text
                query.only_name(english)
