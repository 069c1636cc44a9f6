"""Segments as they are stored: a head, and blocks that can be read one at a time.

A query needs the postings of its own words, which are a small part of a segment. So the postings
are cut into blocks of successive terms, and the head says which terms and how many entries each
block has. The head also has a check sum of every block, and one of itself, so damage is noticed
in whatever is read, and `StoredSegment.whole` notices it anywhere.

Where blocks are kept is up to the engine, which reads them by their number: see `ReadBlocks`.
"""

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.errors import FolderError
from vdsh.words.segment import ABSENT, Passages, Postings, Segment

BLOCK = 1 << 15  # bytes of a block before it is packed; a frequent term may have more
_TERM = 12  # bytes of a term in a block: its hash and how many entries it has
_SIGN = b"vdw7"
# Sign, check sum; documents, passages, blocks of postings of documents and of passages, blocks of
# the vocabulary, bytes of the first words of these.
_HEADER = struct.Struct("<4sI6I")

# Gives the blocks of a segment that have some numbers, in that order.
ReadBlocks = Callable[[Sequence[int]], Sequence[bytes]]
Hashes = NDArray[np.uint64]
Kind = type[np.unsignedinteger[Any]]


class DamagedWordsError(FolderError):
    """Bytes that are no segment."""


class Directory(NamedTuple):
    """What is in the blocks of some postings."""

    hashes: Hashes  # (n_blocks,): the first term of each
    n_terms: NDArray[np.uint32]
    n_entries: NDArray[np.uint32]

    def blocks_with(self, hashes: Hashes) -> list[int]:
        """List the blocks that may have some terms."""
        numbers = np.searchsorted(self.hashes, hashes, side="right") - 1
        return sorted(number for number in set(numbers.tolist()) if number >= 0)


class Head(NamedTuple):
    """What a segment has and where, without the postings themselves."""

    first: int  # the number of the first document
    lengths: NDArray[np.uint16]  # of documents, see `Postings`
    n_passages: int
    documents: Directory
    passages: Directory
    words: list[bytes]  # the first one of each block of the vocabulary
    check_sums: list[int]  # of all blocks

    @property
    def first_of_passages(self) -> int:
        """The number of the first block with postings of passages."""
        return len(self.documents.hashes)

    @property
    def about_passages(self) -> int:
        """The number of the block that says where passages are, if there are any."""
        return self.first_of_passages + len(self.passages.hashes)

    @property
    def first_of_words(self) -> int:
        """The number of the first block of the vocabulary."""
        return self.about_passages + bool(self.n_passages)


def to_blocks(segment: Segment) -> tuple[bytes, list[bytes]]:
    """Write a segment as a head and blocks."""
    inside = segment.passages
    documents, blocks = _write_postings(segment.documents)
    passages, more = _write_postings(inside.postings)
    blocks += more
    if len(inside.owners):
        columns = inside.owners, inside.postings.lengths, inside.spans
        blocks.append(_pack([np.ascontiguousarray(column).ravel() for column in columns]))
    words = []
    for lines in _cut_lines(segment.vocabulary):
        words.append(lines.partition(b"\n")[0])
        blocks.append(zlib.compress(lines))
    first_words = b"\n".join(words)
    sizes = (
        len(segment.documents.lengths),
        len(inside.owners),
        len(documents.hashes),
        len(passages.hashes),
        len(words),
        len(first_words),
    )
    check_sums = np.array([zlib.crc32(block) for block in blocks], np.uint32)
    arrays: list[NDArray[Any]] = [*documents, *passages, check_sums]
    arrays.append(segment.documents.lengths)
    body = b"".join([*(array.tobytes() for array in arrays), first_words])
    facts = _HEADER.pack(_SIGN, _check_sum(sizes, body, segment.first), *sizes)
    return facts + body, blocks


def read_head(data: bytes, first: int) -> Head:
    """Read the head of a segment; raise if it is not as it was written."""
    try:
        sign, check_sum, *sizes = _HEADER.unpack_from(data)
        body = memoryview(data)[_HEADER.size :]
        if sign != _SIGN or _check_sum(sizes, body, first) != check_sum:
            raise ValueError("not as it was written")
        return _read_head(body, sizes, first)
    except (struct.error, TypeError, ValueError) as error:
        raise _damaged(error) from error


def _read_head(body: memoryview, sizes: Sequence[int], first: int) -> Head:
    n_docs, n_passages, n_blocks, n_inside, n_words, n_bytes = sizes
    kinds: list[tuple[Kind, int]] = []
    for n in (n_blocks, n_inside):
        kinds += [(np.uint64, n), (np.uint32, n), (np.uint32, n)]
    kinds.append((np.uint32, n_blocks + n_inside + bool(n_passages) + n_words))
    kinds.append((np.uint16, n_docs))
    arrays: list[NDArray[Any]] = []
    at = 0
    for kind, size in kinds:
        arrays.append(np.frombuffer(body, kind, size, at))
        at += arrays[-1].nbytes
    words = bytes(body[at:]).split(b"\n") if n_words else []
    if len(body) != at + n_bytes or len(words) != n_words:
        raise ValueError("it is cut short, or goes on")
    return Head(
        first=first,
        lengths=arrays[7],
        n_passages=n_passages,
        documents=Directory(*arrays[0:3]),
        passages=Directory(*arrays[3:6]),
        words=words,
        check_sums=arrays[6].tolist(),
    )


class StoredSegment:
    """A segment of which only what is asked for is read.

    `deleted`: documents that are left out, counted from the first. `size`: bytes of its blocks.
    """

    def __init__(self, head: bytes, first: int, deleted: NDArray[np.uint16], size: int) -> None:
        self.head = read_head(head, first)
        self.size = size
        if deleted.max(initial=0) >= max(1, len(self.head.lengths)):
            raise DamagedWordsError("Documents that a segment does not have were deleted from it.")
        self._deleted = deleted

    @property
    def n_docs(self) -> int:
        """How many documents were written, with those that were deleted since."""
        return int(np.count_nonzero(self.head.lengths != ABSENT))

    def without_terms(self) -> Segment:
        """Give a segment of these documents that has no terms, and no passages."""
        documents = _no_postings(self.head.lengths, np.uint16)
        return self._without_deleted(documents, _no_passages())

    def with_terms(self, hashes: Hashes, read: ReadBlocks) -> tuple[Segment, int]:
        """Read what a segment of these documents has of some terms alone.

        Gives also how many bytes that took. The vocabulary stays out.
        """
        head = self.head
        documents, n_documents = self._read_terms(hashes, head.documents, 0, read, np.uint16)
        at = head.first_of_passages
        inside, n_inside = self._read_terms(hashes, head.passages, at, read, np.uint32)
        n_bytes = n_documents + n_inside
        if not len(inside.places):
            return self._without_deleted(documents, _no_passages()), n_bytes
        (about,) = self._read([head.about_passages], read)
        passages = self._about_passages(about, inside)
        return self._without_deleted(documents, passages), n_bytes + len(about)

    def whole(self, read: ReadBlocks) -> Segment:
        """Read all of it; raise if anything is not as it was written."""
        head = self.head
        blocks = self._read(range(len(head.check_sums)), read)
        if sum(map(len, blocks)) != self.size:
            raise _damaged("its blocks are not as long as they should be")
        documents = self._postings(head.documents, blocks, np.uint16)
        inside = self._postings(head.passages, blocks[head.first_of_passages :], np.uint32)
        passages = _no_passages()
        if head.n_passages:
            passages = self._about_passages(blocks[head.about_passages], inside)
        vocabulary = self._words(blocks[head.first_of_words :])
        segment = self._without_deleted(documents, passages)
        return segment._replace(vocabulary=vocabulary)

    def words_between(self, first: bytes, after: bytes, read: ReadBlocks) -> bytes:
        """Read the part of the vocabulary that has the words from one to before another."""
        words = self.head.words
        start = max(0, bisect_right(words, first) - 1)  # it may end with such words
        stop = max(start, bisect_left(words, after))
        at = self.head.first_of_words
        return self._words(self._read(range(at + start, at + stop), read))

    def _read(self, numbers: Sequence[int], read: ReadBlocks) -> Sequence[bytes]:
        blocks = read(numbers) if numbers else []
        for number, block in zip(numbers, blocks, strict=True):
            if not isinstance(block, bytes) or zlib.crc32(block) != self.head.check_sums[number]:
                raise _damaged("a block is not as it was written")
        return blocks

    def _read_terms(
        self, hashes: Hashes, directory: Directory, shift: int, read: ReadBlocks, kind: Kind
    ) -> tuple[Postings, int]:
        """Read the blocks that may have some terms, and keep those terms."""
        numbers = directory.blocks_with(hashes)
        blocks = self._read([shift + number for number in numbers], read)
        some = Directory(
            directory.hashes[numbers], directory.n_terms[numbers], directory.n_entries[numbers]
        )
        found = self._postings(some, blocks, kind)
        return _only(found, hashes), sum(map(len, blocks))

    def _postings(self, directory: Directory, blocks: Sequence[bytes], kind: Kind) -> Postings:
        """Decode blocks of postings, and lay them end to end; lengths of passages stay out."""
        is_of_documents = kind is np.uint16
        n_texts = len(self.head.lengths) if is_of_documents else self.head.n_passages
        lengths = self.head.lengths if is_of_documents else np.zeros(0, np.uint16)
        if not len(directory.hashes):
            return _no_postings(lengths, kind)
        parts = [
            _unpack_postings(block, n_terms, n_entries, kind)
            for block, n_terms, n_entries in zip(
                blocks, directory.n_terms.tolist(), directory.n_entries.tolist(), strict=False
            )
        ]
        hashes, sizes, places, counts = map(np.concatenate, zip(*parts, strict=True))
        if places.max(initial=0) >= max(1, n_texts):
            raise _damaged("its entries are of no documents")
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return Postings(hashes, offsets, places, counts, lengths)

    def _about_passages(self, block: bytes, postings: Postings) -> Passages:
        """Say where passages are, and how long."""
        n = self.head.n_passages
        owners, lengths, spans = _unpack(
            block, [(np.uint16, n), (np.uint16, n), (np.uint32, 2 * n)]
        )
        if owners.max(initial=0) >= max(1, len(self.head.lengths)):
            raise _damaged("passages are of no documents")
        return Passages(postings._replace(lengths=lengths), owners, spans.reshape(-1, 2))

    def _words(self, blocks: Sequence[bytes]) -> bytes:
        lines = []
        for block in blocks:
            stream = zlib.decompressobj()
            try:
                lines.append(stream.decompress(block, 2 * BLOCK))
            except zlib.error as error:
                raise _damaged(error) from error
            if not stream.eof:
                raise _damaged("a block is too long, or too short")
        return b"\n".join(lines)

    def _without_deleted(self, documents: Postings, passages: Passages) -> Segment:
        segment = Segment(self.head.first, documents, passages, b"")
        return segment.without(self._deleted) if len(self._deleted) else segment


def joined_terms(one: Segment, other: Segment) -> Segment:
    """Give two parts of the same segment as one; they have different terms, and no vocabulary."""
    documents = Postings.joined([one.documents, other.documents], [0, 0])
    inside = [part.passages for part in (one, other) if len(part.passages.owners)]
    if not inside:
        return one._replace(documents=documents)
    passages = inside[0]
    if len(inside) == 2:
        postings = Postings.joined([each.postings for each in inside], [0, 0])
        passages = passages._replace(postings=postings)
    return one._replace(documents=documents, passages=passages)


def _only(postings: Postings, hashes: Hashes) -> Postings:
    """Keep some terms, where they are there."""
    starts, stops = postings.find(hashes)
    there = np.flatnonzero(stops > starts)
    there = there[np.argsort(hashes[there])]
    ranges = list(zip(starts[there].tolist(), stops[there].tolist(), strict=True))
    places = [postings.places[:0], *(postings.places[start:stop] for start, stop in ranges)]
    counts = [postings.counts[:0], *(postings.counts[start:stop] for start, stop in ranges)]
    return Postings(
        hashes[there],
        np.append(0, np.cumsum((stops - starts)[there])),
        np.concatenate(places),
        np.concatenate(counts),
        postings.lengths,
    )


def _no_postings(lengths: NDArray[np.uint16], kind: Kind) -> Postings:
    nothing = np.zeros(0, np.uint64)
    return Postings(
        nothing, np.zeros(1, np.int64), nothing.astype(kind), nothing.astype(np.uint8), lengths
    )


def _no_passages() -> Passages:
    nothing = np.zeros(0, np.uint16)
    return Passages(_no_postings(nothing, np.uint32), nothing, np.zeros((0, 2), np.uint32))


def _write_postings(postings: Postings) -> tuple[Directory, list[bytes]]:
    """Cut postings into blocks of successive terms.

    A block ends where it would become too large. A term with many entries gets one of its own, so
    that others need not be read with it.
    """
    hashes, offsets, places, counts, _ = postings
    sizes = np.diff(offsets)
    n_bytes = _TERM + sizes * (places.itemsize + 1)
    is_large = n_bytes > BLOCK // 4
    cuts = np.zeros(len(hashes), bool)
    cuts[:1] = True
    cuts[1:] = np.diff((np.cumsum(n_bytes) - n_bytes) // BLOCK) > 0
    cuts |= is_large
    cuts[1:] |= is_large[:-1]
    firsts = np.flatnonzero(cuts)
    bounds = [*firsts.tolist(), len(hashes)]
    blocks = []
    for start, stop in pairwise(bounds):
        entries = slice(offsets[start], offsets[stop])
        steps = [_steps(hashes[start:stop]), sizes[start:stop].astype(np.uint32)]
        blocks.append(_pack([*steps, _steps(places[entries]), counts[entries]]))
    directory = Directory(
        hashes[firsts],
        np.diff(bounds).astype(np.uint32),
        np.diff(offsets[bounds]).astype(np.uint32),
    )
    return directory, blocks


def _unpack_postings(
    block: bytes, n_terms: int, n_entries: int, kind: Kind
) -> tuple[Hashes, NDArray[np.uint32], NDArray[Any], NDArray[np.uint8]]:
    kinds: list[tuple[Kind, int]] = [
        (np.uint64, n_terms),
        (np.uint32, n_terms),
        (kind, n_entries),
        (np.uint8, n_entries),
    ]
    hashes, sizes, places, counts = _unpack(block, kinds)
    if sizes.sum(dtype=np.int64) != n_entries:
        raise _damaged("its terms have other entries")
    return (
        np.cumsum(hashes, dtype=np.uint64),
        sizes,
        np.cumsum(places, dtype=kind),
        counts,
    )


def _steps(numbers: NDArray[Any]) -> NDArray[Any]:
    """Give the steps from one number to the next, which wrap around where they descend."""
    return np.diff(numbers, prepend=numbers.dtype.type(0))


def _pack(columns: Sequence[NDArray[Any]]) -> bytes:
    """Compress columns of numbers: about half of the bytes are left.

    The first bytes of numbers lie together, then their second ones and so on, and each of these
    rows is coded by itself, which saves a tenth. Run lengths are faster here than other ways, and
    smaller.
    """
    stream = zlib.compressobj(1, strategy=zlib.Z_RLE)
    parts = []
    for column in columns:
        for row in column.view(np.uint8).reshape(-1, column.itemsize).T:
            parts.append(stream.compress(row.tobytes()))
            parts.append(stream.flush(zlib.Z_BLOCK))
    return b"".join([*parts, stream.flush()])


def _unpack(block: bytes, kinds: Sequence[tuple[Kind, int]]) -> Iterator[NDArray[Any]]:
    """Undo `_pack`; raise if there is less or more in a block than it should have."""
    expected = sum(np.dtype(kind).itemsize * n for kind, n in kinds)
    try:
        body = zlib.decompressobj().decompress(block, expected + 1)
    except zlib.error as error:
        raise _damaged(error) from error
    if len(body) != expected:
        raise _damaged("a block is too long, or too short")
    at = 0
    for kind, n in kinds:
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(body, np.uint8, width * n, at).reshape(width, n)
        yield np.ascontiguousarray(planes.T).reshape(-1).view(kind)
        at += width * n


def _cut_lines(vocabulary: bytes) -> Iterator[bytes]:
    """Cut a vocabulary between its lines."""
    start = 0
    while start < len(vocabulary):
        stop = vocabulary.find(b"\n", start + BLOCK)
        stop = len(vocabulary) if stop < 0 else stop
        yield vocabulary[start:stop]
        start = stop + 1


def _check_sum(sizes: Sequence[int], body: bytes | memoryview, first: int) -> int:
    """Sum up the bytes of a head, and which documents it is of."""
    return zlib.crc32(body, zlib.crc32(struct.pack("<6I", *sizes), first & 0xFFFFFFFF))


def _damaged(why: object) -> DamagedWordsError:
    return DamagedWordsError(f"The word index is damaged ({why}).")
