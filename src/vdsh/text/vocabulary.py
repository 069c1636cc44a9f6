"""Counting tokens: which words occur in how many documents, and which known words where."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.text.tokenizer import Tokens, character_classes, hash_words, lay_out

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Terms = NDArray[np.int32]


class WordTable(NamedTuple):
    """A vocabulary as an open-addressing hash table over its UTF-8 bytes."""

    slots: Terms  # term number, or -1 where the slot is free; a power of two of them
    hashes: Hashes
    data: Bytes
    offsets: Offsets


def build_table(terms: list[str]) -> WordTable:
    """Make the hash table of a vocabulary."""
    from vdsh.text.token_kernels import place

    data, offsets, hashes = hash_words(terms)
    return WordTable(place(hashes, _table_size(len(terms))), hashes, data, offsets)


def document_frequencies(tokens: Tokens) -> dict[bytes, int]:
    """Count in how many documents each distinct token occurs."""
    from vdsh.text.token_kernels import count_words

    firsts, counts = count_words(*tokens, _table_size(max(16, len(tokens.starts) // 4)))
    data = tokens.data.tobytes()
    starts, stops = tokens.starts[firsts].tolist(), tokens.stops[firsts].tolist()
    words = (data[i:j] for i, j in zip(starts, stops, strict=True))
    return dict(zip(words, counts.tolist(), strict=True))


def count_terms(tokens: Tokens, table: WordTable) -> tuple[Terms, Terms, Terms]:
    """Count the known words of each document: data, indices and row lengths of a CSR matrix."""
    from vdsh.text import token_kernels

    return token_kernels.count_terms(*tokens, *table)


def count_texts(texts: Sequence[str], table: WordTable) -> tuple[Terms, Terms, Terms]:
    """Do what `count_terms` does, in one kernel: tokens need not come to Python in between."""
    from vdsh.text import token_kernels

    data, offsets = lay_out(texts)
    return token_kernels.count_texts(data, offsets, character_classes(), *table)


def _table_size(n_words: int) -> int:
    return 1 << int(2 * n_words).bit_length()  # at most half full
