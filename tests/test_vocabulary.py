"""Words that are mistyped or not finished: the vocabulary beside slow looks at all words (#33)."""

import random
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slow_words import plain
from vdsh.text.languages import language
from vdsh.words import Segment, WordIndex, vocabulary
from vdsh.words.vocabulary import Initial, begin_with, count_edits, to_vocabulary

lightly = settings(max_examples=100, deadline=None)
letters = st.text("abcd", max_size=8)
some_words = st.text("abcéß\u0439\u0451x", min_size=1, max_size=9)
word_lists = st.lists(some_words | st.sampled_from(["moon", "moons", "café", "cafe", "3", "密码"]))


def slow_edits(one, other):
    """Count edits as it is defined: a swap is of two neighbours, which are not edited again."""

    @cache
    def edits(i, j):
        if not i or not j:
            return i + j
        fewest = min(edits(i - 1, j) + 1, edits(i, j - 1) + 1)
        fewest = min(fewest, edits(i - 1, j - 1) + (one[i - 1] != other[j - 1]))
        if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
            fewest = min(fewest, edits(i - 2, j - 2) + 1)
        return fewest

    return edits(len(one), len(other))


def nearest_words(vocabularies, typed):
    return vocabulary.nearest_words(Initial(vocabularies, typed[0]), typed)


def kept(words):
    return sorted({w for w in words if len(plain(w)) >= 2 and w[0].isalpha() and w[0] < "\u2e80"})


@lightly
@given(letters, letters, st.integers(0, 3))
@example("serach", "search", 2)
def test_edits_are_counted_up_to_one_more_than_wanted(one, other, most):
    assert min(count_edits(one, other, most), most + 1) == min(slow_edits(one, other), most + 1)


@lightly
@given(word_lists, st.text("abcmox\u0438", min_size=1, max_size=3))
def test_words_that_begin_with_letters_are_found(words, prefix):
    expected = {word for word in kept(words) if plain(word).startswith(prefix)}
    found = list(begin_with(to_vocabulary(words), prefix))
    assert set(found) == expected
    assert len(found) == len(expected)


@lightly
@given(word_lists, some_words.map(plain) | st.sampled_from(["mono", "moosn", "caffe"]))
def test_the_nearest_words_are_found_with_and_without_kernels(words, typed):
    most = 2 if len(typed) >= 8 else 1 if len(typed) >= 4 else 0
    edits = {w: slow_edits(typed, plain(w)) for w in kept(words) if plain(w)[0] == typed[0]}
    edits = {word: n for word, n in edits.items() if n <= most} if most else {}
    expected = {word: n for word, n in edits.items() if n == min(edits.values())}
    for way in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vocabulary, "compiled", lambda seconds, way=way: way)
            assert nearest_words([to_vocabulary(words), b""], typed) == expected


def test_words_of_a_large_vocabulary_are_found():
    rng = random.Random(0)
    words = sorted({"".join(rng.choices("abcdefghij", k=7)) for _ in range(5000)} | {"zzebra"})
    made = to_vocabulary(words)
    assert made.decode().split("\n") == words
    for word in ["zzebra", *rng.sample(words, 50)]:
        assert list(begin_with(made, word)) == [word]
        assert nearest_words([made], word) == {word: 0}
        assert word in nearest_words([made], word[:-1])
    assert list(begin_with(made, "")) == words
    assert nearest_words([made], "zebrax") == {}


def test_what_nobody_mistypes_is_no_word_of_it():
    assert to_vocabulary(["3", "42nd", "a", "密码", "x" * 41, "🚀", ""]) == b""
    assert to_vocabulary([]) == b""
    assert list(begin_with(b"", "a")) == []
    assert nearest_words([b""], "search") == {}


def index_of(name, *texts):
    spoken = language(name)
    return WordIndex([Segment.of([text], spoken, i) for i, text in enumerate(texts)], spoken)


def test_the_word_that_most_documents_have_is_meant():
    index = index_of("english", "search", "search engines", "searches", "starch", "serial")
    assert index.meant("serach") == ["search"]
    assert index.meant("searcch")[0] == "search"
    assert index.meant("se", unfinished=True) == ["search", "searches", "serial"]
    assert index.meant("xyzzy") == index.meant("se") == index.meant("xy", unfinished=True) == []


def test_part_numbers_and_errors_are_never_others():
    index = index_of("english", "error E0382", "part M8x401", "utf8")
    assert index.meant("e0383") == index.meant("m8x402") == []
    assert index.meant("utf", unfinished=True) == ["utf8"]


def test_meant_words_are_whole_and_have_their_accents():
    index = index_of("russian", "красный трамвай", "зелёный")
    assert index.meant("краснй") == ["красный"]
    assert index.meant("зеленй") == ["зелёный"]
    assert index_of("french", "la nationalité").meant("natonalite") == ["nationalité"]
    assert index_of("french", "une école").meant("ecol", unfinished=True) == ["école"]


def test_words_of_deleted_documents_are_not_meant():
    spoken = language("english")
    whole = Segment.of(["search engines", "moon"], spoken)
    left = WordIndex([whole.without([0])], spoken)
    assert left.meant("serach") == []
    assert left.meant("mooon") == ["moon"]
