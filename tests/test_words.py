"""Words: the index beside a slow look at every document and SQLite's, queries, passages (#18)."""

import re
import sqlite3
import unicodedata
from collections import Counter
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slow_words import bag_of, is_stop_word, parts_of, plain, stem, word_shares
from vdsh.text.languages import language
from vdsh.text.tokenizer import hash_plainly, tokenize
from vdsh.words import (
    DamagedWordsError,
    IndexReader,
    Matches,
    Segment,
    WordIndex,
    WordQuery,
    counting,
    passages,
    phrases,
    read_query,
    segment,
)
from vdsh.words.blocks import StoredSegment, to_blocks
from vdsh.words.passages import find_passage, words_in
from vdsh.words.phrases import fits, which_fit
from vdsh.words.query import plain_query
from vdsh.words.segment import ABSENT, MOST
from vdsh.words.stored import LoadedSegment, StoredIndex

PIECES = """moon orbit rocket the of moon's don't E-Mail Straße STRASSE über Ölpreis
密码学 月球 轨道 ひらがな ดวงจันทร์ 🚀 👩‍🚀 🌕 def foo_bar(x): return x**2 self.index[0] ERR_404 0x7f
3.14 C++ C# textHasher HTMLParser theMoon moons orbiting
İstanbul café cafe\u0301 \u1112\u1161\u11ab naïve O'Brien rock'n'roll \x00 \x1b[0m \u202e a
"quoted" -dash «guillemets» {}; <b>bold</b> https://example.org/a?b=c&d=e \n\n \t""".split(" ")

texts = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.text(max_size=30)
corpora = st.lists(texts, max_size=12)
spoken = st.sampled_from(["english", "german", "russian", "none"])
lightly = settings(max_examples=60, deadline=None)
ENGLISH = language("english")


def same(one, other, *, but_vocabulary=False):
    assert one.first == other.first
    for some in (lambda s: s.documents, lambda s: s.passages.postings, lambda s: s.passages[1:]):
        assert [a.tolist() for a in some(one)] == [a.tolist() for a in some(other)]
    assert but_vocabulary or one.vocabulary == other.vocabulary


def changed(segment, **arrays):
    return segment._replace(documents=segment.documents._replace(**arrays))


def asking(**words):
    return WordQuery(" ".join(words), words)


def matched(index, query):
    """Match with kernels and without them, which must be one."""
    found = index.score(index.look_up(query))
    with patch("vdsh.words.index.compiled", lambda seconds: False):
        plainly = index.score(index.look_up(query))
    assert plainly.numbers.tolist() == found.numbers.tolist()
    assert plainly.shares == pytest.approx(found.shares, abs=1e-12)
    assert plainly.missing == found.missing
    return dict(zip(found.numbers.tolist(), found.shares.tolist(), strict=True)), found.missing


def cut_up(texts, sizes, name="english"):
    """Make an index of pieces of some sizes."""
    pieces, start = [], 0
    for size in [*sizes, len(texts)]:
        some = texts[start : start + size]
        pieces += [Segment.of(some, language(name), start)] if some else []
        start += size
    return WordIndex(pieces, language(name))


# -- the index beside a slow look ------------------------------------------------------------------


@lightly
@given(corpora, texts, st.lists(st.integers(1, 5), max_size=4), spoken)
def test_shares_agree_with_a_slow_look_at_every_document(corpus, query, sizes, name):
    asked = plain_query(query)
    expected, missing = word_shares(dict(enumerate(corpus)), asked, name)
    found, lacking = matched(cut_up(corpus, sizes, name), asked)
    assert found == pytest.approx({i: s for i, s in expected.items() if s}, abs=1e-12)
    assert lacking == missing
    assert all(0 < share <= 1 for share in found.values())


@lightly
@given(
    st.lists(texts, max_size=40),
    texts,
    st.lists(st.integers(1, 5)),
    st.integers(1, 4),
    st.booleans(),
)
def test_the_best_are_the_best_of_all_documents(corpus, query, sizes, n, long):
    if long:  # with passages
        corpus = [*corpus, ". ".join(["The probe saw mars and other words"] * 200)]
    index, most = cut_up(corpus, sizes), 2
    asked = index.look_up(plain_query(query))
    whole, (best, shares_of) = index.score(asked), index.best(asked, n, most)
    assert best.numbers.tolist() == whole.in_order(n)[: n + most].tolist()
    assert best.shares.tolist() == whole.of(best.numbers).tolist()
    everything = np.arange(len(corpus) + 1)
    assert shares_of(everything).tolist() == whole.of(everything).tolist()


@lightly
@given(corpora, st.lists(st.integers(1, 5), max_size=4), st.data(), spoken)
def test_having_agrees_with_a_slow_look(corpus, sizes, data, name):
    there = sorted({word for text in corpus for word in parts_of(text)[0]} | {"nowhere", "the"})
    some = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=3))
    stems = {stem(word, name) for word in some if not is_stop_word(word, name)}
    expected = [i for i, text in enumerate(corpus) if stems <= bag_of(text, name)[0].keys()]
    assert cut_up(corpus, sizes, name).having(some).tolist() == expected


@lightly
@given(corpora, spoken)
@example(["s corporations"], "english")  # as if the s of 's, right at the beginning
def test_a_segment_has_the_terms_of_its_texts(corpus, name):
    whole, found = Segment.of(corpus, language(name)), [bag_of(text, name) for text in corpus]
    made = whole.documents
    bags = [bag for bag, _ in found]
    terms = sorted({term for bag in bags for term in bag}, key=lambda t: int(hash_plainly([t])[0]))
    assert made.hashes.tolist() == hash_plainly(terms).tolist()
    assert made.lengths.tolist() == [length for _, length in found]
    assert (whole.n_docs, whole.n_words) == (len(corpus), sum(length for _, length in found))
    for j, term in enumerate(terms):
        span = slice(made.offsets[j], made.offsets[j + 1])
        entries = zip(made.places[span].tolist(), made.counts[span].tolist(), strict=True)
        assert list(entries) == [(i, bag[term]) for i, bag in enumerate(bags) if term in bag]


@lightly
@given(corpora, spoken)
@example(["the theMoon"], "english")  # a stop word that is a piece, too
@example(["isOn on", "ON is"], "english")
def test_kernels_and_plain_python_make_the_same_segment(corpus, name):
    with pytest.MonkeyPatch.context() as patch:
        for module in (segment, counting):
            patch.setattr(module, "compiled", lambda seconds: False)
        made = Segment.of(corpus, language(name))
        for module in (segment, counting):
            patch.setattr(module, "compiled", lambda seconds: True)
        compiled = Segment.of(corpus, language(name))
    same(compiled, made)
    assert to_blocks(compiled) == to_blocks(made)


@lightly
@given(corpora, texts, spoken)
def test_kernels_and_plain_python_find_the_same_words_in_texts(corpus, query, name):
    wanted = sorted(plain_query(query).words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "compiled", lambda seconds: False)
        found = words_in(corpus, wanted, language(name))
        patch.setattr(passages, "compiled", lambda seconds: True)
        assert words_in(corpus, wanted, language(name)) == found
    stems = {stem(word, name) for word in wanted}
    assert found == [
        [w for w in dict.fromkeys(tokenize(text, shortest=1)) if stem(w, name) in stems]
        for text in corpus
    ]


def fts5(corpus, terms):
    """Score with SQLite: its bm25() has the opposite sign, and our terms go in as they are."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5"
        "(text, content='', tokenize=\"unicode61 remove_diacritics 0 tokenchars ''''\")"
    )
    # Hexadecimal names keep SQLite from taking our words apart.
    name = lambda word: f"w{word.encode().hex()}"  # noqa: E731
    rows = [(i + 1, " ".join(map(name, bag_of(t)[0].elements()))) for i, t in enumerate(corpus)]
    connection.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
    query = " OR ".join(f'"{name(word)}"' for word in terms)
    found = connection.execute("SELECT rowid, bm25(words) FROM words WHERE words MATCH ?", (query,))
    scores = {row - 1: -score for row, score in found}
    connection.close()
    return scores


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_sqlite(seed):
    """Of words that are their own stems: lengths are without exact terms, which FTS5 counts."""
    rng = Random(seed)
    vocabulary = ["moon", "orbit", "rocket", "the", "of", "密码学", "🚀", "3", "c", "café"]
    vocabulary += [f"w{i}" for i in range(200)]
    weights = [1 / (1 + i) for i in range(len(vocabulary))]
    corpus = [" ".join(rng.choices(vocabulary, weights, k=rng.randrange(60))) for _ in range(300)]
    for _ in range(20):
        asked = plain_query(" ".join(rng.choices(vocabulary, k=rng.randrange(1, 9))))
        terms = {stem(word): word for word in asked.words if not is_stop_word(word)}
        if not terms:
            continue
        expected = fts5(corpus, terms)
        asked = WordQuery("", dict.fromkeys(terms.values(), 1))
        found, missing = matched(cut_up(corpus, [rng.randrange(1, 150)]), asked)
        n, bags = len(corpus), [bag_of(text)[0] for text in corpus]
        df = {t: sum(t in bag for bag in bags) for t, word in terms.items() if word not in missing}
        most = sum(2.2 * max(np.log((n - d + 0.5) / (d + 0.5)), 1e-6) for d in df.values())
        scores = {i: share * most for i, share in found.items()}
        assert scores == pytest.approx(expected, abs=1e-6)


def test_a_query_of_many_words_takes_the_most_telling():
    corpus = [f"word{i} word{i + 1} common" for i in range(100)]
    asked = asking(**{f"word{i}": 1 for i in range(100)} | {"common": 1, "word7": 9})
    expected, _ = word_shares(dict(enumerate(corpus)), asked)
    found, _ = matched(cut_up(corpus, [30, 30]), asked)
    assert found == pytest.approx({i: s for i, s in expected.items() if s}, abs=1e-12)
    assert len(found) < 40


def test_the_very_word_is_the_better_answer():
    corpus = ["optimizer", "optimizers", "optimize", "goal", "moon", "orbit"]
    found, _ = matched(cut_up(corpus, []), plain_query("optimizers"))
    assert sorted(found, key=found.get, reverse=True)[0] == 1
    assert sorted(found) == [0, 1, 2]
    many = plain_query(" ".join(["optimizers", *(f"w{i}" for i in range(16))]))  # pasted
    found, _ = matched(cut_up(corpus, []), many)
    assert found[0] == found[1] == found[2]


def test_no_documents_and_no_words():
    none = WordIndex([], ENGLISH)
    assert matched(none, asking(moon=1)) == ({}, ["moon"])
    assert matched(none, asking()) == ({}, [])
    assert matched(WordIndex([Segment.of([], ENGLISH)], ENGLISH), asking(moon=1)) == ({}, ["moon"])
    empty = WordIndex([Segment.of(["", "the of", "\x00", "moon"], ENGLISH)], ENGLISH)
    assert empty.n_docs == 4
    assert list(matched(empty, asking(moon=1))[0]) == [3]
    assert empty.having(["orbit"]).tolist() == []
    assert empty.having(["the"]).tolist() == [0, 1, 2, 3]  # which is not in the index


# -- pieces ----------------------------------------------------------------------------------------


@lightly
@given(st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_joined_pieces_are_the_piece_of_all(parts, data):
    gaps = data.draw(st.lists(st.integers(0, 9), min_size=len(parts), max_size=len(parts)))
    pieces, numbers, first = [], [], 7
    for part, gap in zip(parts, gaps, strict=True):
        pieces.append(Segment.of(part, ENGLISH, first))
        numbers += range(first, first + len(part))
        first += len(part) + gap
    whole = Segment.of([text for part in parts for text in part], ENGLISH).at(np.array(numbers))
    same(Segment.joined(pieces), whole)
    assert Segment.joined(pieces).n_docs == len(numbers)


@lightly
@given(st.lists(texts, min_size=1, max_size=8), st.data())
def test_a_piece_without_some_is_the_piece_of_the_others(corpus, data):
    gone = data.draw(st.lists(st.integers(0, len(corpus) - 1), unique=True))
    left = Segment.of(corpus, ENGLISH, 5).without(np.array(gone, np.uint16))
    others = Segment.of(["" if i in gone else text for i, text in enumerate(corpus)], ENGLISH, 5)
    lengths = others.documents.lengths.copy()
    lengths[gone] = ABSENT
    assert [a.tolist() for a in left.documents] == [
        a.tolist() for a in changed(others, lengths=lengths).documents
    ]
    assert left.n_docs == len(corpus) - len(gone)
    again = left.without(np.array(gone, np.uint16))
    same(again, left)


def opened(head, blocks, first, deleted=()):
    """Open what `to_blocks` gave; give also what reads the blocks, and which were read."""
    was_read = []

    def read(numbers):
        was_read.extend(numbers)
        return [blocks[number] for number in numbers]

    size = sum(map(len, blocks))
    return StoredSegment(head, first, np.array(deleted, np.uint16), size), read, was_read


def read_again(segment, deleted=()):
    stored, read, _ = opened(*to_blocks(segment), segment.first, deleted)
    return stored.whole(read)


@lightly
@given(corpora, st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_blocks_come_back(corpus, first, many):
    made = Segment.of([*corpus, LONG], ENGLISH, first)
    with patch("vdsh.words.blocks.BLOCK", 64 if many else 1 << 15):
        head, blocks = to_blocks(made)
        same(opened(head, blocks, first)[0].whole(lambda numbers: blocks), made)
        assert (head, blocks) == to_blocks(read_again(made))


LONG = ". ".join(["The probe saw mars, moons and other words"] * 200)  # has passages


@settings(max_examples=100, deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=20),
    st.lists(texts, min_size=1, max_size=4),
    st.lists(st.integers(1, 5), max_size=3),
    st.sampled_from([64, 1 << 15]),
    st.sampled_from([0.25, 1e9]),
    st.sets(st.integers(0, 4)),
    st.booleans(),
)
def test_terms_read_one_by_one_answer_as_whole_segments(
    corpus, queries, sizes, block, worth, deleted, kernels
):
    corpus = [*corpus, LONG, "moons and mars"]
    whole, names = cut_up(corpus, sizes), ["moom", "orbti", "rockte", "café"]
    gone = [sorted(n for n in deleted if n < len(s.documents.lengths)) for s in whole.segments]
    pairs = list(zip(whole.segments, gone, strict=True))
    with (
        patch("vdsh.words.blocks.BLOCK", block),
        patch("vdsh.words.stored.WORTH_READING_WHOLE", worth),
        patch("vdsh.words.index.compiled", lambda seconds: kernels),
    ):
        kept = [to_blocks(segment) for segment in whole.segments]
        loaded = [
            LoadedSegment(i, opened(*kept[i], segment.first, places)[0])
            for i, (segment, places) in enumerate(pairs)
        ]
        index = IndexReader(
            StoredIndex(loaded, ENGLISH), lambda i, numbers: [kept[i][1][n] for n in numbers]
        )
        expected = WordIndex(
            [segment.without(np.array(places, np.uint16)) for segment, places in pairs], ENGLISH
        )
        assert index.n_docs == expected.n_docs
        asked_before = []
        for query in map(plain_query, [*queries, "mars and moons", *queries]):
            asked, wanted = index.look_up(query), expected.look_up(query)
            asked_before.append((asked, wanted))
            words = list(query.words)
            for exactly in (False, True):
                found = index.having(words, exactly=exactly).tolist()
                assert found == expected.having(words, exactly=exactly).tolist()
        for name in names:
            assert index.meant(name) == expected.meant(name)
            assert index.meant(name[:2], unfinished=True) == expected.meant(
                name[:2], unfinished=True
            )
        for asked, wanted in asked_before:  # what is read later changes nothing
            found, right = index.score(asked), expected.score(wanted)
            assert [np.asarray(a).tolist() for a in found] == [
                np.asarray(a).tolist() for a in right
            ]
            best, others = index.best(asked, 2, 1)
            right, right_others = expected.best(wanted, 2, 1)
            assert best.numbers.tolist() == right.numbers.tolist()
            assert best.shares.tolist() == right.shares.tolist()
            every = np.arange(len(corpus))
            assert others(every).tolist() == right_others(every).tolist()


def test_a_query_reads_few_blocks_of_a_large_segment(monkeypatch):
    monkeypatch.setattr("vdsh.words.blocks.BLOCK", 1 << 12)
    rng = Random(0)
    words = [f"w{rng.randrange(20_000):05}" for _ in range(100_000)]
    corpus = [" ".join(words[i : i + 50]) + " everywhere" for i in range(0, len(words), 50)]
    head, blocks = to_blocks(Segment.of(corpus, ENGLISH))
    stored, read, was_read = opened(head, blocks, 0)
    loaded = LoadedSegment(0, stored)
    index = IndexReader(StoredIndex([loaded], ENGLISH), lambda _, numbers: read(numbers))
    whole = WordIndex([Segment.of(corpus, ENGLISH)], ENGLISH)
    asked = plain_query(f"everywhere {words[0]} {words[77]} nowhere")
    found, expected = index.score(index.look_up(asked)), whole.score(whole.look_up(asked))
    assert found.shares.tolist() == expected.shares.tolist()
    assert len(was_read) == len(set(was_read)) <= 8 < len(blocks) / 4
    index.look_up(asked)
    assert len(set(was_read)) == len(was_read)  # nothing is read twice
    for i in range(0, 2000, 5):
        index.look_up(plain_query(words[i]))
    assert loaded.is_whole
    n_read = len(was_read)
    assert n_read < 2 * len(blocks)
    assert index.look_up(plain_query(words[1])).missing == []
    assert len(was_read) == n_read


def test_arrays_are_searched_where_they_lie():
    """numpy copies what is not aligned, and that took a hundred times as long."""
    for corpus in (["moon orbit"], ["moon", "rocket orbit", "goal", LONG]):
        read = read_again(Segment.of(corpus, ENGLISH))
        arrays = [*read.documents, *read.passages.postings, *read.passages[1:]]
        assert all(array.flags.aligned for array in arrays)


def test_documents_at_the_limit_of_a_piece():
    corpus = [f"own{i}" if i % 1000 == 535 else "" for i in range(MOST)]
    made = Segment.of(corpus, ENGLISH, 3)
    assert made.n_docs == MOST
    assert WordIndex([made], ENGLISH).having(["own65535"]).tolist() == [3 + 65535]
    cut = MOST // 2
    halves = [Segment.of(corpus[:cut], ENGLISH, 3), Segment.of(corpus[cut:], ENGLISH, 3 + cut)]
    same(Segment.joined(halves), made)
    same(read_again(made), made)
    ends = made.of(["a1 moon", "b2 moon"], ENGLISH).at(np.array([10, 10 + MOST - 1]))
    assert WordIndex([ends], ENGLISH).having(["moon"]).tolist() == [10, 10 + MOST - 1]
    assert (ends.n_docs, len(ends.documents.lengths)) == (2, MOST)


def test_more_documents_than_a_piece_takes_are_refused():
    with pytest.raises(ValueError, match="65,536"):
        Segment.of([""] * (MOST + 1), ENGLISH)


def test_a_word_is_counted_255_times_at_most():
    corpus = ["moon " * 300 + "orbit", "moon " * 255 + "orbit", "orbit", "", ""]
    made = Segment.of(corpus, ENGLISH)
    assert sorted(made.documents.counts.tolist()) == [1, 1, 4, 255, 255]
    expected, _ = word_shares(dict(enumerate(corpus)), asking(moon=1))
    assert matched(WordIndex([made], ENGLISH), asking(moon=1))[0] == pytest.approx(
        {i: s for i, s in expected.items() if s}
    )


def test_a_document_of_very_many_words_is_there():
    corpus = ["moon orbit " * 40_000, "moon " * ABSENT, "moon", ""]
    made = Segment.of(corpus, ENGLISH)
    assert made.n_docs == 4
    assert made.documents.lengths.tolist() == [ABSENT - 1, ABSENT - 1, 4, 0]
    expected, _ = word_shares(dict(enumerate(corpus)), asking(moon=1, orbit=1))
    found, _ = matched(WordIndex([made], ENGLISH), asking(moon=1, orbit=1))
    assert found == pytest.approx({i: s for i, s in expected.items() if s})


MADE = Segment.of(["moon orbit moon", "rocket", "", "moon 密码学", LONG], ENGLISH, 9)
HEAD, BLOCKS = to_blocks(MADE)


def read_all(head, blocks, first=9):
    stored, read, _ = opened(head, blocks, first)
    return stored.whole(read)


@lightly
@given(st.integers(0, len(HEAD) - 1), st.integers(1, 255))
def test_a_head_that_was_cut_or_changed_is_refused(place, change):
    with pytest.raises(DamagedWordsError):
        read_all(HEAD[:place], BLOCKS)
    data = bytearray(HEAD)
    data[place] ^= change
    with pytest.raises(DamagedWordsError):
        read_all(bytes(data), BLOCKS)


@lightly
@given(st.integers(0, len(BLOCKS) - 1), st.integers(0), st.integers(1, 255))
def test_a_block_that_was_cut_or_changed_is_refused(number, place, change):
    place %= len(BLOCKS[number])
    data = bytearray(BLOCKS[number])
    data[place] ^= change
    for damaged in (BLOCKS[number][:place], bytes(data), b"", "text", None):
        blocks = [*BLOCKS[:number], damaged, *BLOCKS[number + 1 :]]
        stored, _, _ = opened(HEAD, BLOCKS, 9)
        with pytest.raises(DamagedWordsError):
            stored.whole(lambda numbers, blocks=blocks: [blocks[n] for n in numbers])


@lightly
@given(st.permutations(range(len(BLOCKS))))
def test_blocks_in_another_order_are_refused(order):
    if list(order) == sorted(order):
        return
    with pytest.raises(DamagedWordsError):
        read_all(HEAD, [BLOCKS[number] for number in order])


@pytest.mark.parametrize(
    "data",
    [b"", b"vdw7", HEAD + b"\0", HEAD[4:], "text", None, 12, 1.5, b"\0" * 20, b"\xff" * 99],
)
def test_what_is_no_segment_is_refused(data):
    with pytest.raises(DamagedWordsError, match="^The word index is damaged"):
        read_all(data, BLOCKS)


def test_a_segment_of_other_documents_is_refused():
    with pytest.raises(DamagedWordsError):
        read_all(HEAD, BLOCKS, 10)


def test_deleted_documents_that_a_segment_does_not_have_are_refused():
    with pytest.raises(DamagedWordsError):
        opened(HEAD, BLOCKS, 9, deleted=[5])


@pytest.mark.parametrize("at", ["sizes", "places"])
def test_bytes_with_a_good_check_sum_that_make_no_sense_are_refused(at):
    """As somebody's would be who means harm."""
    made = MADE
    if at == "sizes":
        made = changed(made, offsets=made.documents.offsets * 3)
    else:
        made = changed(made, places=made.documents.places + np.uint16(4000))
    with pytest.raises(DamagedWordsError):
        read_all(*to_blocks(made))


def test_scores_are_numbers_whatever_a_piece_says():
    """One with a good check sum whose documents are not there, or that lists one many times."""
    made = MADE
    absent = changed(made, lengths=np.full_like(made.documents.lengths, ABSENT))
    twice = changed(made, places=np.zeros_like(made.documents.places))
    for piece in (absent, twice, changed(made, counts=np.zeros_like(made.documents.counts))):
        index = WordIndex([read_again(piece)], ENGLISH)
        assert np.isfinite(index.score(index.look_up(asking(moon=1, rocket=2))).shares).all()


# -- queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "words", "phrases", "without"),
    [
        ("mars rover", "mars rover", [], []),
        ('mars "red planet" -rover', "mars red planet", [["red", "planet"]], [["rover"]]),
        ("\u201cred planet\u201d", "red planet", [["red", "planet"]], []),
        ("\u201ered planet\u201c", "red planet", [["red", "planet"]], []),
        ("\u00abred planet\u00bb", "red planet", [["red", "planet"]], []),
        ('-"red planet" mars', "mars", [], [["red", "planet"]]),
        ('"red planet', "red planet", [], []),
        ('red planet"', "red planet", [], []),
        ('"red" "planet', "red planet", [["red"]], []),
        ('size 5" pipe 6" wide', "size 5 pipe 6 wide", [], []),
        ("e-mail --launch - moon", "e mail launch moon", [], []),
        ("well-known state-of-the-art", "well known state of the art", [], []),
        ("-e-mail moon", "moon", [], [["e", "mail"]]),
        ("moon -the -of", "moon", [], [["the"], ["of"]]),
        ('moon "to be or not"', "moon to be or not", [["to", "be", "or", "not"]], []),
        ('"release 3.8" C++', "release 3 8 c", [["release", "3", "8"]], []),
        ('"to the moon"', "to the moon", [["to", "the", "moon"]], []),
        ("-moon", "", [], [["moon"]]),
        ("kill -9 wal", "kill 9 wal", [], []),
        ("moon -Moon", "moon", [], [["moon"]]),
        ("-moon -moon", "", [], [["moon"], ["moon"]]),
        ('""', "", [], []),
        ('"" -"" -', "", [], []),
        ('" OR (', "or", [], []),
        ("*", "", [], []),
        ("moon\nhe said \"red planet\" -rover", "moon he said red planet rover", [], []),
        (" " + '"red planet"\n', "red planet", [["red", "planet"]], []),
        ("\u5bc6\u7801\u5b66 -\u6708\u7403", "\u5bc6\u7801 \u7801\u5b66", [], [["\u6708\u7403"]]),
        ('"moon\x00orbit" -ro\x00cket', "moon orbit", [["moon", "orbit"]], [["ro", "cket"]]),
        ("\x00\x01\x1f moon", "moon", [], []),
        ("", "", [], []),
    ],
)  # fmt: skip
def test_queries_are_read_as_people_type_them(typed, words, phrases, without):
    read = read_query(typed)
    assert set(read.words) == set(words.split())
    assert list(read.phrases) == phrases
    assert list(read.without) == without


@pytest.mark.parametrize(
    "typed",
    [
        '"moon" -orbit ' * 14_000,
        '"a ' * 60_000,
        '-"' * 100_000,
        '"' * 200_001,
        "-" * 200_000,
        "-a" * 100_000,
        " " * 199_999 + '"',
        "\u201c" * 200_000,
        " ".join(f"word{i}" for i in range(10_000)) + ' "red planet"',
        '-"' + "moon " * 40_000 + '"',
        "\U0001f680-" * 100_000,
    ],
)
def test_what_is_long_is_read_quickly_and_has_no_signs(typed):
    read = read_query(typed)
    assert not read.phrases
    assert len(read.without) <= 1
    assert len(read.words) <= 10_100


@given(
    st.text(max_size=200) | st.lists(st.sampled_from(['"', "-", " ", "moon", "the"])).map("".join)
)
@example('"moon"the0')
def test_any_text_is_a_query(typed):
    read = read_query(typed)
    tokens, pieces, names = parts_of(read.text)
    words = Counter([*tokens, *(piece for _, piece in pieces)])
    assert read.words.keys() <= words.keys()
    for word, n in words.items():  # lone letters of names and lone marks are not looked for
        assert read.words.get(word, 0) == n or len(word) == 1 or not plain(word)
    joined = {name.lower() for name in read.names if re.search(r"[-#&+./:@_\\]", name)}
    assert joined <= {name for _, name in names}
    if len(read.text.encode()) <= 100:
        assert all(any(name in whole for whole in joined) for _, name in names)
    assert all([*read.phrases, *read.without])
    for phrase in read.phrases:
        assert {plain(word) for word in phrase} <= {plain(word) for word in read.words}


# -- passages --------------------------------------------------------------------------------------


@lightly
@given(st.lists(texts, max_size=40).map(" ".join), texts, st.sampled_from([60, 100, 240]))
def test_marks_are_where_the_words_are(text, query, length):
    words = set(tokenize(query, shortest=1))
    start, stop, marks = find_passage(text, words, length)
    assert 0 <= start <= stop <= min(len(text), start + length)
    assert (stop - start == 0) == (not text)
    last = start
    for a, b in marks:
        assert last <= a < b <= stop
        if unicodedata.is_normalized("NFC", text):
            assert set(tokenize(text[a:b], shortest=1)) & words
        last = a
    if words & set(tokenize(text, shortest=1)):
        assert marks


def test_a_passage_has_the_most_words():
    text = "moon " + "filler " * 100 + "moon orbit rocket " + "filler " * 100 + "moon"
    start, stop, marks = find_passage(text, {"moon", "orbit", "rocket"})
    assert [text[a:b] for a, b in marks] == ["moon", "orbit", "rocket"]
    assert text[start - 1] == text[stop] == " "


def test_marks_of_words_with_combining_marks():
    text = "Le cafe\u0301 et le café, " + "u\u0308ber " * 3
    marks = find_passage(text, {"café", "über"}).marks
    assert [text[a:b] for a, b in marks] == ["cafe\u0301", "café", *["u\u0308ber"] * 3]
    assert find_passage("moo" + "\u0301" * 5000, {"moo"}).stop <= 240


def test_a_passage_of_what_has_no_words():
    assert find_passage("", {"moon"}) == (0, 0, [])
    assert find_passage("orbit", {"moon"}) == (0, 5, [])
    assert find_passage("x" * 1000, {"moon"}) == (0, 240, [])
    assert find_passage("moon", set()) == (0, 4, [])


@lightly
@given(corpora, st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), st.booleans())
def test_phrases_are_found_in_many_texts_as_in_each(corpus, pieces, excluding):
    phrase = tokenize(" ".join(pieces), shortest=1) or ["moon"]
    corpus = [*corpus, " ".join(phrase), " ".join(["x", *phrase]), "moon", "orbit"]
    without = [["rocket"]] if excluding else []
    query = WordQuery("", {}, phrases=[phrase, phrase[:1]], without=without)
    expected = [fits(query, text, ENGLISH) for text in corpus]
    for way in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(phrases, "compiled", lambda seconds, way=way: way)
            patch.setattr(phrases, "_TOGETHER", 10)
            assert which_fit(query, corpus, ENGLISH).tolist() == expected


def test_the_best_of_many_matches_are_those_of_a_whole_order():
    shares = np.random.default_rng(0).integers(1, 900, 5000) / 1000
    none = np.zeros(0, np.int64)
    matches = Matches(np.arange(5000), shares, [], none, np.zeros((0, 2), np.uint32))
    order = np.lexsort((np.arange(5000), -shares))
    for n in (1, 10, 100, 4999, 6000):
        least = shares[order[min(n, 5000) - 1]]
        assert matches.in_order(n).tolist() == order[: np.count_nonzero(shares >= least)].tolist()
