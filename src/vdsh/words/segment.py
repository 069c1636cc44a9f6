"""`Segment`: an immutable piece of the word index, over documents with successive numbers.

A piece has at most 65,536 documents, so that a place in it takes two bytes. Words are kept as
64-bit hashes: among a million words the chance that two of them share one is one in thirty million,
and then a document is found that lacks a word.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError
from vdsh.jit import compiled
from vdsh.text.languages import Language
from vdsh.words.counting import Counted, count_terms
from vdsh.words.vocabulary import join_words

MOST = 1 << 16  # documents
ABSENT = MOST - 1  # the length of a document that is not there
# Sign, check sum, documents, terms, entries, bytes of the vocabulary.
_HEADER = struct.Struct("<4sIIIII")
_SIGN = b"vdw3"
_PLAIN = 1e-7  # seconds an entry without kernels


class DamagedWordsError(FolderError):
    """Bytes that are no segment."""


class Segment(NamedTuple):
    """Which documents have which words.

    Word j has the entries from `offsets[j]` to `offsets[j + 1]`, in the order of the documents.
    """

    first: int  # the number of the first document
    hashes: NDArray[np.uint64]  # (n_words,): its words, in order
    offsets: NDArray[np.int64]  # (n_words + 1,)
    places: NDArray[np.uint16]  # (n_entries,): documents, counted from the first
    # (n_entries,): how much of the word the document has, 255 at most: more than once in its
    # opening.
    counts: NDArray[np.uint8]
    # (n_docs,): the sum of each document's words, 65,534 at most; `ABSENT` for one that is not
    # there.
    lengths: NDArray[np.uint16]
    vocabulary: bytes  # its words, see `vocabulary`

    @property
    def n_docs(self) -> int:
        """How many documents are there."""
        return int(np.count_nonzero(self.lengths != ABSENT))

    @property
    def n_words(self) -> int:
        """How much all words of all documents count together."""
        return int(self.lengths[self.lengths != ABSENT].sum(dtype=np.int64))

    @classmethod
    def of(cls, texts: Sequence[str], language: Language, first: int = 0) -> Self:
        """Count the terms of texts, 65,536 at most."""
        if len(texts) > MOST:
            raise ValueError(f"a segment has at most {MOST:,} documents, not {len(texts):,}")
        segments = []
        for some, counted in count_terms(texts, language):
            lengths = counted.lengths.clip(max=ABSENT - 1).astype(np.uint16)
            entries = _in_term_order(counted)
            segments.append(cls(first, counted.hashes, *entries, lengths, counted.vocabulary))
            first += len(some)
        return segments[0] if len(segments) == 1 else cls.joined(segments)

    @classmethod
    def joined(cls, segments: Sequence["Segment"]) -> Self:
        """Make one segment of several, in the order of their documents, with gaps between them."""
        first = segments[0].first
        shifts = [segment.first - first for segment in segments]
        lengths = np.full(shifts[-1] + len(segments[-1].lengths), ABSENT, np.uint16)
        for segment, shift in zip(segments, shifts, strict=True):
            lengths[shift : shift + len(segment.lengths)] = segment.lengths
        hashes = np.concatenate([segment.hashes for segment in segments])
        sizes = np.concatenate([np.diff(segment.offsets) for segment in segments])
        places = [s.places + np.uint16(shift) for s, shift in zip(segments, shifts, strict=True)]
        order = np.argsort(hashes, kind="stable")
        entries = _ranges((np.cumsum(sizes) - sizes)[order], sizes[order])
        firsts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order][:1]))
        ends = np.append(0, np.cumsum(sizes[order]))
        return cls(
            first,
            hashes[order][firsts],
            np.append(ends[firsts], ends[-1]),
            np.concatenate(places)[entries],
            np.concatenate([segment.counts for segment in segments])[entries],
            lengths,
            join_words(word for one in segments for word in one.vocabulary.split(b"\n")),
        )

    def at(self, numbers: NDArray[np.int64]) -> "Segment":
        """Give the documents other numbers, which ascend; there may be gaps."""
        places = (numbers - numbers[0]).astype(np.uint16)
        lengths = np.full(int(places[-1]) + 1, ABSENT, np.uint16)
        lengths[places] = self.lengths
        return self._replace(first=int(numbers[0]), places=places[self.places], lengths=lengths)

    def without(self, places: NDArray[np.uint16]) -> "Segment":
        """Leave some documents out."""
        lengths = self.lengths.copy()
        lengths[places] = ABSENT
        stays = lengths[self.places] != ABSENT
        offsets = np.append(0, np.cumsum(stays))[self.offsets]
        used = np.diff(offsets) > 0
        return self._replace(
            hashes=self.hashes[used],
            offsets=np.append(offsets[:-1][used], offsets[-1]),
            places=self.places[stays],
            counts=self.counts[stays],
            lengths=lengths,
        )

    def to_bytes(self) -> bytes:
        """Give the bytes that `from_bytes` reads."""
        sizes = np.diff(self.offsets).astype(np.uint32)
        arrays = (self.hashes, sizes, self.places, self.lengths, self.counts)
        body = b"".join([*(array.tobytes() for array in arrays), self.vocabulary])
        shape = len(self.lengths), len(self.hashes), len(self.places), len(self.vocabulary)
        return _HEADER.pack(_SIGN, _check_sum(body, self.first), *shape) + body

    @classmethod
    def from_bytes(cls, data: bytes, first: int) -> Self:
        """Read a segment; raise where the bytes are not as they were written."""
        try:
            sign, check, n_docs, n_words, n_entries, n_bytes = _HEADER.unpack_from(data)
            body = memoryview(data)[_HEADER.size :]
            size = 12 * n_words + 3 * n_entries + 2 * n_docs + n_bytes
            if sign != _SIGN or len(body) != size or _check_sum(body, first) != check:
                raise ValueError("not as it was written")
        except (struct.error, TypeError, ValueError) as error:
            raise DamagedWordsError(f"The word index is damaged ({error}).") from error
        ends = np.cumsum([8 * n_words, 4 * n_words, 2 * n_entries, 2 * n_docs]).tolist()
        hashes = np.frombuffer(body, np.uint64, n_words)
        sizes = np.frombuffer(body, np.uint32, n_words, ends[0])
        places = np.frombuffer(body, np.uint16, n_entries, ends[1])
        lengths = np.frombuffer(body, np.uint16, n_docs, ends[2])
        counts = np.frombuffer(body, np.uint8, n_entries, ends[3])
        offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
        if offsets[-1] != n_entries or places.max(initial=0) >= max(1, n_docs):
            raise DamagedWordsError("The word index is damaged (its entries are of no documents).")
        vocabulary = bytes(body[size - n_bytes :])
        return cls(first, hashes, offsets, places, counts, lengths, vocabulary)


def _check_sum(body: bytes | memoryview, first: int) -> int:
    """Sum up the bytes of a segment, and which documents they are of."""
    return zlib.crc32(body, first & 0xFFFFFFFF)


def _in_term_order(
    counted: Counted,
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint8]]:
    """Order entries by their terms, then by document: offsets, documents, counts."""
    numbers, counts, ends = counted.numbers, counted.counts, counted.ends
    if compiled(_PLAIN * len(numbers)):
        from vdsh.words.term_kernels import in_term_order

        return in_term_order(len(counted.hashes), numbers, counts, ends)
    places = np.repeat(np.arange(len(ends) - 1), np.diff(ends)).astype(np.uint16)
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers, minlength=len(counted.hashes))
    few = np.minimum(counts[order], 255).astype(np.uint8)
    return np.append(0, np.cumsum(sizes)), places[order], few


def _ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lay ranges of numbers end to end."""
    shifts = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return shifts + np.arange(len(shifts))
