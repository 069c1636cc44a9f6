"""Scoring a network on validation documents, to keep its best epoch. Test data is never seen.

All of it happens on the device that trains: a GPU does not wait for the host between epochs.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vdsh.codes import FIXED
from vdsh.hashers.base import Corpus
from vdsh.hashers.batches import Documents, in_order, sparse_batches
from vdsh.hashers.network import Network
from vdsh.hashers.objective import Weights, lower_bound
from vdsh.hashers.usual import are_many
from vdsh.hashers.validation_search import usual_k
from vdsh.labels import Labels
from vdsh.model.health import sample

if TYPE_CHECKING:
    from vdsh.hashers.vdsh import VDSH

_ENCODE, _COMPARE = 1024, 256  # documents encoded, and queries compared, at a time
_MOST_DOCUMENTS, _MOST_QUERIES = 20_000, 2_000  # what a validation looks at, at most


class Judge:
    """Scores the network on validation data: precision where labels allow it, else the bound."""

    def __init__(self, hasher: "VDSH", kind: str, train: Documents, queries: Documents) -> None:
        self.hasher, self.kind = hasher, kind
        self.train, self.queries = train, queries
        self.k = usual_k(train.n_docs)
        if kind == "precision":
            self.relevant = queries.labels @ train.labels.T > 0  # (n_queries, n_docs)

    @classmethod
    def choose(
        cls, hasher: "VDSH", train: Corpus, validation: Corpus | None, device: torch.device
    ) -> "Judge | None":
        """Make the judge that the validation data allows; None without any."""
        if validation is None:
            return None
        enough = all(_are_known(part.labels) for part in (train, validation))
        kind = "precision" if hasher.selection == "precision" and enough else "bound"
        database = _subset(train, _MOST_DOCUMENTS, kind)
        queries = _subset(validation, _MOST_QUERIES, kind)
        parts = (Documents.of(part, hasher.target, device) for part in (database, queries))
        return cls(hasher, kind, *parts)

    def score(self, network: Network, seed: int) -> float:
        """Return the validation score; more is better."""
        with torch.no_grad():
            return (
                self._precision(network) if self.kind == "precision" else self._bound(network, seed)
            )

    def _precision(self, network: Network) -> float:
        """Measure precision at 100 of validation documents searching the training documents."""
        database, queries = means(network, self.train), means(network, self.queries)
        kind = self.hasher.threshold
        # "best" is a search of its own, after training, that starts from the better of these.
        scores = []
        for name in FIXED if kind == "best" else (kind,):
            cut = _median(database) if name == "median" else torch.zeros_like(database[0])
            found = precision(queries > cut, database > cut, self.relevant, k=self.k)
            scores.append(float(found.mean()))
        return max(scores)

    def _bound(self, network: Network, seed: int) -> float:
        """Compute the lower bound per validation document, with the same noise every time."""
        generator = torch.Generator(network.W1.device).manual_seed(seed)
        bound = lower_bound(self.hasher)
        weights = Weights(self.hasher.kl_weight_, float(getattr(self.hasher, "label_weight", 0)))
        total = 0.0
        for batch in sparse_batches(in_order(self.queries), _ENCODE):
            t2 = network.hidden(batch, None)
            total += float(bound(network, batch, t2, weights, 1, generator).value.sum())
        return total / self.queries.n_docs


def _are_known(labels: Labels | None) -> bool:
    """Tell whether there are enough labels: the precision of a few documents is mostly chance."""
    return labels is not None and are_many(labels.known.mean())


def _subset(corpus: Corpus, most: int, kind: str) -> Corpus:
    """Take at most so many documents; for precision only those whose labels are known."""
    rows = np.arange(corpus.inputs.shape[0])
    if kind == "precision" and corpus.labels is not None:
        rows = rows[corpus.labels.known]
    rows = rows[sample(len(rows), most)]
    labels = None if corpus.labels is None else corpus.labels.take(rows)
    return Corpus(corpus.inputs[rows], corpus.counts[rows], labels)


def means(network: Network, documents: Documents) -> Tensor:
    """Encode documents to the mean mu of Q(s | d), of shape (n_docs, K)."""
    batches = sparse_batches(in_order(documents), _ENCODE)
    with torch.no_grad():
        return torch.cat([network.posterior(network.hidden(batch, None)).mu for batch in batches])


def precision(queries: Tensor, documents: Tensor, relevant: Tensor, *, k: int = 100) -> Tensor:
    """Compute each query's expected precision at k, as `vdsh.metrics` does, on any device.

    Parameters
    ----------
    queries, documents : bool tensor of shape (n, K)
        Their bits.
    relevant : bool tensor of shape (n_queries, n_docs)
    """
    k = min(k, len(documents))
    signs = [2 * bits.float() - 1 for bits in (queries, documents)]  # 1 and -1
    n_bits, parts = queries.shape[1], []
    for first in range(0, len(queries), _COMPARE):
        rows = slice(first, first + _COMPARE)
        distance = n_bits - signs[0][rows] @ signs[1].T  # twice the Hamming distance
        place = distance.round().long() + relevant[rows]
        ones = torch.ones((), dtype=torch.int32, device=place.device).expand_as(place)
        counts = torch.zeros(len(place), 2 * n_bits + 2, dtype=torch.int32, device=place.device)
        counts = counts.scatter_add_(1, place, ones).view(-1, n_bits + 1, 2)
        found = counts.sum(-1)  # (B, K + 1)
        before = found.cumsum(1) - found
        taken = ((k - before) / found.clamp(min=1)).clamp(0, 1)
        parts.append((counts[..., 1] * taken).sum(1) / k)
    return torch.cat(parts)


def _median(scores: Tensor) -> Tensor:
    """Compute the median of each column, the mean of the middle two where there are two."""
    ordered, n = scores.sort(dim=0).values, len(scores)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
