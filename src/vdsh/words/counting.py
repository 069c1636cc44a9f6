"""Terms: what the word index keeps of a text, and how often a document counts as having them.

- Each word but a stop word gives its stem. A word that is not its own stem gives itself too, as
  `=word`: a document that has the very word is the better answer.
- Words that signs join, such as `foo.bar_baz`, `3.8` or `C++`, give the whole name too, as `=name`.
  So do the parts of a longer name that people ask for by themselves: identifiers with underscores
  (`bar_baz`, `_private`, `__init__`) and neighbours joined by `.` or `:` (`b.c` in `a.b.c`).
  A word such as `textHasher` gives its pieces too.
- The opening says what a document is about: a word among the first eight that are not stop words
  counts four times, one among the next sixteen twice. `docs/relevance.md` has what that is worth.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, pairwise
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
from vdsh.words.lexicon import NO_WORD, exact_term, has_letters, is_content, lexicon_of
from vdsh.words.vocabulary import join_words, to_vocabulary

Opening = tuple[tuple[int, int], ...]
OPENING: Opening = ((8, 2), (24, 1))  # the first so many words count so much more
_BLOCK, _LONG_BLOCK = 8000, 8_000_000  # texts, and characters, that are counted at a time
_PLAIN = 1e-6  # seconds a character without kernels
_HUMP = re.compile("(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[^A-Z])(?=[A-Z])")
_JOINT = re.compile(r"[#&+\-./:@_\\]{1,3}")
_SIGN = re.compile(r"[#&+\-./:@_\\]")
_SUFFIX = re.compile(r"#|\+\+")
_MOST_AROUND = 2  # underscores that belong to an identifier, as in __init__


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
        if has_letters(piece)
    ]
    names = [
        (chain.last, name)
        for chain in _find_chains(lower, spans)
        for name in _names_of(chain, lower, spans)
        if _n_bytes(name) <= LONGEST
    ]
    return Parts([lower[start:stop] for start, stop in spans], pieces, names)


class _Chain(NamedTuple):
    """Tokens that signs join to one name, by number; a token alone is a chain, too."""

    first: int
    last: int
    stop: int  # where the name ends in the text, with a suffix such as that of C++


def _find_chains(lower: str, spans: Sequence[tuple[int, int]]) -> Iterator[_Chain]:
    first = 0
    for number, (_, stop) in enumerate(spans):
        after = spans[number + 1][0] if number + 1 < len(spans) else -1
        if stop < after and _JOINT.fullmatch(lower, stop, after):
            continue
        suffix = _SUFFIX.match(lower, stop)
        yield _Chain(first, number, suffix.end() if suffix else stop)
        first = number + 1


def _names_of(chain: _Chain, lower: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Give the names of a chain: all of it, neighbours in it, and identifiers."""
    start, tokens = spans[chain.first][0], range(chain.first, chain.last + 1)
    is_joined = chain.first < chain.last or chain.stop > spans[chain.last][1]
    if not is_joined and "_" not in lower[max(0, start - 1) : chain.stop + 1]:
        return  # at once, as for most words
    if is_joined:
        yield lower[start : chain.stop]
    # Identifiers are words that only underscores join: their first and last tokens.
    cuts = [i for i in tokens[1:] if lower[spans[i - 1][1] : spans[i][0]].strip("_")]
    inside = list(zip([chain.first, *cuts], [*(i - 1 for i in cuts), chain.last], strict=True))
    if len(inside) > 2:
        for (first, end), (begin, last) in pairwise(inside):
            if not lower[spans[end][1] : spans[begin][0]].strip("_.:"):
                yield lower[spans[first][0] : spans[last][1]]
    for first, last in inside:
        begin, end = with_underscores(lower, spans[first][0], spans[last][1])
        is_whole = (begin, end) == (start, chain.stop)
        if not is_whole and (first < last or end - begin > spans[last][1] - spans[first][0]):
            yield lower[begin:end]


def with_underscores(text: str, start: int, stop: int) -> tuple[int, int]:
    """Widen a stretch of a text by the underscores around it, two on each side at most.

    >>> with_underscores("a __init__", 4, 8)
    (2, 10)
    """
    for _ in range(_MOST_AROUND):
        start -= text[start - 1 : start] == "_"
        stop += text[stop : stop + 1] == "_"
    return start, stop


def find_names(text: str) -> list[str]:
    """List the names in a text as they are written: words that signs join, and such as textHasher.

    >>> find_names("Call foo.bar(x) or textHasher, not the _private one.")
    ['foo.bar', 'textHasher', '_private']
    """
    cased = _prepare(text)
    lower = cased.lower()
    spans = find_plainly(lower, 1)
    names: dict[str, None] = {}
    for chain in _find_chains(lower, spans):
        start, stop = spans[chain.first][0], chain.stop
        tokens = range(chain.first + 1, chain.last + 1)
        if not "".join(lower[spans[i - 1][1] : spans[i][0]] for i in tokens).strip("_"):
            start, stop = with_underscores(lower, start, stop)
        name = cased[start:stop]
        if _n_bytes(name) <= LONGEST and (_SIGN.search(name) or _humps(name)):
            names[name] = None
    return list(names)


def _humps(word: str) -> list[str]:
    pieces = _HUMP.split(word)
    if len(pieces) == 1:
        return []
    return [piece for piece in pieces if _n_bytes(piece) > 1]


def _n_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


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
        content = [is_content(word, language) for word in parts.tokens]
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
        if is_content(word, language):
            yield stem, number
        exact = exact_term(word, stem, language)
        terms = [*([exact] if exact else []), *more.get(number, [])]
        yield from [(term, number) for term in terms]


def _weigh(content: Sequence[bool], opening: Opening) -> list[int]:
    weights, place = [], 0
    for counts in content:
        more = sum(more for first, more in opening if place < first) if counts else 0
        weights.append(1 + more)
        place += counts
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
    content = known.stems[(~known.stops | of_piece) & (known.stems != NO_WORD)]
    terms = np.unique(np.concatenate([content, exact, parts[~is_piece]]))
    stems = np.searchsorted(terms, known.stems).astype(np.int32)
    exacts = np.where(known.exacts == 0, -1, np.searchsorted(terms, known.exacts)).astype(np.int32)
    part_terms = np.empty(n, np.int32)
    part_terms[is_piece] = stems[numbers[n_tokens:]]
    part_terms[~is_piece] = np.searchsorted(terms, parts[~is_piece])
    is_part = np.ones(n, bool)
    is_part[is_piece] = known.stems[numbers[n_tokens:]] != NO_WORD
    numbers = numbers[:n_tokens]
    counted = kernels.count_terms(
        documents,
        np.where(known.stops, -1, stems)[numbers].astype(np.int32),
        exacts[numbers],
        owners[is_part],
        part_terms[is_part],
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
