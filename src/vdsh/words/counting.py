"""Terms: what the word index keeps of a text, and how often a document counts as having them.

- Each word but a stop word gives its stem. A word that is not its own stem gives itself too, as
  `=word`: a document that has the very word is the better answer.
- Words that signs join, such as `foo.bar_baz`, `3.8` or `C++`, give the whole name too, as `=name`.
  A word such as `textHasher` gives its pieces too.
- The opening says what a document is about: a word among the first eight that are not stop words
  counts four times, one among the next sixteen twice. `docs/relevance.md` has what that is worth.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import check_wanted, while_wanted
from vdsh.jit import compiled
from vdsh.text.languages import Language
from vdsh.text.tokenizer import (
    LONGEST,
    character_classes,
    find_plainly,
    hash_plainly,
    lay_out_as_given,
    to_nfc,
)
from vdsh.words.lexicon import exact_term, lexicon_of
from vdsh.words.vocabulary import join_words, to_vocabulary

Opening = tuple[tuple[int, int], ...]
OPENING: Opening = ((8, 2), (24, 1))  # the first so many words count so much more
_BLOCK, _LONG_BLOCK = 8000, 8_000_000  # texts, and characters, that are counted at a time
_PLAIN = 1e-6  # seconds a character without kernels
_HUMP = re.compile("(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[^A-Z])(?=[A-Z])")
_JOINT = re.compile(r"[#&+\-./:@_\\]{1,3}")
_SUFFIX = re.compile(r"#|\+\+")


class Counted(NamedTuple):
    """The terms of some texts.

    Text i has the terms with the hashes `hashes[numbers[j]]`, each `counts[j]` times, for j from
    `ends[i]` to below `ends[i + 1]`, in their order of appearance, and the length `lengths[i]`.
    """

    hashes: NDArray[np.uint64]  # in order
    numbers: NDArray[np.int32]
    counts: NDArray[np.int32]
    ends: NDArray[np.int64]
    lengths: NDArray[np.int64]  # how much their words count together, stop words left out
    vocabulary: bytes  # all words but stop words, see `vocabulary`
    terms: list[str]  # those of the hashes, where they were asked for


class Parts(NamedTuple):
    """A text as a person's words: tokens, and what identifiers among them give beside these."""

    tokens: list[str]  # in order
    pieces: list[tuple[int, str]]  # of words such as textHasher, with the number of their token
    names: list[tuple[int, str]]  # such as foo.bar, with the number of their last token


def count_terms(
    texts: Sequence[str],
    language: Language,
    *,
    named: bool = False,
    opening: Opening = OPENING,
) -> Iterator[tuple[Sequence[str], Counted]]:
    """Count the terms of texts, some at a time; give those texts and their terms.

    `named`: whether terms are wanted beside their hashes.
    """
    first = size = 0
    for i, text in enumerate(texts):
        if i - first == _BLOCK or (i > first and size + len(text) > _LONG_BLOCK):
            yield texts[first:i], _count(texts[first:i], language, named, opening)
            first, size = i, 0
        size += len(text)
    yield texts[first:], _count(texts[first:], language, named, opening)


def find_parts(text: str) -> Parts:
    """Find the words of a text, and what identifiers give beside these.

    >>> find_parts("textHasher in foo.bar")
    Parts(tokens=['texthasher', 'in', 'foo', 'bar'], pieces=[(0, 'text'), (0, 'hasher')], \
names=[(3, 'foo.bar')])
    """
    cased = _prepare(text)
    lower = cased.lower()
    spans = find_plainly(lower, 1)
    pieces = [
        (number, piece.lower())
        for number, (start, stop) in enumerate(spans)
        if not lower.startswith(cased[start:stop], start)
        for piece in _humps(cased[start:stop])
    ]
    names: list[tuple[int, str]] = []
    first = 0
    for number, (_, stop) in enumerate(spans):
        after = spans[number + 1][0] if number + 1 < len(spans) else -1
        if stop < after and _JOINT.fullmatch(lower, stop, after):
            continue
        suffix = _SUFFIX.match(lower, stop)
        name = lower[spans[first][0] : suffix.end() if suffix else stop]
        if (suffix or number > first) and len(name.encode(errors="replace")) <= LONGEST:
            names.append((number, name))
        first = number + 1
    return Parts([lower[start:stop] for start, stop in spans], pieces, names)


def _humps(word: str) -> list[str]:
    pieces = _HUMP.split(word)
    if len(pieces) == 1:
        return []
    return [piece for piece in pieces if len(piece.encode(errors="replace")) > 1]


def _count(texts: Sequence[str], language: Language, named: bool, opening: Opening) -> Counted:
    check_wanted()
    if texts and compiled(_PLAIN * sum(map(len, texts))):
        return _count_compiled(texts, language, named, opening)
    return _count_plainly(texts, language, opening)


def _count_plainly(texts: Sequence[str], language: Language, opening: Opening) -> Counted:
    found: list[dict[str, int]] = []
    lengths, words = [], set[str]()
    for text in while_wanted(texts):
        parts, counts = find_parts(text), dict[str, int]()
        content = [word not in language.stop_words for word in parts.tokens]
        weights = _weigh(content, opening)
        for term, token in _terms(parts, language):
            counts[term] = counts.get(term, 0) + weights[token]
        found.append(counts)
        lengths.append(sum(compress(weights, content)))
        words.update(compress(parts.tokens, content))
    names = list({term: None for counts in found for term in counts})
    hashes = hash_plainly(names)
    order = np.argsort(hashes)
    place = {names[i]: number for number, i in enumerate(order.tolist())}
    return Counted(
        hashes[order],
        np.array([place[term] for counts in found for term in counts], np.int32),
        np.array([n for counts in found for n in counts.values()], np.int32),
        np.array([0, *accumulate(map(len, found))], np.int64),
        np.array(lengths, np.int64),
        to_vocabulary(words),
        list(place),
    )


def _terms(parts: Parts, language: Language) -> Iterator[tuple[str, int]]:
    """Give the terms of a text, each with the number of its token, in the order of tokens."""
    more: dict[int, list[str]] = {}
    stems = language.stems([piece for _, piece in parts.pieces])
    for (number, _), stem in zip(parts.pieces, stems, strict=True):
        more.setdefault(number, []).append(stem)
    for number, name in parts.names:
        more.setdefault(number, []).append(f"={name}")
    pairs = zip(parts.tokens, language.stems(parts.tokens), strict=True)
    for number, (word, stem) in enumerate(pairs):
        if word not in language.stop_words:
            yield stem, number
        exact = exact_term(word, stem, language)
        terms = [*([exact] if exact else []), *more.get(number, [])]
        yield from [(term, number) for term in terms]


def _weigh(content: Sequence[bool], opening: Opening) -> list[int]:
    weights, place = [], 0
    for is_content in content:
        more = sum(more for first, more in opening if place < first) if is_content else 0
        weights.append(1 + more)
        place += is_content
    return weights


def _count_compiled(
    texts: Sequence[str], language: Language, named: bool, opening: Opening
) -> Counted:
    from vdsh.text.token_kernels import find_tokens, number_words
    from vdsh.words import term_kernels as kernels

    cased, offsets = lay_out_as_given(map(_prepare, texts))
    lower = kernels.to_lower(cased)
    starts, stops, hashes, documents = find_tokens(lower, offsets, character_classes(), 1)
    more = cased, lower, offsets, starts, stops, documents, LONGEST
    n, room = 1 + len(starts) // 4, 0  # more is a pile of identifiers, which takes a second look
    while n > room:
        room, spans, parts = n, np.empty((n, 4), np.int64), np.empty(n, np.uint64)
        n = kernels.find_parts(*more, spans, parts)
    spans, parts = spans[:n], parts[:n]
    # The different words, of tokens and of pieces of such; a whole name is a term already.
    owners, piece_starts, piece_stops, is_name = spans.T
    is_piece = is_name == 0
    word_hashes = np.concatenate([hashes, parts[is_piece]])
    numbers, firsts = number_words(word_hashes)
    firsts_at = np.concatenate([starts, piece_starts[is_piece]])[firsts]
    stops_at = np.concatenate([stops, piece_stops[is_piece]])[firsts]
    data = lower.tobytes()
    known = lexicon_of(language).look_up(
        word_hashes[firsts], lambda some: [data[firsts_at[i] : stops_at[i]].decode() for i in some]
    )
    n_tokens, is_word, of_piece = len(hashes), *np.zeros((2, len(firsts)), bool)
    is_word[numbers[:n_tokens]] = True
    of_piece[numbers[n_tokens:]] = True  # pieces may be stop words
    exact = known.exacts[is_word & (known.exacts != 0)]
    content = known.stems[~known.stops | of_piece]
    terms = np.unique(np.concatenate([content, exact, parts[~is_piece]]))
    stems = np.searchsorted(terms, known.stems).astype(np.int32)
    exacts = np.where(known.exacts == 0, -1, np.searchsorted(terms, known.exacts)).astype(np.int32)
    part_terms = np.empty(n, np.int32)
    part_terms[is_piece] = stems[numbers[n_tokens:]]
    part_terms[~is_piece] = np.searchsorted(terms, parts[~is_piece])
    numbers = numbers[:n_tokens]
    counted = kernels.count_terms(
        documents,
        np.where(known.stops, -1, stems)[numbers].astype(np.int32),
        exacts[numbers],
        np.ascontiguousarray(owners),
        part_terms,
        len(terms),
        np.array(opening, np.int64).reshape(-1, 2),
    )
    vocabulary = join_words(known.forms[is_word & ~known.stops].tolist())
    names: list[str] = []
    if named:
        of_name = zip(parts[~is_piece].tolist(), spans[~is_piece, 1:3].tolist(), strict=True)
        written = {value: f"={data[i:j].decode()}" for value, (i, j) in of_name}
        names = [written.get(value) or known.terms[value] for value in terms.tolist()]
    return Counted(terms, *counted, vocabulary, names)


class _Lower(dict[int, str]):
    """Lower case for `str.translate`, letter by letter; that of ASCII stays, which says more."""

    def __missing__(self, point: int) -> str:
        letter = chr(point) if point < 128 else chr(point).lower()[0]
        self[point] = letter
        return letter


_LOWER = _Lower({ord("\u2019"): "'"})


def _prepare(text: str) -> str:
    if text.isascii():
        return text
    lines = to_nfc(text).splitlines(keepends=True)  # most are of ASCII
    return "".join([one if one.isascii() else one.translate(_LOWER) for one in lines])
