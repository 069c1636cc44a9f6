"""Kernels that count terms: parts of identifiers, counts, entries in the order of terms."""

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import kernel
from vdsh.text.token_kernels import hash_bytes
from vdsh.text.tokenizer import FNV_OFFSET, FNV_PRIME

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Terms = NDArray[np.int32]

MOST_AROUND = 2  # underscores on each side that belong to an identifier, as in __init__
_EXACT = np.uint64(ord("="))  # begins a term that is a word as it stands
_JOINTS = (95, 46, 58)  # underscore, full stop, colon: between neighbours that are a name, too


@kernel()
def to_lower(data: Bytes) -> Bytes:
    """Write ASCII letters in lower case."""
    lower = np.empty_like(data)
    for i in range(len(data)):
        lower[i] = data[i] + 32 if 65 <= data[i] <= 90 else data[i]
    return lower


@kernel()
def _is_upper(byte: int) -> bool:
    return 65 <= byte <= 90


@kernel()
def _is_lower(byte: int) -> bool:
    return 97 <= byte <= 122


@kernel()
def _is_joint(byte: int) -> bool:
    """Say whether a sign joins words to one name: any of # & + - . / : @ _ and a backslash."""
    return 45 <= byte <= 47 or byte in (35, 38, 43, 58, 64, 92, 95)


@kernel()
def _hump(data: Bytes, i: int, start: int, stop: int) -> bool:
    """Say whether a new word begins inside a token, as in textHasher and HTMLParser."""
    if i <= start or i >= stop or not _is_upper(data[i]):
        return False
    if not _is_upper(data[i - 1]):
        return True
    return i + 2 < stop and _is_lower(data[i + 1]) and _is_lower(data[i + 2])


@kernel()
def find_parts(
    cased: Bytes,
    lower: Bytes,
    offsets: Numbers,
    starts: Numbers,
    stops: Numbers,
    documents: Numbers,
    longest: int,
    spans: NDArray[np.int64],
    hashes: Hashes,
) -> int:
    """Find the pieces of words such as textHasher, and names such as foo.bar; return how many.

    Of each that there is room for, `spans` gets its token, start, stop, and 1 for a name.
    """
    n = 0
    for doc in range(len(documents) - 1):
        token = documents[doc]
        while token < documents[doc + 1]:
            last = token
            stop = stops[last]
            while True:
                n = _add_humps(cased, lower, starts[last], stops[last], last, n, spans, hashes)
                stop = stops[last]
                if last + 1 >= documents[doc + 1]:
                    break
                gap = starts[last + 1] - stop
                joined = 1 <= gap <= 3
                for i in range(stop, stop + gap if joined else stop):
                    joined = joined and _is_joint(lower[i])
                if not joined:
                    break
                last += 1
            end = stop
            if stop < offsets[doc + 1] and lower[stop] == 35:  # C#
                end += 1
            elif stop + 1 < offsets[doc + 1] and lower[stop] == 43 and lower[stop + 1] == 43:
                end += 2
            is_name = last > token or end > stop
            is_name = is_name or (starts[token] > offsets[doc] and lower[starts[token] - 1] == 95)
            is_name = is_name or (stop < offsets[doc + 1] and lower[stop] == 95)
            if is_name:  # as few tokens are
                places = starts[token : last + 1], stops[token : last + 1]
                bounds = offsets[doc], offsets[doc + 1]
                n = _add_names(lower, places, bounds, end, last, longest, n, spans, hashes)
            token = last + 1
    return n


@kernel()
def _is_only(data: Bytes, start: int, stop: int, signs: tuple[int, int, int]) -> bool:
    """Say whether a stretch has no other bytes than some signs."""
    for i in range(start, stop):
        if data[i] != signs[0] and data[i] != signs[1] and data[i] != signs[2]:
            return False
    return True


@kernel()
def _add_names(
    lower: Bytes,
    places: tuple[Numbers, Numbers],
    bounds: tuple[int, int],
    end: int,
    owner: int,
    longest: int,
    n: int,
    spans: NDArray[np.int64],
    hashes: Hashes,
) -> int:
    """Add the names of tokens that signs join: see `counting._names_of`.

    `places`: where those tokens begin and end; `bounds`: where the document does. `end` is that of
    the whole name.
    """
    starts, stops = places
    start, n_tokens = starts[0], len(starts)
    if n_tokens > 1 or end > stops[0]:
        n = _add_name(lower, start, end, owner, longest, n, spans, hashes)
    cuts = 0
    for i in range(1, n_tokens):
        cuts += not _is_only(lower, stops[i - 1], starts[i], (95, 95, 95))
    before, first = -1, 0  # the first tokens of the identifier before, and of this one
    for i in range(1, n_tokens + 1):
        if i < n_tokens and _is_only(lower, stops[i - 1], starts[i], (95, 95, 95)):
            continue
        if cuts > 1 and before >= 0 and _is_only(lower, stops[first - 1], starts[first], _JOINTS):
            n = _add_name(lower, starts[before], stops[i - 1], owner, longest, n, spans, hashes)
        before, first = first, i
    first = 0
    for i in range(1, n_tokens + 1):
        if i < n_tokens and _is_only(lower, stops[i - 1], starts[i], (95, 95, 95)):
            continue
        begin, stop = starts[first], stops[i - 1]
        for _ in range(MOST_AROUND):
            begin -= begin > bounds[0] and lower[begin - 1] == 95
            stop += stop < bounds[1] and lower[stop] == 95
        is_name = i - first > 1 or stop - begin > stops[first] - starts[first]
        if is_name and not (begin == start and stop == end):
            n = _add_name(lower, begin, stop, owner, longest, n, spans, hashes)
        first = i
    return n


@kernel()
def _add_name(
    lower: Bytes,
    start: int,
    stop: int,
    owner: int,
    longest: int,
    n: int,
    spans: NDArray[np.int64],
    hashes: Hashes,
) -> int:
    if stop - start > longest:
        return n
    if n < len(hashes):
        spans[n, 0], spans[n, 1], spans[n, 2], spans[n, 3] = owner, start, stop, 1
        value = (FNV_OFFSET ^ _EXACT) * FNV_PRIME
        for i in range(start, stop):
            value = (value ^ np.uint64(lower[i])) * FNV_PRIME
        hashes[n] = value
    return n + 1


@kernel()
def _add_humps(
    cased: Bytes,
    lower: Bytes,
    start: int,
    stop: int,
    token: int,
    n: int,
    spans: NDArray[np.int64],
    hashes: Hashes,
) -> int:
    first, found = start, False
    for i in range(start + 1, stop + 1):
        if i < stop and not _hump(cased, i, start, stop):
            continue
        found = found or i < stop
        if found and i - first > 1:
            if n < len(hashes):
                spans[n, 0], spans[n, 1], spans[n, 2], spans[n, 3] = token, first, i, 0
                hashes[n] = hash_bytes(lower, first, i)
            n += 1
        first = i
    return n


@kernel()
def count_terms(
    documents: Numbers,
    stems: Terms,
    exacts: Terms,
    owners: Numbers,
    parts: Terms,
    n_terms: int,
    opening: NDArray[np.int64],
) -> tuple[Terms, NDArray[np.int32], Numbers, Numbers]:
    """Count the terms of each document, in their order of appearance, and its length.

    Parameters
    ----------
    documents : int64 ndarray of shape (n_docs + 1,)
        Where the tokens of each document begin.
    stems, exacts : int32 ndarrays of shape (n_tokens,)
        Terms of each token; -1 for a stop word, and for the exact term of a token that is its own
        stem.
    owners, parts : ndarrays of shape (n_parts,)
        Tokens, ascending, and their further terms.
    n_terms : int
    opening : int64 ndarray of shape (n, 2)
        The first so many words count so much more.
    """
    capacity = 2 * len(stems) + len(parts)
    numbers, counts = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    ends, lengths = np.zeros(len(documents), np.int64), np.zeros(len(documents) - 1, np.int64)
    seen = np.full(n_terms, -1, np.int64)
    n, part = 0, 0
    for doc in range(len(documents) - 1):
        begin, place = n, 0
        for token in range(documents[doc], documents[doc + 1]):
            weight = 1
            if stems[token] >= 0:
                for i in range(len(opening)):
                    weight += opening[i, 1] if place < opening[i, 0] else 0
                place += 1
                lengths[doc] += weight
                n = _add(numbers, counts, seen, begin, n, stems[token], weight)
            if exacts[token] >= 0:
                n = _add(numbers, counts, seen, begin, n, exacts[token], weight)
            while part < len(parts) and owners[part] == token:
                n = _add(numbers, counts, seen, begin, n, parts[part], weight)
                part += 1
        ends[doc + 1] = n
    return numbers[:n].copy(), counts[:n].copy(), ends, lengths


@kernel()
def _add(
    numbers: Terms, counts: Terms, seen: Numbers, begin: int, n: int, term: int, weight: int
) -> int:
    at = seen[term]
    if at >= begin:
        counts[at] += weight
        return n
    seen[term], numbers[n], counts[n] = n, term, weight
    return n + 1


@kernel()
def in_term_order(
    n_terms: int, numbers: Terms, counts: Terms, ends: Numbers
) -> tuple[Numbers, NDArray[np.uint32], NDArray[np.uint8]]:
    """Order entries by their terms, then by document: offsets, documents, counts."""
    offsets = np.zeros(n_terms + 1, np.int64)
    for i in range(len(numbers)):
        offsets[numbers[i] + 1] += 1
    for i in range(n_terms):
        offsets[i + 1] += offsets[i]
    at = offsets[:-1].copy()
    places, few = np.empty(len(numbers), np.uint32), np.empty(len(numbers), np.uint8)
    for doc in range(len(ends) - 1):
        for i in range(ends[doc], ends[doc + 1]):
            term = numbers[i]
            places[at[term]] = doc
            few[at[term]] = min(counts[i], 255)
            at[term] += 1
    return offsets, places, few
