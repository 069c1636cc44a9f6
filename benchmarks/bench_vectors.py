"""What codes gain from a teacher, and what is left of vectors that are hashed themselves.

    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py [--processes 14] [--only only]
        [--embed sentence-transformers:all-MiniLM-L6-v2]

Precision at 100 of `VDSH` with its defaults, random 80/10/10 split: test documents search the
training documents; the epoch is chosen on validation. `words` has no teacher; those of the paper's
corpora come from `vdsh reproduce defaults`. `lsa` are the vectors of whole Reuters stories in
latent semantic space, and the model learns from their titles; `minilm` are those of
all-MiniLM-L6-v2.

`only`: 20 Newsgroups as vectors of MiniLM. Two numbers of the first 100: the share with the label
of the query, and how many of its 10 nearest by cosine are among them. Equal distances are in the
order of rows. `query` says whether a query is a code too, or keeps its numbers.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from common import POSTS, read, run
from relevance_tasks import read as read_corpus

from vdsh.codes import pack, unpack
from vdsh.documents import Document
from vdsh.embed import embed
from vdsh.hashers import VDSH, VectorHasher
from vdsh.paper.datasets.base import random_split
from vdsh.paper.datasets.newsgroups import keep_headers
from vdsh.paper.datasets.reuters import most_frequent
from vdsh.paper.protocol import evaluate_codes
from vdsh.text import BagOfWords

SEEDS, BITS, FEW = (0, 1, 2), (8, 16, 32, 64, 128), (32, 128)
KINDS = {  # corpus and teacher, and the lengths that are shown
    ("snippets", "words"): BITS,
    ("titles", "words"): FEW,
    ("titles", "lsa"): FEW,
    ("snippets", "minilm"): FEW,
    ("20newsgroups", "minilm"): FEW,
}
FIRST, NEAREST = 100, 10
FIELDS = ("corpus", "teacher", "bits", "seed")


def documents(name, quick=False):
    """All documents of a corpus, as they are split; of the titles, whole stories."""
    if name == "titles":
        found = most_frequent(read_corpus("reuters"), 20)
    elif name == "snippets":
        found = read_corpus(name)
    else:
        posts = read_corpus("20newsgroups")
        found = [Document(d.id, keep_headers(d.text), d.labels, {}) for d in posts]
    return found[: POSTS if quick else None]


# -- teachers -------------------------------------------------------------------------------------


def taught(given):
    """Measure with and without teachers; other rows of the committed result are kept."""
    jobs = [(*kind, bits, seed) for kind, lengths in KINDS.items()
            for bits in lengths for seed in SEEDS
            if kind[1] != "minilm" or given.embed]  # fmt: skip
    jobs = jobs[15:28:12] if given.quick else jobs
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(partial(measure, given.embed, given.quick), jobs))
    before = read("vectors")
    rows += [row for row in before["rows"] if tuple(row[name] for name in FIELDS) not in jobs]
    return {name: before[name] for name in ("before", "snuh", "about")} | {"rows": rows}


def measure(model, quick, job):
    """Train one length of one corpus, teacher and split."""
    corpus, teacher, bits, seed = job
    data = random_split(corpus, documents(corpus, quick), seed, "")
    parts = [part.texts for part in (data.train, data.validation, data.test)]
    vectors = None
    if teacher == "lsa":
        vectors = latent(parts[0])
    elif teacher == "minilm":
        vectors = embed(parts[0], model)
    if corpus == "titles":
        parts = [[text.partition("\n")[0] for text in some] for some in parts]
    bag = BagOfWords().fit(parts[0])
    train, validation, test = (
        (bag.transform(texts), part.labels)
        for texts, part in zip(parts, (data.train, data.validation, data.test), strict=True)
    )
    hasher = VDSH(bits, random_state=seed, **({"epochs": 2} if quick else {}))
    hasher.fit(*train, validation=validation, vectors=vectors)
    codes = [(hasher.encode_counts(counts), labels) for counts, labels in (test, train)]
    found = evaluate_codes(*codes[0], *codes[1]).means["precision@100"]
    row = dict(zip(FIELDS, job, strict=True)) | {"test": round(found, 4)}
    print(row, flush=True)
    return row


def latent(stories):
    """Return the vectors of stories in latent semantic space."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(max_features=10_000, sublinear_tf=True, stop_words="english")
    return TruncatedSVD(64, random_state=0).fit_transform(weights.fit_transform(stories))


# -- vectors as documents -------------------------------------------------------------------------


class Search:
    """Test documents that ask the training documents."""

    def __init__(self, vectors, documents):
        every = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        place = {document.id: row for row, document in enumerate(documents)}
        data = random_split("20newsgroups", documents, 0, "")
        self.vectors, self.queries = (
            every[[place[id] for id in part.ids]] for part in (data.train, data.test)
        )
        names = sorted({label for labels in data.train.labels for label in labels})
        self.labels, self.asked = (
            np.array([names.index(labels[0]) for labels in part.labels])
            for part in (data.train, data.test)
        )
        self.true = np.argsort(-(self.queries @ self.vectors.T), axis=1)[:, :NEAREST]

    def measure(self, distances):
        """Measure label precision and true neighbours."""
        first = np.argsort(distances, axis=1, kind="stable")[:, :FIRST]
        precision = (self.labels[first] == self.asked[:, None]).mean()
        pairs = zip(first, self.true, strict=True)
        found = np.mean([np.isin(true, some).mean() for some, true in pairs])
        return {"precision": round(float(precision), 4), "neighbours": round(float(found), 4)}


def only(given):
    """Hash vectors in several ways, at equal bytes."""
    posts = documents("20newsgroups", given.quick)
    if given.embed:
        vectors = embed([post.text for post in posts], given.embed)
    elif given.quick:
        vectors = np.random.default_rng(0).normal(size=(len(posts), 384))
    else:
        return None
    search = Search(vectors, posts)
    size = search.vectors.shape[1]
    rows = [{"way": "vectors", "query": "numbers", "bytes": 4 * size}
            | search.measure(-(search.queries @ search.vectors.T))]  # fmt: skip
    signs = [pack(some > 0) for some in (search.queries, search.vectors)]
    rows.append({"way": "sign", "query": "code", "bytes": size / 8}
                | search.measure(hamming(*signs)))  # fmt: skip
    for bits in (64, 128, 256):
        for way, query, distances in ways(search, bits):
            found = {"way": way, "query": query, "bytes": bits / 8} | search.measure(distances)
            rows.append(found)
            print(found, flush=True)
    return {"corpus": "20newsgroups", "rows": rows}


def ways(search, bits):
    """Name each way to make vectors small, how it is asked, and what the distances are."""
    for name in ("itq", "sph", "lsh"):
        hasher = VectorHasher(bits, model=name, random_state=0).fit(search.vectors)
        codes, model = hasher.encode(search.vectors), hasher.model_
        asked, chances = model.codes_and_weights(model.rows(search.queries))
        yield name, "code", hamming(asked, codes)
        expected = chances.sum(axis=1, keepdims=True) + (1 - 2 * chances) @ unpack(codes).T
        yield name, "numbers", expected
    mean = search.vectors.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(search.vectors.T))
    axes = axes[:, ::-1][:, :bits].astype(np.float32)
    signs = [pack((some - mean) @ axes > 0) for some in (search.queries, search.vectors)]
    yield "sign of components", "code", hamming(*signs)
    yield "faiss PQ", "numbers", -(search.queries @ quantised(search.vectors, bits).T)


def hamming(queries, codes):
    """Compute distances of packed codes."""
    a, b = (2 * unpack(c).astype(np.float32) - 1 for c in (queries, codes))
    return (a.shape[1] - a @ b.T) / 2


def quantised(vectors, bits):
    """Return what product quantisation of so many bits keeps; the vectors have one length."""
    import faiss

    quantiser = faiss.ProductQuantizer(vectors.shape[1], bits // 8, 8)
    rows = vectors.astype(np.float32)
    quantiser.train(rows)
    return quantiser.decode(quantiser.compute_codes(rows))


if __name__ == "__main__":
    run({"": taught, "only": only}, processes=1, embed=str)
