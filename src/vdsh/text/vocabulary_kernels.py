"""Kernels that count tokens: hash tables of words, and look-ups in them."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel
from vdsh.jit_kernels import lowest_bit
from vdsh.text.tokenizer_kernels import find_tokens

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Terms = NDArray[np.int32]


@kernel()
def _slot(value: np.uint64, size: int) -> np.int64:
    """Choose a slot by the upper bits of the hash too: FNV mixes them best."""
    return np.int64((value ^ (value >> np.uint64(32))) & np.uint64(size - 1))


@kernel()
def place(hashes: Hashes, size: int) -> Terms:
    """Fill a fresh table with words known to be distinct."""
    slots = np.full(size, -1, np.int32)
    for word in range(len(hashes)):
        slot = _slot(hashes[word], size)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = word
    return slots


@kernel()
def count_words(
    data: Bytes, starts: Offsets, stops: Offsets, hashes: Hashes, documents: Offsets, size: int
) -> tuple[Offsets, Offsets]:
    """Return the first token of each distinct word and the number of documents with it."""
    slots = np.full(size, -1, np.int32)
    n_tokens = len(starts)
    firsts, counts = np.empty(n_tokens, np.int64), np.zeros(n_tokens, np.int64)
    last_seen, word_hashes = np.empty(n_tokens, np.int64), np.empty(n_tokens, np.uint64)
    n_words = 0
    for doc in range(len(documents) - 1):
        for token in range(documents[doc], documents[doc + 1]):
            slot, word = _slot(hashes[token], size), -1
            while slots[slot] >= 0:
                candidate = slots[slot]
                first = firsts[candidate]
                same = word_hashes[candidate] == hashes[token]
                same = same and stops[first] - starts[first] == stops[token] - starts[token]
                for i in range(stops[token] - starts[token] if same else 0):
                    same = same and data[starts[first] + i] == data[starts[token] + i]
                if same:
                    word = candidate
                    break
                slot = (slot + 1) & (size - 1)
            if word < 0:
                word = n_words
                slots[slot] = word
                firsts[word], word_hashes[word], last_seen[word] = token, hashes[token], -1
                n_words += 1
                if 2 * n_words > size:
                    size *= 4
                    slots = place(word_hashes[:n_words], size)
            if last_seen[word] != doc:
                last_seen[word] = doc
                counts[word] += 1
    return firsts[:n_words], counts[:n_words]


@kernel()
def count_terms(
    data: Bytes,
    starts: Offsets,
    stops: Offsets,
    hashes: Hashes,
    documents: Offsets,
    slots: Terms,
    term_hashes: Hashes,
    term_data: Bytes,
    term_offsets: Offsets,
) -> tuple[Terms, Terms, Terms]:
    """Look every token up; a bit for each term says whether it was seen in the row."""
    n_docs, size = len(documents) - 1, len(slots)
    counts, terms = np.empty(len(starts), np.int32), np.empty(len(starts), np.int32)
    times = np.zeros(len(term_hashes), np.int32)
    seen = np.zeros(len(term_hashes) // 64 + 1, np.uint64)
    lengths = np.empty(n_docs, np.int32)
    used = 0
    for doc in range(n_docs):
        row = used
        for token in range(documents[doc], documents[doc + 1]):
            slot = _slot(hashes[token], size)
            while slots[slot] >= 0:
                term = slots[slot]
                offset = term_offsets[term]
                same = term_hashes[term] == hashes[token]
                same = same and term_offsets[term + 1] - offset == stops[token] - starts[token]
                for i in range(stops[token] - starts[token] if same else 0):
                    same = same and term_data[offset + i] == data[starts[token] + i]
                if same:
                    times[term] += 1
                    seen[term >> 6] |= np.uint64(1) << np.uint64(term & 63)
                    break
                slot = (slot + 1) & (size - 1)
        for word in range(len(seen)):  # in the order of columns, without sorting
            left = seen[word]
            while left != 0:
                term = 64 * word + lowest_bit(left)
                left &= left - np.uint64(1)
                terms[used], counts[used] = term, times[term]
                times[term] = 0
                used += 1
            seen[word] = 0
        lengths[doc] = used - row
    return counts[:used], terms[:used], lengths


@kernel()
def count_texts(
    data: Bytes,
    offsets: Offsets,
    classes: Bytes,
    slots: Terms,
    term_hashes: Hashes,
    term_data: Bytes,
    term_offsets: Offsets,
) -> tuple[Terms, Terms, Terms]:
    """Find tokens and look them up."""
    starts, stops, hashes, documents = find_tokens(data, offsets, classes, 2)
    return count_terms(
        data, starts, stops, hashes, documents, slots, term_hashes, term_data, term_offsets
    )
