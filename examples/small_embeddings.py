"""Embeddings of 512 bytes as codes of 8: what is lost, and what a query with its numbers wins.

The embeddings are latent semantic space, so that nothing has to be downloaded; yours will do.
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from vdsh import VectorHasher
from vdsh.codes import expected_distances, unpack
from vdsh.documents import docstrings

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")

documents = docstrings.collect(modules=AREAS, each=110)
texts = [document.text for document in documents]
embed = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(128, random_state=0))
vectors = embed.fit_transform(texts).astype(np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
print(f"{len(vectors)} vectors of {vectors[0].nbytes} bytes.\n")

# Every tenth document asks; how many of its ten nearest are among the first thirty?
asking, lying = vectors[::10], np.delete(vectors, np.s_[::10], axis=0)
nearest = np.argsort(-(asking @ lying.T), axis=1)[:, :10]


def share_found(distances: np.ndarray) -> float:
    """Say how many of the ten nearest are among the first thirty."""
    first = np.argsort(distances, axis=1, kind="stable")[:, :30]
    pairs = zip(nearest, first, strict=True)
    return float(np.mean([np.isin(true, some).mean() for true, some in pairs]))


for model in ("lsh", "itq"):
    hasher = VectorHasher(64, model=model, random_state=0).fit(lying)
    codes, queries = unpack(hasher.encode(lying)), unpack(hasher.encode(asking))
    differing = (queries[:, None] != codes).sum(axis=2)
    served = hasher.model_  # what a saved model folder holds
    _, chances = served.codes_and_weights(served.rows(asking))
    expected = np.array([expected_distances(hasher.encode(lying), row) for row in chances])
    print(f"  {model}, 8 bytes against 8 bytes   {share_found(differing):.3f}")
    print(f"  {model}, a query with its numbers  {share_found(expected):.3f}")

# One machine printed:
# 660 vectors of 512 bytes.
#
#   lsh, 8 bytes against 8 bytes   0.685
#   lsh, a query with its numbers  0.776
#   itq, 8 bytes against 8 bytes   0.856
#   itq, a query with its numbers  0.923
