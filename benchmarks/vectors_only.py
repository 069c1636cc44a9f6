"""Vectors as documents: codes of embeddings at equal bytes, beside other ways to make them small.

    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py --only --folder minilm-vectors

20 Newsgroups as vectors of all-MiniLM-L6-v2, random 80/10/10 split of seed 0: test documents search
the training documents. Two numbers of the first 100: the share with the label of the query, and how
many of its 10 nearest by cosine are among them. Equal distances are in the order of rows. `query`
says whether a query is a code too, or keeps its numbers; documents are codes of so many bytes.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import save

from vdsh.codes import pack, unpack
from vdsh.datasets.base import random_split
from vdsh.hashers import VectorHasher

BITS = (64, 128, 256)
FIRST, NEAREST = 100, 10
Rows = np.ndarray[Any, np.dtype[np.float32]]


class Search:
    """Test documents that ask the training documents."""

    def __init__(self, name: str, folder: Path, documents: list[Any], *, part: str) -> None:
        every = np.load(folder / f"{name}.npy").astype(np.float32)
        every /= np.linalg.norm(every, axis=1, keepdims=True)
        place = {document.id: row for row, document in enumerate(documents)}
        data = random_split(name, documents, 0, "")
        train, asking = data.train, getattr(data, part)
        self.vectors = every[[place[id] for id in train.ids]]
        self.queries = every[[place[id] for id in asking.ids]]
        names = sorted({label for labels in train.labels for label in labels})
        self.labels = np.array([names.index(labels[0]) for labels in train.labels])
        self.asked = np.array([names.index(labels[0]) for labels in asking.labels])
        self.true = np.argsort(-(self.queries @ self.vectors.T), axis=1)[:, :NEAREST]

    def measure(self, distances: Rows) -> dict[str, float]:
        first = np.argsort(distances, axis=1, kind="stable")[:, :FIRST]
        precision = (self.labels[first] == self.asked[:, None]).mean()
        pairs = zip(first, self.true, strict=True)
        found = np.mean([np.isin(true, some).mean() for some, true in pairs])
        return {"precision": round(float(precision), 4), "neighbours": round(float(found), 4)}


def hamming(queries: Rows, codes: Rows) -> Rows:
    """Compute distances of packed codes."""
    a, b = (2 * unpack(c).astype(np.float32) - 1 for c in (queries, codes))
    return (a.shape[1] - a @ b.T) / 2


def expected(chances: Rows, codes: Rows) -> Rows:
    """Compute what `rank="expected"` does, for many queries."""
    return chances.sum(axis=1, keepdims=True) + (1 - 2 * chances) @ unpack(codes).T


def ways(search: Search, bits: int) -> Iterator[tuple[str, str, Callable[[], Rows]]]:
    """Name each way to make vectors small, how it is asked, and how to get distances."""
    mean = search.vectors.mean(axis=0)
    for name in ("itq", "sph", "lsh"):
        hasher = VectorHasher(bits, model=name, random_state=0).fit(search.vectors)
        codes, model = hasher.encode(search.vectors), hasher.model_
        asked, chances = model.codes_and_weights(model.rows(search.queries))
        yield name, "code", lambda a=asked, c=codes: hamming(a, c)
        yield name, "numbers", lambda p=chances, c=codes: expected(p, c)
    _, axes = np.linalg.eigh(np.cov(search.vectors.T))
    axes = axes[:, ::-1][:, :bits].astype(np.float32)
    signs = [pack((some - mean) @ axes > 0) for some in (search.queries, search.vectors)]
    yield "sign of components", "code", lambda: hamming(*signs)
    yield "faiss PQ", "numbers", lambda: -(search.queries @ quantised(search.vectors, bits).T)


def quantised(vectors: Rows, bits: int) -> Rows:
    """Return what product quantisation of so many bits keeps; the vectors have one length."""
    import faiss

    quantiser = faiss.ProductQuantizer(vectors.shape[1], bits // 8, 8)
    quantiser.train(vectors)
    return quantiser.decode(quantiser.compute_codes(vectors))


def run(folder: Path, documents: list[Any], *, part: str) -> None:
    search = Search("20newsgroups", folder, documents, part=part)
    rows = []

    def note(name: str, query: str, n_bytes: float, distances: Rows) -> None:
        measured = search.measure(distances)
        rows.append({"way": name, "query": query, "bytes": n_bytes} | measured)
        print(rows[-1], flush=True)

    size = search.vectors.shape[1]
    note("vectors", "numbers", 4 * size, -(search.queries @ search.vectors.T))
    signs = [pack(some > 0) for some in (search.queries, search.vectors)]
    note("sign", "code", size / 8, hamming(*signs))
    for bits in BITS:
        began = time.time()
        for name, query, distances in ways(search, bits):
            note(name, query, bits / 8, distances())
        print(f"{bits} bits: {time.time() - began:.0f} s", flush=True)
    if part == "test":
        save("vectors_only", {"corpus": "20newsgroups", "seed": 0, "rows": rows})
