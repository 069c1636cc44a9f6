"""Reuters-21578 (David D. Lewis), ApteMod: 10,788 newswire stories in 90 categories."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from vdsh.datasets.base import Dataset, random_split, read_corpus
from vdsh.documents import Document


def load(root: Path | None, seed: int) -> Dataset:
    """Load all 90 categories."""
    stories = read_corpus(root, "reuters")
    return random_split("reuters", stories, seed, "Reuters-21578 ApteMod, 90 categories")


def load_20(root: Path | None, seed: int) -> Dataset:
    """Load the 20 most frequent categories; stories with none of them are dropped."""
    stories = most_frequent(read_corpus(root, "reuters"), 20)
    note = f"Reuters-21578 ApteMod, 20 most frequent categories, {len(stories):,} stories"
    return random_split("reuters20", stories, seed, note)


def most_frequent(documents: list[Document], n_labels: int) -> list[Document]:
    """Keep the most frequent labels and the documents that have one of them."""
    counts = Counter(label for document in documents for label in document.labels or ())
    kept = {label for label, _ in counts.most_common(n_labels)}
    cut = (replace(d, labels=tuple(x for x in d.labels or () if x in kept)) for d in documents)
    return [document for document in cut if document.labels]
