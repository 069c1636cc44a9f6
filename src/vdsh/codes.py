"""Bits and codes: thresholds, packing, hex. Packed codes are big-endian, as `numpy.packbits`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vdsh.errors import InputError

MAX_BITS = 1024
FIXED = ("median", "sign")  # thresholds that follow from the scores alone
THRESHOLDS = (*FIXED, "best")

Bits = NDArray[np.uint8]
Codes = NDArray[np.uint8]
Scores = NDArray[np.float32]
Words = NDArray[np.uint64]  # codes as kernels want them: see `to_words`


def check_n_bits(n_bits: object) -> int:
    """Return `n_bits` as an int, or raise when no code can have that length.

    >>> check_n_bits(32)
    32
    """
    is_int = isinstance(n_bits, int | np.integer) and not isinstance(n_bits, bool)
    if not is_int or n_bits % 8 or not 8 <= n_bits <= MAX_BITS:  # type: ignore[operator]
        raise InputError(f"n_bits must be a multiple of 8 from 8 to {MAX_BITS}. Got {n_bits!r}.")
    return int(n_bits)  # type: ignore[call-overload,no-any-return]


def check_threshold(method: object) -> None:
    """Raise when there is no such way to learn thresholds."""
    if method not in THRESHOLDS:
        raise InputError(f"threshold must be one of {', '.join(THRESHOLDS)}. Got {method!r}.")


def plain_threshold(settings: Mapping[str, Any]) -> str:
    """Return what "best" falls back to without labels: the sign where a decoder sees signs.

    >>> plain_threshold({"decoder_size": 200}), plain_threshold({})
    ('sign', 'median')
    """
    return "sign" if settings.get("decoder_size") else "median"


def thresholds(scores: Scores, method: str) -> Scores:
    """Learn one threshold per bit from scores alone; a score above it gives 1.

    The third way, `best`, needs labels as well: see `vdsh.hashers.thresholds`.

    Parameters
    ----------
    scores : ndarray of shape (n_docs, n_bits)
        Scores of the training documents.
    method : {"median", "sign"}
        `median` halves the training documents at each bit (section 3.4 of the paper);
        `sign` gives 1 to every score that is not negative.

    Returns
    -------
    ndarray of shape (n_bits,)
    """
    if method == "median":
        return np.median(scores, axis=0).astype(np.float32)
    if method == "sign":
        # The largest float below zero: "above it" then means "not negative", as in the paper.
        return np.full(scores.shape[1], np.nextafter(np.float32(0), np.float32(-1)), np.float32)
    raise InputError(f"threshold must be one of {', '.join(FIXED)}. Got {method!r}.")


def binarize(scores: Scores, thresholds: Scores) -> Bits:
    """Compare scores of shape (n_docs, n_bits) with a threshold per bit.

    >>> binarize(np.array([[0.2, -1.0]], np.float32), np.zeros(2, np.float32))
    array([[1, 0]], dtype=uint8)
    """
    return (scores > thresholds).view(np.uint8)


def pack(bits: ArrayLike) -> Codes:
    """Pack 0/1 bits of shape (n, n_bits) into codes of shape (n, n_bits // 8).

    >>> pack([[1, 0, 0, 0, 0, 0, 0, 1]])
    array([[129]], dtype=uint8)
    """
    return np.packbits(np.asarray(bits, dtype=np.uint8), axis=-1)


def unpack(codes: ArrayLike) -> Bits:
    """Unpack codes of shape (n, n_bytes) into bits of shape (n, 8 * n_bytes).

    >>> unpack([[129]])
    array([[1, 0, 0, 0, 0, 0, 0, 1]], dtype=uint8)
    """
    return np.unpackbits(np.asarray(codes, dtype=np.uint8), axis=-1)


def to_hex(codes: Codes) -> list[str]:
    """Write each code as hexadecimal digits, two a byte.

    >>> to_hex(np.array([[129, 10]], np.uint8))
    ['810a']
    """
    return [code.tobytes().hex() for code in codes]


def from_hex(texts: Sequence[str]) -> Codes:
    """Read codes written by `to_hex`; all must have one length.

    >>> from_hex(['810a'])
    array([[129,  10]], dtype=uint8)
    """
    if len({len(text) for text in texts}) > 1:
        raise InputError("Hex codes must all have the same length.")
    try:
        joined = bytes.fromhex("".join(texts))
    except ValueError as error:
        raise InputError(f"Not a hexadecimal code: {error}.") from None
    return np.frombuffer(joined, np.uint8).reshape(len(texts), -1).copy()


def to_bit_strings(codes: Codes) -> list[str]:
    """Write each code as a string of 0 and 1, most significant bit first.

    >>> to_bit_strings(np.array([[129]], np.uint8))
    ['10000001']
    """
    digits = np.ascontiguousarray(unpack(codes) + ord("0"))
    return [row.tobytes().decode("ascii") for row in digits]


def expected_distances(codes: Codes, probabilities: Scores) -> NDArray[np.float64]:
    """Compute the Hamming distance that a document with unsure bits is expected to have to codes.

    Parameters
    ----------
    codes : uint8 ndarray of shape (n, n_bytes)
    probabilities : ndarray of shape (n_bits,)
        Of each bit of the document being 1.

    Examples
    --------
    >>> sure, unsure = np.ones(6), np.array([0.5, 0.9])
    >>> expected_distances(np.array([[255], [254]], np.uint8), np.concatenate([sure, unsure]))
    array([0.6, 1.4])
    """
    p = probabilities.astype(np.float64)
    distances: NDArray[np.float64] = p.sum() + unpack(codes) @ (1 - 2 * p)
    return distances


def to_words(codes: Codes) -> NDArray[np.uint64]:
    """Pad codes with zero bytes to whole 64-bit words, for kernels that count bits.

    Distances between codes do not change, because every code gets the same padding.
    """
    n_docs, n_bytes = codes.shape
    padded = np.zeros((n_docs, -(-n_bytes // 8) * 8), np.uint8)
    padded[:, :n_bytes] = codes
    return padded.view(np.uint64)
