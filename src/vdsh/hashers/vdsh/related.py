"""Which training documents are about the same topic, over several hops, and where they lie.

Words say which documents may be related; LSA, word vectors and vectors that the user gives say
which of these are. What the nearest have in common then travels along the graph that joins them,
as in spectral clustering (A. Ng, M. Jordan and Y. Weiss, NIPS 2001): documents that many short
ways join come to lie at one place though they share no word.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from vdsh.hashers.base import Progress, Report
from vdsh.hashers.vdsh.lsa import (
    are_short,
    document_vectors,
    lsa_weight,
    reduce,
    top_eigenvectors,
    unit,
)
from vdsh.hashers.vdsh.neighbours import Floats, Ids, nearest, parts
from vdsh.jit import available_threads, in_threads
from vdsh.model.health import sample
from vdsh.text.counts import inverse_document_frequency, weigh

# Copies of one document that the graph has, at most. Copies are nearest to one another, so with all
# of them the time would grow with their square (20,000 copies: 49 s, now 0.1), and they would take
# most bits. No document of the paper's corpora has so many; Reuters has 9.
_MOST_COPIES = 20
MOST_NEIGHBOURS = 100  # the nearest by words, among which LSA and word vectors choose
_ENTRIES = 20_000  # of the inverted index that a document looks at, at least: its heaviest terms
_WORK = 2e9  # entries to look at in all, at least: a few seconds
_JOINED, _MOST_JOINED = 10, 20  # nearest documents that a graph joins each document with
_HUBNESS = np.float32(0.15)  # share of its likeness to its nearest by which a hub is joined less
_ROUNDS = 2  # graphs: the second knows the places that the first gave
_HOPS, _STEPS = 24, 100  # dimensions of these places, and steps of the walk that finds them
# Of short texts, whose words say less, more (16 bits, paper titles: 0.403 to 0.419). Long ones lose
# by more where topics are broad (RCV1, 32 bits: 0.903 to 0.891).
_HOPS_OF_SHORT = 48
_TAUGHT = np.float32(2)  # weight of walks, and of the place in all, where vectors were given
_BLOCK = 1024  # documents a task
_COMPARED = 8_192  # documents around one that its vector is compared with, at least
_HEAPS = 4  # of documents, times the root of their number: nine in ten of the nearest are found


class Related(NamedTuple):
    """What training knows of documents beyond their own words."""

    # (n_docs, k): related documents, most related first; where there are fewer, the document's
    # own row.
    neighbours: Ids
    # (n_docs, d): rows of one length, near where documents are related; zero for a document of no
    # words.
    places: Floats
    # (n_rows,): the documents that are in the graph, in order: all, but for copies beyond the
    # twentieth of a document. Learning from these keeps a thousand copies from outweighing the
    # rest.
    rows: NDArray[np.intp]


def related(
    counts: csr_array, k: int, vectors: Floats | None = None, *, progress: Progress | None = None
) -> Related:
    """Find k documents about the same topic as each document, and a place for each.

    The sum of three cosines decides: of the words' weights (idf times the root of the count, so
    that no single word speaks for a document; in short texts the count), of LSA and word vectors
    (see `lsa`), and of the places that walks along the graph of the nearest lead to.
    Vectors add a fourth, which has the weight of LSA too where documents are too
    short for that; walks and the place, which are better then, count double. At most 100 are found.
    Of many copies of a document a few are in the graph; the others have the neighbours and the
    place of the first.
    """
    rows, representative = _leave_out_copies(counts, vectors)
    if len(rows) == counts.shape[0]:
        return _related(counts, k, vectors, progress)
    given = None if vectors is None else vectors[rows]
    found = _related(counts[rows], k, given, progress)
    neighbours = rows[found.neighbours].astype(np.int32)
    return Related(neighbours[representative], found.places[representative], rows)


def _leave_out_copies(
    counts: csr_array, vectors: Floats | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose the rows to learn from, and say which of these stands for each row.

    Rows without words stay, because they are nobody's neighbours.
    """
    rows: list[int] = []
    representative = np.empty(counts.shape[0], np.intp)
    n_copies: Counter[bytes] = Counter()
    first_copy: dict[bytes, int] = {}
    for row in range(counts.shape[0]):
        entries = slice(counts.indptr[row], counts.indptr[row + 1])
        digest = blake2b(counts.indices[entries].tobytes(), digest_size=16)
        digest.update(counts.data[entries].tobytes())
        if vectors is not None:
            digest.update(vectors[row].tobytes())
        key = digest.digest()
        n_copies[key] += 1
        is_empty = entries.start == entries.stop
        if n_copies[key] > _MOST_COPIES and not is_empty:
            representative[row] = first_copy[key]
            continue
        first_copy.setdefault(key, len(rows))
        representative[row] = len(rows)
        rows.append(row)
    return np.array(rows, np.intp), representative


def _related(
    counts: csr_array, k: int, vectors: Floats | None, progress: Progress | None
) -> Related:
    """Find the neighbours and the place of each document; see `related`."""

    def show(done: float) -> None:
        if progress:
            progress(Report(1, 1, done, unit="neighbours"))

    short = are_short(counts)
    weighting = "tfidf" if short else "sqrt-tfidf"
    words = weigh(counts, weighting, inverse_document_frequency(counts))
    work = max(_ENTRIES * counts.shape[0], _WORK)
    candidates, _ = nearest(words, MOST_NEIGHBOURS, work=work, progress=lambda x: show(0.6 * x))
    about, weight = document_vectors(words), np.float32(1)
    if vectors is not None:
        given = reduce(vectors)
        candidates = np.hstack([candidates, nearest_vectors(given, MOST_NEIGHBOURS)])
        about = np.hstack([about, np.sqrt(2 - lsa_weight(words)) * given])
        weight = np.sqrt(_TAUGHT)
    show(0.8)
    n_joined = min(max(_JOINED, int(counts.shape[0] ** 0.5) // 8), _MOST_JOINED)
    places, joined = about, None
    for _ in range(_ROUNDS):
        joined = _join(words, places, candidates, n_joined, joined)
        places = np.hstack([about, weight * walk(joined, _HOPS_OF_SHORT if short else _HOPS)])
    k = max(0, min(k, MOST_NEIGHBOURS, counts.shape[0] - 1))
    neighbours = _choose(words, places, candidates, k, joined)[0] if k else candidates[:, :0]
    show(1.0)
    return Related(neighbours, weight * unit(places), np.arange(counts.shape[0]))


def nearest_vectors(vectors: Floats, k: int) -> Ids:
    """Find the k documents whose vectors, of unit length, are nearest to each one's.

    Of many documents, nearly: each is compared with some thousand around it.
    """
    n_docs = len(vectors)
    k = max(0, min(k, n_docs - 1))
    ids = np.empty((n_docs, k), np.int32)
    for rows, among in _around(vectors):
        cosines = vectors[rows] @ vectors[among].T
        cosines[rows[:, None] == among] = -np.inf
        ids[rows] = among[np.argpartition(-cosines, k - 1, axis=1)[:, :k]]
    return ids


def _around(vectors: Floats) -> Iterator[tuple[Ids, Ids]]:
    """Divide documents into blocks; give each one's rows, and the rows to compare it with.

    Many documents are divided by which of some, drawn at random, is nearest; each heap is compared
    with the heaps next to it.
    """
    n_docs = len(vectors)
    pivots = vectors[sample(n_docs, max(1, int(_HEAPS * n_docs**0.5)))]
    starts = range(0, n_docs, _BLOCK)
    if n_docs <= 2 * _COMPARED:
        everyone = np.arange(n_docs, dtype=np.int32)
        yield from ((everyone[first : first + _BLOCK], everyone) for first in starts)
        return
    nearest_ = [(vectors[first : first + _BLOCK] @ pivots.T).argmax(axis=1) for first in starts]
    order = np.argsort(np.concatenate(nearest_), kind="stable").astype(np.int32)
    sizes = np.bincount(np.concatenate(nearest_), minlength=len(pivots))
    heaps = np.split(order, np.cumsum(sizes)[:-1])
    for heap, pivot in zip(heaps, pivots, strict=True):
        next_to = np.argsort(-(pivots @ pivot), kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[next_to]), _COMPARED)) + 1
        among = np.concatenate([heaps[j] for j in next_to[:enough]])
        yield from ((heap[i : i + _BLOCK], among) for i in range(0, len(heap), _BLOCK))


def walk(joined: Ids, most: int = _HOPS) -> Floats:
    """Place documents by where random walks along the graph lead: rows of unit length.

    These are the top eigenvectors of the walk, at most so many.
    """
    n_docs, k = joined.shape
    rows = np.repeat(np.arange(n_docs), k)
    ones = np.ones(joined.size, np.float32)
    graph = csr_array((ones, (rows, joined.ravel())), shape=(n_docs, n_docs))
    graph = graph.maximum(graph.T)
    scale = diags_array(1 / np.sqrt(np.maximum(graph.sum(axis=1), 1)))
    # Some walkers wait, or all would swing to and fro.
    step = csr_array(0.2 * eye_array(n_docs) + 0.8 * (scale @ graph @ scale)).astype(np.float32)
    size = min(most, max(2, int(n_docs**0.5) // 6, n_docs // 400))  # few documents, few topics
    values, vectors = top_eigenvectors(step, 2 * size, steps=_STEPS, every=10)
    return unit(scale @ vectors[:, np.argsort(-values)[:size]])


def _join(words: csr_array, places: Floats, candidates: Ids, n: int, joined: Ids | None) -> Ids:
    """Choose n documents that a graph joins each one with: those most like it, hubs less.

    Hubs are near to many documents that have little else in common, and would join them. How near
    their own nearest are tells which (as in A. Conneau et al., ICLR 2018).
    """
    chosen, likeness = _choose(words, places, candidates, 2 * n, joined)
    hubness = _HUBNESS * likeness[:, :_JOINED].mean(axis=1)
    itself = chosen == np.arange(len(chosen))[:, None]  # where there are fewer
    order = np.argsort(np.where(itself, np.inf, hubness[chosen] - likeness), axis=1, kind="stable")
    return np.take_along_axis(chosen, order[:, :n], axis=1)


def _choose(
    words: csr_array, places: Floats, candidates: Ids, k: int, joined: Ids | None
) -> tuple[Ids, Floats]:
    """Take of each document's candidates the k most like it, by words and by place; say how much.

    With a graph, those that three hops along its first ways lead to are candidates too.
    """
    from vdsh.hashers.vdsh.related_kernels import most_like

    n_docs = len(candidates)
    places = np.ascontiguousarray(places)
    chosen = np.repeat(np.arange(n_docs, dtype=np.int32)[:, None], k, axis=1)
    likeness = np.zeros((n_docs, k), np.float32)

    def block(first: int) -> None:
        rows = slice(first, first + _BLOCK)
        among = candidates[rows]
        if joined is not None:
            near = joined[:, :_JOINED]
            far = near[near[near[rows]]].reshape(len(among), -1)
            among = np.hstack([among, far])
        found = chosen[rows], likeness[rows]
        most_like(parts(words), places, among, first, *found)

    in_threads(block, range(0, n_docs, _BLOCK), available_threads())
    return chosen, likeness
