"""`StoredIndex`: the word index of stored segments, which reads the terms that are asked for."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

import numpy as np

from vdsh.text.languages import Language, fold
from vdsh.text.tokenizer import hash_plainly
from vdsh.words.blocks import Hashes, ReadBlocks, StoredSegment, joined_terms
from vdsh.words.index import Asked, Matches, Numbers, Shares, WordIndex, terms_of
from vdsh.words.query import WordQuery, name_terms
from vdsh.words.segment import Segment

# Share of a segment that is read piece by piece before all of it is: what it costs then is at most
# that share more than reading all of it at once, and warm queries find everything in memory.
WORTH_READING_WHOLE = 0.25

# Gives the blocks of the segment with some name that have some numbers, in that order.
ReadSegment = Callable[[int, Sequence[int]], Sequence[bytes]]


class LoadedSegment:
    """What was read so far of a stored segment. Threads may use it at the same time.

    `name`: of the segment, for who reads its blocks.
    """

    def __init__(self, name: int, stored: StoredSegment) -> None:
        self.name = name
        self.stored = stored
        self.part = stored.without_terms()
        self.is_whole = False
        self._known: set[int] = set()  # hashes of the terms that were looked for
        self._n_read = 0  # bytes, piece by piece
        self._lock = Lock()

    def with_terms(self, hashes: Hashes, read: ReadBlocks) -> Segment:
        """Return the segment with some terms, and perhaps others."""
        with self._lock:
            if self.is_whole:
                return self.part
            new = [value for value in hashes.tolist() if value not in self._known]
            if not new:
                return self.part
            if self._n_read > WORTH_READING_WHOLE * self.stored.size:
                self.part = self.stored.whole(read)
                self.is_whole = True
                return self.part
            more, n_bytes = self.stored.with_terms(np.array(new, np.uint64), read)
            self.part = joined_terms(self.part, more)
            self._known.update(new)
            self._n_read += n_bytes
            return self.part

    def with_words_between(self, first: bytes, after: bytes, read: ReadBlocks) -> Segment:
        """Return the segment with a part of its vocabulary, or more of that."""
        with self._lock:
            if self.is_whole:
                return self.part
            vocabulary = self.stored.words_between(first, after, read)
            self._n_read += len(vocabulary) // 3  # about as many bytes before it was unpacked
            return self.part._replace(vocabulary=vocabulary)


class StoredIndex:
    """Stored segments together, in the order of their documents. Threads share it.

    `language`: of their words.
    """

    def __init__(self, segments: Sequence[LoadedSegment], language: Language) -> None:
        self.segments = segments
        self.language = language
        self._lock = Lock()
        self._known: set[int] = set()  # hashes of the terms that `_index` has
        self._index = WordIndex([segment.part for segment in segments], language)
        self._is_whole = all(segment.is_whole for segment in segments)

    @property
    def n_docs(self) -> int:
        """How many documents there are."""
        return self._index.n_docs

    @property
    def whole(self) -> WordIndex | None:
        """The index with all terms, once they are read."""
        return self._index if self._is_whole else None

    def with_terms(self, terms: Sequence[str], read: ReadSegment) -> WordIndex:
        """Return an index that has some terms. It does not change when others are read later."""
        hashes = hash_plainly(terms)
        wanted = set(hashes.tolist())
        with self._lock:
            if self._is_whole or wanted <= self._known:
                return self._index
            parts = [one.with_terms(hashes, partial(read, one.name)) for one in self.segments]
            self._index = WordIndex(parts, self.language)
            self._is_whole = all(segment.is_whole for segment in self.segments)
            self._known |= wanted
            return self._index

    def like(self, word: str, read: ReadSegment, *, unfinished: bool) -> list[str]:
        """List words that a mistyped or unfinished one may be, in order."""
        form = fold(word)
        first = (form if unfinished else form[0]).encode(errors="replace")
        parts = [
            one.with_words_between(first, first + b"\xff", partial(read, one.name))
            for one in self.segments
        ]
        return WordIndex(parts, self.language).similar(word, unfinished=unfinished)


class IndexReader:
    """A `StoredIndex` as one transaction sees it, with the methods of `WordIndex`.

    `read` gives the blocks of segments as the transaction sees them.
    """

    def __init__(self, stored: StoredIndex, read: ReadSegment) -> None:
        self.language = stored.language
        self.n_docs = stored.n_docs
        self._stored = stored
        self._read = read

    def look_up(self, query: WordQuery) -> Asked:
        """See `WordIndex.look_up`."""
        index = self._stored.whole
        if index is None:
            index = self._with_terms([term.term for term in query.terms(self.language)])
        return index.look_up(query)

    def score(self, asked: Asked) -> Matches:
        """See `WordIndex.score`."""
        return asked.source.score(asked)

    def best(self, asked: Asked, n: int, most: int) -> tuple[Matches, Callable[[Numbers], Shares]]:
        """See `WordIndex.best`."""
        return asked.source.best(asked, n, most)

    def having(self, words: Sequence[str], *, exactly: bool = False) -> Numbers:
        """See `WordIndex.having`."""
        index = self._stored.whole
        if index is None:
            index = self._with_terms(terms_of(words, self.language, exactly=exactly))
        return index.having(words, exactly=exactly)

    def with_name(self, query: WordQuery) -> Numbers | None:
        """See `WordIndex.with_name`."""
        index = self._stored.whole
        if index is None:
            name = query.only_name(self.language)
            index = self._with_terms(name_terms(name, self.language) if name else [])
        return index.with_name(query)

    def meant(self, word: str, *, unfinished: bool = False) -> list[str]:
        """See `WordIndex.meant`."""
        if index := self._stored.whole:
            return index.meant(word, unfinished=unfinished)
        words = self._stored.like(word, self._read, unfinished=unfinished)
        return self._with_terms(self.language.stems(words)).most_frequent(words)

    def _with_terms(self, terms: Sequence[str]) -> WordIndex:
        return self._stored.with_terms(terms, self._read)
