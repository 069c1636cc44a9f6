"""`Segment`: an immutable piece of the word index, over documents with successive numbers.

A piece has at most 65,536 documents, so that a place in it takes two bytes. Words are kept as
64-bit hashes: among a million words the chance that two of them share one is one in thirty million,
and then a document is found that lacks a word.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.cancel import check_wanted
from vdsh.jit import compiled
from vdsh.text.languages import Language
from vdsh.words.counting import Counted, count_terms
from vdsh.words.vocabulary import join_words

MOST = 1 << 16  # documents
ABSENT = MOST - 1  # the length of a document that is not there
_PLAIN = 1e-7  # seconds an entry without kernels
_LONG = 600  # characters: shorter texts have too few words for passages


class Postings(NamedTuple):
    """Which texts have which terms.

    Term j has the entries from `offsets[j]` to `offsets[j + 1]`, in the order of the texts.
    """

    hashes: NDArray[np.uint64]  # (n_terms,): its terms, in order
    offsets: NDArray[np.int64]  # (n_terms + 1,)
    places: NDArray[np.uint16 | np.uint32]  # (n_entries,): texts, counted from the first
    # (n_entries,): how much of the term the text has, 255 at most: more than once in its opening.
    counts: NDArray[np.uint8]
    # (n_texts,): the sum of each text's words, 65,534 at most; `ABSENT` for one that is not there.
    lengths: NDArray[np.uint16]

    @classmethod
    def of(cls, counted: Counted, kind: type[np.unsignedinteger[Any]]) -> "Postings":
        """Order what was counted by terms."""
        lengths = counted.lengths.clip(max=ABSENT - 1).astype(np.uint16)
        offsets, places, counts = _in_term_order(counted)
        return cls(counted.hashes, offsets, places.astype(kind), counts, lengths)

    @classmethod
    def joined(cls, parts: Sequence["Postings"], shifts: Sequence[int]) -> "Postings":
        """Make one of several, in the order of their texts; `shifts` are their first places."""
        lengths = np.full(shifts[-1] + len(parts[-1].lengths), ABSENT, np.uint16)
        for part, shift in zip(parts, shifts, strict=True):
            lengths[shift : shift + len(part.lengths)] = part.lengths
        hashes = np.concatenate([part.hashes for part in parts])
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        pairs = zip(parts, shifts, strict=True)
        places = [part.places + part.places.dtype.type(shift) for part, shift in pairs]
        order = np.argsort(hashes, kind="stable")
        entries = _ranges((np.cumsum(sizes) - sizes)[order], sizes[order])
        firsts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order][:1]))
        ends = np.append(0, np.cumsum(sizes[order]))
        return cls(
            hashes[order][firsts],
            np.append(ends[firsts], ends[-1]),
            np.concatenate(places)[entries],
            np.concatenate([part.counts for part in parts])[entries],
            lengths,
        )

    def without(self, places: NDArray[Any]) -> "Postings":
        """Leave some texts out."""
        lengths = self.lengths.copy()
        lengths[places] = ABSENT
        stays = lengths[self.places] != ABSENT
        offsets = np.append(0, np.cumsum(stays))[self.offsets]
        used = np.diff(offsets) > 0
        return Postings(
            self.hashes[used],
            np.append(offsets[:-1][used], offsets[-1]),
            self.places[stays],
            self.counts[stays],
            lengths,
        )

    def find(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tell where the entries of terms begin and end; nowhere for those it has not."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        at = np.searchsorted(self.hashes, hashes)
        at -= at == len(self.hashes)
        there = self.hashes[at] == hashes
        return self.offsets[at] * there, self.offsets[at + 1] * there


class Passages(NamedTuple):
    """The passages of long documents: which terms they have, and where they are."""

    postings: Postings
    owners: NDArray[np.uint16]  # (n_passages,): documents, counted from the first
    spans: NDArray[np.uint32]  # (n_passages, 2): where they begin and end, in characters

    @classmethod
    def of(cls, texts: Sequence[str], language: Language) -> "Passages":
        """Split the long ones of some texts."""
        spans = list(map(split, texts))
        pieces = [texts[i][a:b] for i, some in enumerate(spans) for a, b in some]
        parts, shifts = [], [0]
        for some, counted in count_terms(pieces, language, opening=()):
            parts.append(Postings.of(counted, np.uint32))
            shifts.append(shifts[-1] + len(some))
        owners = np.repeat(np.arange(len(texts)), list(map(len, spans)))
        flat = np.array([span for some in spans for span in some], np.uint32).reshape(-1, 2)
        return cls(Postings.joined(parts, shifts[:-1]), owners.astype(np.uint16), flat)


def split(text: str) -> list[tuple[int, int]]:
    """Say where the passages of a long text begin and end; a short one has none."""
    from vdsh.documents.split import split_text

    check_wanted()
    spans = split_text(text) if len(text) > _LONG else []
    return spans if len(spans) > 1 else []


class Segment(NamedTuple):
    """Which documents have which words, and which passages of the long ones."""

    first: int  # the number of the first document
    documents: Postings
    passages: Passages
    vocabulary: bytes  # their words, see `vocabulary`

    @property
    def n_docs(self) -> int:
        """How many documents are there."""
        return int(np.count_nonzero(self.documents.lengths != ABSENT))

    @property
    def n_words(self) -> int:
        """How much all words of all documents count together."""
        return _sum(self.documents.lengths)

    @classmethod
    def of(cls, texts: Sequence[str], language: Language, first: int = 0) -> "Segment":
        """Count the terms of texts, 65,536 at most."""
        if len(texts) > MOST:
            raise ValueError(f"a segment has at most {MOST:,} documents, not {len(texts):,}")
        segments = []
        for some, counted in count_terms(texts, language):
            postings, passages = Postings.of(counted, np.uint16), Passages.of(some, language)
            segments.append(cls(first, postings, passages, counted.vocabulary))
            first += len(some)
        return segments[0] if len(segments) == 1 else cls.joined(segments)

    @classmethod
    def joined(cls, segments: Sequence["Segment"]) -> "Segment":
        """Make one segment of several, in the order of their documents, with gaps between them."""
        shifts = [segment.first - segments[0].first for segment in segments]
        inside = [segment.passages for segment in segments]
        before = [0, *accumulate(len(one.owners) for one in inside)]
        owners = [one.owners + np.uint16(n) for one, n in zip(inside, shifts, strict=True)]
        return cls(
            segments[0].first,
            Postings.joined([segment.documents for segment in segments], shifts),
            Passages(
                Postings.joined([one.postings for one in inside], before[:-1]),
                np.concatenate(owners),
                np.concatenate([one.spans for one in inside]),
            ),
            join_words(b"\n".join(one.vocabulary for one in segments).split(b"\n")),
        )

    def at(self, numbers: NDArray[np.int64]) -> "Segment":
        """Give the documents other numbers, which ascend; there may be gaps."""
        places = (numbers - numbers[0]).astype(np.uint16)
        lengths = np.full(int(places[-1]) + 1, ABSENT, np.uint16)
        lengths[places] = self.documents.lengths
        documents = self.documents._replace(places=places[self.documents.places], lengths=lengths)
        passages = self.passages._replace(owners=places[self.passages.owners])
        return self._replace(first=int(numbers[0]), documents=documents, passages=passages)

    def without(self, places: NDArray[np.uint16]) -> "Segment":
        """Leave some documents out."""
        documents = self.documents.without(places)
        gone = np.flatnonzero(documents.lengths[self.passages.owners] == ABSENT)
        passages = self.passages._replace(postings=self.passages.postings.without(gone))
        return self._replace(documents=documents, passages=passages)


def _sum(lengths: NDArray[np.uint16]) -> int:
    return int(lengths[lengths != ABSENT].sum(dtype=np.int64))


def _in_term_order(
    counted: Counted,
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
    """Order entries by their terms, then by document: offsets, documents, counts."""
    numbers, counts, ends = counted.numbers, counted.counts, counted.ends
    if compiled(_PLAIN * len(numbers)):
        from vdsh.words.term_kernels import in_term_order

        return in_term_order(len(counted.hashes), numbers, counts, ends)
    places = np.repeat(np.arange(len(ends) - 1), np.diff(ends)).astype(np.uint32)
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers, minlength=len(counted.hashes))
    few = np.minimum(counts[order], 255).astype(np.uint8)
    return np.append(0, np.cumsum(sizes)), places[order], few


def _ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lay ranges of numbers end to end."""
    shifts = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return shifts + np.arange(len(shifts))
