"""Kernels of the tokenizer, over texts laid end to end as UTF-8."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel
from vdsh.text.tokenizer import (
    APOSTROPHE,
    ATTACHED,
    FNV_OFFSET,
    FNV_PRIME,
    IDEOGRAPH,
    LONGEST,
    MOST_ATTACHED,
    SEPARATOR,
    SYMBOL,
    TABLE_SIZE,
    WORD,
)


@kernel()
def _width(first: int) -> int:
    """Return how many bytes the character has whose first byte is given (valid UTF-8)."""
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)


@kernel()
def _wide_class(data: NDArray[np.uint8], i: int, classes: NDArray[np.uint8]) -> int:
    """Return the class of the character of two to four bytes at byte i."""
    width = _width(data[i])
    point = np.int64(data[i]) & (0x7F >> width)
    for j in range(i + 1, i + width):
        point = point << 6 | (data[j] & 0x3F)
    if point < TABLE_SIZE:
        return classes[point]  # type: ignore[no-any-return]
    return IDEOGRAPH if point < 0x40000 else SEPARATOR


@kernel()
def _after(data: NDArray[np.uint8], i: int, end: int, classes: NDArray[np.uint8]) -> int:
    """Return where the character at byte i ends, with all that is attached to it."""
    i += _width(data[i])
    for _ in range(MOST_ATTACHED):
        if i >= end or data[i] < 0x80 or _wide_class(data, i, classes) != ATTACHED:
            break
        i += _width(data[i])
    return i


@kernel()
def hash_bytes(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """Hash bytes with FNV-1a (Fowler, Noll and Vo); words are short, a byte at a time will do."""
    value = FNV_OFFSET
    for i in range(start, stop):
        value = (value ^ np.uint64(data[i])) * FNV_PRIME
    return value


@kernel()
def find_tokens(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], classes: NDArray[np.uint8], shortest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Find all tokens. One function without calls in the path of ASCII words: five times faster."""
    capacity = len(data) // 2 + len(offsets)  # a token and its separator take two bytes or more
    starts, stops = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    hashes, documents = np.empty(capacity, np.uint64), np.zeros(len(offsets), np.int64)
    n = 0
    for doc in range(len(offsets) - 1):
        i, end, in_run = offsets[doc], offsets[doc + 1], False
        while i < end:
            kind = classes[data[i]] if data[i] < 0x80 else _wide_class(data, i, classes)
            if kind == SEPARATOR or kind == APOSTROPHE:
                i += _width(data[i])
                while i < end and data[i] < 0x80 and classes[data[i]] == SEPARATOR:
                    i += 1
                in_run = False
                continue
            start, stop, value = i, i, FNV_OFFSET
            if kind == WORD:
                length, apostrophe, value_before = 0, -1, value
                while i < end:
                    while i < end and data[i] < 0x80 and classes[data[i]] == WORD:
                        value = (value ^ np.uint64(data[i])) * FNV_PRIME
                        i += 1
                        length += 1
                    if i >= end:
                        break
                    kind = classes[data[i]] if data[i] < 0x80 else _wide_class(data, i, classes)
                    if kind == APOSTROPHE and apostrophe < i - 1:
                        apostrophe, value_before = i, value  # belongs to the word if more follows
                    elif kind != WORD:
                        break
                    for _ in range(_width(data[i])):
                        value = (value ^ np.uint64(data[i])) * FNV_PRIME
                        i += 1
                    length += 1
                stop = i
                possessive = apostrophe == i - 2 and data[i - 1] == 115  # 's
                if possessive or (apostrophe == i - 1 and apostrophe >= start):
                    length -= i - apostrophe
                    stop, value = apostrophe, value_before
                in_run = False
                if length < shortest or length > LONGEST:
                    continue
            else:
                i = stop = _after(data, i, end, classes) if kind != SYMBOL else i + _width(data[i])
                if kind != SYMBOL:
                    paired = i < end and data[i] >= 0x80
                    paired = paired and _wide_class(data, i, classes) == IDEOGRAPH
                    if paired:
                        stop = _after(data, i, end, classes)
                    elif in_run:  # the last of a run is part of the pair before
                        in_run = False
                        continue
                    in_run = paired
                value = hash_bytes(data, start, stop)
            starts[n], stops[n], hashes[n] = start, stop, value
            n += 1
        documents[doc + 1] = n
    return starts[:n], stops[:n], hashes[:n], documents
