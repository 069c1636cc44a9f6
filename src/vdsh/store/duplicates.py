"""Near-duplicates by leader clustering over the texts.

Codes cannot tell them: a small edit changes bits, and labels give thousands of different texts one
code. So each text gets a sketch of its shingles, documents that share a key of it are candidates,
and candidates are compared by their texts. Texts come by the page: what stays of each document is
its id, its code and its sketch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.store.hits import Duplicates
from vdsh.store.shingles import LEAST, Shingles, choose_bands, jaccard, shingle, sketch

FETCHED = 500  # texts at a time
TOGETHER = 50_000  # pairs of documents that are looked at together
REMEMBERED = 4_000_000  # shingles kept for further comparisons: 32 megabytes
DOUBT = 3.5  # standard deviations by which a sketch may underrate a similarity

Pages = Iterable[tuple[list[Document], Codes]]
Fetch = Callable[[list[str]], dict[str, str]]
Numbers = NDArray[np.int64]


def find_duplicates(pages: Pages, fetch: Fetch, similarity: Any) -> Iterator[Duplicates]:
    """Group documents that are similar to a leader, in the order of ids.

    Pages have all documents and their codes, ids ascending; `fetch` gives the texts of some ids, of
    those that are still there.
    """
    is_number = isinstance(similarity, int | float) and not isinstance(similarity, bool)
    if not is_number or not LEAST <= similarity <= 1:
        raise InputError(f"similarity must be a number from {LEAST} to 1. Got {similarity!r}.")
    return _find(pages, fetch, float(similarity))


def _find(pages: Pages, fetch: Fetch, similarity: float) -> Iterator[Duplicates]:
    bands = choose_bands(similarity)
    ids, parts = list[str](), list[tuple[Any, ...]]()
    for documents, some in pages:
        ids += [document.id for document in documents]
        parts.append((some, *sketch([document.text for document in documents], *bands)))
    if not ids:
        return
    codes, keys, hashes = (np.concatenate(some) for some in zip(*parts, strict=True))
    sharing = _sharing(keys)
    del parts, keys
    free, texts = np.ones(len(ids), np.bool_), _Texts(ids, fetch)  # free: in no group yet
    least = similarity - DOUBT * np.sqrt(similarity * (1 - similarity) / hashes.shape[1])
    for leader, rows in _lead(_connect(*sharing, hashes, free, least), texts):
        if not free[leader]:
            continue
        rows = rows[free[rows]]
        found = texts.compare(leader, rows)
        rows, found = rows[found >= similarity], found[found >= similarity]
        free[rows] = False
        order = np.lexsort((rows, -found))
        rows, found = rows[order], found[order]
        distances = np.unpackbits(codes[rows] ^ codes[leader], axis=1).sum(axis=1)
        triples = zip(rows, distances, found, strict=True)
        if others := [(ids[row], int(distance), float(value)) for row, distance, value in triples]:
            yield Duplicates(ids[leader], others)


def _lead(
    pairs: Iterable[tuple[Numbers, Numbers]], texts: "_Texts"
) -> Iterator[tuple[int, Numbers]]:
    """Yield each row that has candidates, with those."""
    for leaders, rows in pairs:
        texts.remember(np.union1d(leaders, rows).tolist())
        starts = np.flatnonzero(np.diff(leaders, prepend=-1))
        yield from zip(leaders[starts].tolist(), np.split(rows, starts)[1:], strict=True)


def _sharing(keys: NDArray[np.uint32]) -> tuple[Numbers, Numbers]:
    """Put rows that share a key behind each other; count those behind each, which come later."""
    by_key, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for column in keys.T:
        order = np.argsort(column, kind="stable")
        edges = np.flatnonzero(np.diff(column[order])) + 1
        n_sharing = np.diff(edges, prepend=0, append=len(keys))
        by_key.append(order[np.repeat(n_sharing > 1, n_sharing)])
        sizes.append(n_sharing[n_sharing > 1])
    members, n_members = np.concatenate(by_key), np.concatenate(sizes)
    ends = np.repeat(np.cumsum(n_members), n_members)
    return members, ends - np.arange(1, len(members) + 1)


def _connect(
    members: Numbers, n_behind: Numbers, hashes: NDArray[Any], free: NDArray[Any], least: float
) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield pairs of rows that share a key and have sketches not too unlike, some at a time.

    The first of each is in no group yet, the second neither, and comes later.
    """
    n_rows, places = len(free), np.argsort(members, kind="stable")
    places = places[n_behind[places] > 0]
    starts = np.flatnonzero(np.diff(members[places], prepend=-1))  # where a row begins
    turns = np.cumsum(n_behind[places])[starts] // TOGETHER
    ends = np.append(starts[1:][np.diff(turns) > 0], len(places)).tolist()
    for start, end in pairwise([0, *ends]):
        some = places[start:end][free[members[places[start:end]]]]
        n_pairs = n_behind[some]
        firsts = np.repeat(some + 1 - np.cumsum(n_pairs) + n_pairs, n_pairs)
        rows = members[firsts + np.arange(len(firsts))]
        pairs = np.repeat(members[some], n_pairs) * n_rows + rows
        leaders, rows = np.divmod(np.unique(pairs[free[rows]]), n_rows)
        agreeing = np.mean(hashes[rows] == hashes[leaders], axis=1)
        yield leaders[agreeing >= least], rows[agreeing >= least]


class _Texts:
    """The shingles of documents, fetched when they are needed and remembered for a while."""

    def __init__(self, ids: Sequence[str], fetch: Fetch) -> None:
        self._ids = ids
        self._fetch = fetch
        self._known: dict[int, Shingles] = {}
        self._n_shingles = 0

    def compare(self, leader: int, rows: Numbers) -> NDArray[np.float64]:
        """Return the similarity of each row's text to the leader's; 0 where one is gone."""
        found = np.zeros(len(rows))
        for first in range(0, len(rows), FETCHED):
            some = rows[first : first + FETCHED].tolist()
            self.remember([leader, *some])
            ours = self._known[leader]
            found[first : first + FETCHED] = [jaccard(ours, self._known[row]) for row in some]
        return found

    def remember(self, rows: Sequence[int]) -> None:
        """Fetch what is not known; of many, only the first ones."""
        if self._n_shingles > REMEMBERED:
            self._known.clear()
            self._n_shingles = 0
        missing = [row for row in dict.fromkeys(rows[: 8 * FETCHED]) if row not in self._known]
        for first in range(0, len(missing), FETCHED):
            some = missing[first : first + FETCHED]
            texts = self._fetch([self._ids[row] for row in some])
            here = [row for row in some if self._ids[row] in texts]
            self._known |= dict.fromkeys(some, np.zeros(0, np.uint64))
            self._known |= zip(here, shingle([texts[self._ids[row]] for row in here]), strict=True)
            self._n_shingles += sum(len(self._known[row]) for row in some)
