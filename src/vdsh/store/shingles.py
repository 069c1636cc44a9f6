"""Shingles, the runs of words by which texts are compared, and sketches that find those to compare.

The similarity of two texts is that of Jaccard: the shingles they share, out of all that either has.
A sketch is a MinHash (Broder 1997): of many random orders of all shingles it keeps the first that a
text has in each, and two texts agree in one with a chance that is their similarity. Runs of these
are put together to keys; texts that share no key are never compared.
"""

from collections.abc import Sequence
from math import ceil, log, log1p

import numpy as np
from numpy.typing import NDArray

from vdsh.jit import spread
from vdsh.text.tokenizer import find_tokens

LENGTH = 2  # words in a shingle
SIZE = 128  # of a sketch, at most
MISSED = 0.002  # the chance that two texts just similar enough share no key
LEAST = 0.1  # similarity, for which a sketch of this size is enough

Shingles = NDArray[np.uint64]
# Of some texts: their keys, of shape (n_docs, n_keys), and a byte of each hash, of shape
# (n_docs, n_keys * n_hashes), which is enough to estimate a similarity.
Sketches = tuple[NDArray[np.uint32], NDArray[np.uint8]]


def choose_bands(similarity: float) -> tuple[int, int]:
    """Choose the keys of a sketch, and the hashes of each: the more, the fewer texts share one.

    >>> choose_bands(0.8), choose_bands(0.5), choose_bands(1)
    ((21, 6), (22, 2), (1, 128))
    """
    for n_hashes in range(SIZE, 1, -1):
        agree = min(similarity**n_hashes, 1 - 1e-9)  # the chance that texts share a key
        n_keys = ceil(log(MISSED) / log1p(-agree))
        if n_keys * n_hashes <= SIZE:
            return n_keys, n_hashes
    return SIZE, 1


def shingle(texts: Sequence[str]) -> list[Shingles]:
    """Return the hashes of each text's shingles, sorted, each once."""
    hashes, ends = _hash_shingles(texts)
    return [np.unique(some) for some in np.split(hashes, ends)[:-1]]


def jaccard(one: Shingles, other: Shingles) -> float:
    """Return the similarity of two texts by their shingles.

    >>> jaccard(*shingle(["the shuttle was launched", "a shuttle was launched today"]))
    0.4
    """
    from vdsh.store.shingles_kernels import count_shared

    shared = count_shared(one, other)
    return shared / max(1, len(one) + len(other) - shared)


def sketch(texts: Sequence[str], n_keys: int, n_hashes: int) -> Sketches:
    """Make the sketches of some texts, on all cores."""
    from vdsh.store.shingles_kernels import fill_sketches

    orders = np.random.default_rng(0).integers(0, 2**32, (2, n_keys * n_hashes), np.uint32)

    def work(start: int, stop: int) -> Sketches:
        hashes, ends = _hash_shingles(texts[start:stop])
        return fill_sketches(hashes, ends, orders | np.uint32(1), n_hashes)

    keys, hashes = zip(*spread(work, len(texts), least=100), strict=True)
    return np.concatenate(keys), np.concatenate(hashes)


def _hash_shingles(texts: Sequence[str]) -> tuple[Shingles, NDArray[np.int64]]:
    """Return the shingles of texts, one after the other, and where those of each end."""
    from hashlib import blake2b

    from vdsh.store.shingles_kernels import join

    # Short words count here: "error 5" is not "error 7".
    tokens = find_tokens(texts, shortest=1)
    whole = np.zeros(len(texts), np.uint64)
    for i in np.flatnonzero(np.diff(tokens.documents) == 0).tolist():  # no words: the text itself
        digest = blake2b(texts[i].strip().encode(errors="replace"), digest_size=8).digest()
        whole[i] = int.from_bytes(digest, "little")
    return join(tokens.hashes, tokens.documents, whole, LENGTH)
