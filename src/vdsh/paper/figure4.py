"""The map of figure 4: latent vectors of 20 Newsgroups on a plane, by t-SNE.

The points are the test documents, which no method has seen, and the four posts that the paper
names.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vdsh import plots
from vdsh.codes import Scores
from vdsh.datasets import Dataset, load

# Table 3 of the paper; of the second there are only answers ("Re: ...") in the bydate version
TITLES = (
    "Trade rumor: Montreal/Ottawa/Phillie",
    "NHL team leaders in +/-",
    "Books For Sale [Ann Arbor, MI]",
    "*** NeXTstation 8/105 For Sale ***",
)


def place(
    dataset: str, seed: int, root: str | None, scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Lay scores out; return the points, their labels, and which of them have the titles."""
    corpus = load(dataset, root=root, seed=seed, quiet=True)
    titles, rows = _choose(corpus)
    vectors = np.concatenate([scores[name] for name in ("train", "validation", "test")])
    labels = [labels for part in corpus[1:4] for labels in part.labels]
    return {
        "titles": titles,
        "labels": [(labels[row] or ("none",))[0] for row in rows],
        "points": plots.lay_out(vectors[rows], seed=seed).round(2).tolist(),
    }


def _choose(corpus: Dataset) -> tuple[dict[str, int], list[int]]:
    """Take the test documents and the named posts; return the latters' places among them."""
    texts = [text for part in corpus[1:4] for text in part.texts or ()]
    n_seen = len(texts) - len(corpus.test.ids)
    rows = list(range(n_seen, len(texts)))
    titles = {}
    for title in TITLES:
        lines = (f"Subject: {title}\n", f"Subject: Re: {title}\n")
        found = [row for line in lines for row, text in enumerate(texts) if line in text]
        if found:
            rows += [found[0]] if found[0] < n_seen else []
            titles[title] = rows.index(found[0])
    return titles, rows
