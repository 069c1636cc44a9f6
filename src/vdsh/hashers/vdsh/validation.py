"""Scoring a network on validation documents, to keep its best epoch. Test data is never seen."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from vdsh.codes import FIXED
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh.batches import MOST_DENSE, SparseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.hashers.vdsh.estimators import VDSH
from vdsh.hashers.vdsh.network import Network
from vdsh.metrics.by_threshold import choose_judged, choose_k
from vdsh.metrics.ranking import Tally, Values, precision_at

_ENCODE = 1024  # documents at a time on a CPU
_LABELLED = 0.3  # share from which epochs are judged by labels: few say little of precision
_ERRORS = 2  # standard errors by which an epoch has to be better than a linear start


class Judge:
    """Scores the network by the precision of validation documents, whose labels are known."""

    kind = "precision"

    def __init__(
        self, threshold: str, train: Documents, queries: Documents, relevant: Tensor
    ) -> None:
        self.threshold = threshold
        self.k = choose_k(train.n_docs)
        # Cut once, not after every epoch.
        self.train, self.queries = list(_batches(train)), list(_batches(queries))
        self.relevant = relevant  # (n_queries, n_docs)

    @classmethod
    def choose(
        cls, hasher: VDSH, train: Examples, validation: Examples | None, device: torch.device
    ) -> "Judge | None":
        """Make the judge that the validation data allows; None without enough labels.

        Without labels nothing we tried agrees with them: halves of documents that look for one
        another, and documents that look for their neighbours in the graph or for their cluster,
        prefer epochs that labels do not (docs/decisions.md).
        """
        if validation is None:
            return None
        known, asked = train.labels, validation.labels
        if not known or not asked or min(known.known.mean(), asked.known.mean()) < _LABELLED:
            return None
        rows, query_rows, known, asked = choose_judged(known, asked)
        database = Examples(train.inputs[rows], train.counts[rows], known)
        queries = Examples(validation.inputs[query_rows], validation.counts[query_rows], asked)
        documents = Documents(database, hasher.target, device)
        asking = Documents(queries, hasher.target, device)
        relevant = asking.labels @ documents.labels.T > 0
        return cls(hasher.threshold, documents, asking, relevant)

    def score(self, network: Network) -> Values:
        """Score a network query by query, (n_queries,); more is better."""
        database, queries = _means(network, self.train), _means(network, self.queries)
        # "best" is a search of its own, after training, that starts from the better of these.
        names = FIXED if self.threshold == "best" else (self.threshold,)
        return max((self._score(name, database, queries) for name in names), key=np.mean)

    def _score(self, threshold: str, database: Tensor, queries: Tensor) -> Values:
        """Let validation documents search the training documents."""
        cut = _median(database) if threshold == "median" else torch.zeros_like(database[0])
        return precision_at(tally(queries > cut, database > cut, self.relevant), self.k)


def is_clearly_better(scores: Values, others: Values) -> bool:
    """Tell whether scores are better than others of the same queries by two standard errors."""
    gains = scores - others
    error = gains.std() / max(len(gains), 1) ** 0.5
    return bool(gains.mean() > _ERRORS * error)


def _batches(documents: Documents) -> Iterator[SparseBatch]:
    """Cut documents into batches to encode: a GPU takes as many as make a dense block."""
    on_gpu = documents.device.type == "cuda"
    size = max(1, MOST_DENSE // documents.n_terms) if on_gpu else _ENCODE
    return sparse_batches(in_order(documents), size)


def _means(network: Network, batches: Iterable[SparseBatch]) -> Tensor:
    """Encode documents to the mean mu of Q(s | d), of shape (n_docs, K)."""
    with torch.no_grad():
        return torch.cat([network.posterior(network.hidden(batch)).mu for batch in batches])


def _median(scores: Tensor) -> Tensor:
    """Compute the median of each column, the mean of the middle two where there are two."""
    ordered, n = scores.sort(dim=0).values, len(scores)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


_AT_A_TIME = 256  # queries


def tally(queries: Tensor, documents: Tensor, relevant: Tensor) -> Tally:
    """Count for each query the documents, and the relevant ones, at each distance.

    From bits of shape (n, n_bits) and relevance, (n_queries, n_docs), all bool: only a few numbers
    for each query have to leave the device.
    """
    signs = [2 * bits.float() - 1 for bits in (queries, documents)]  # 1 and -1
    n_bits, parts = queries.shape[1], []
    for first in range(0, len(queries), _AT_A_TIME):
        rows = slice(first, first + _AT_A_TIME)
        # Twice the Hamming distance is n_bits minus the product of the signs, all whole numbers.
        own = relevant[rows].float() + n_bits
        place = torch.addmm(own, signs[0][rows], signs[1].T, alpha=-1).long()
        ones = torch.ones((), dtype=torch.int32, device=place.device).expand_as(place)
        counts = torch.zeros(len(place), 2 * n_bits + 2, dtype=torch.int32, device=place.device)
        parts.append(counts.scatter_add_(1, place, ones))
    others, found = torch.cat(parts).view(-1, n_bits + 1, 2).cpu().long().unbind(-1)
    return Tally((others + found).numpy(), found.numpy())
