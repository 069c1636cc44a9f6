"""Scoring a network on validation documents, to keep its best epoch. Test data is never seen."""

from collections.abc import Iterable, Iterator

import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from vdsh.codes import FIXED
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh.batches import MOST_DENSE, SparseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.hashers.vdsh.estimators import VDSH
from vdsh.hashers.vdsh.linear_start import SHORT
from vdsh.hashers.vdsh.network import Network
from vdsh.metrics.by_threshold import MOST_QUERIES, choose_judged, choose_k
from vdsh.metrics.ranking import Tally, ndcg_at, precision_at
from vdsh.model.health import sample
from vdsh.text.counts import halves

_ENCODE = 1024  # documents at a time on a CPU
_LABELLED = 0.3  # share from which epochs are judged by labels: few say little of precision
_OTHERS = 2_000  # training documents that halves are hidden among


class Judge:
    """Scores the network on validation data: precision where labels allow it, else halves.

    Halves: one half of a validation document looks for the other one, which lies among those of
    the others and 2,000 training documents (nDCG: 1 where it always comes first).
    """

    def __init__(self, kind: str, threshold: str, train: Documents, queries: Documents) -> None:
        self.kind, self.threshold = kind, threshold
        self.k = choose_k(train.n_docs)
        # Cut once, not after every epoch.
        self.train, self.queries = list(_batches(train)), list(_batches(queries))
        if kind == "precision":
            self.relevant = queries.labels @ train.labels.T > 0  # (n_queries, n_docs)
        else:
            shape = queries.n_docs, train.n_docs
            self.relevant = torch.eye(*shape, dtype=torch.bool, device=train.device)

    @classmethod
    def choose(
        cls, hasher: VDSH, train: Examples, validation: Examples | None, device: torch.device
    ) -> "Judge | None":
        """Make the judge that the validation data allows; None without any, or without halves.

        Where labels are few, and where there are none and codes are short, nothing can judge:
        halves find each other best before training has moved the codes. The last epoch is good
        there.
        """
        if validation is None:
            return None
        known, asked = train.labels, validation.labels
        if known and asked and min(known.known.mean(), asked.known.mean()) >= _LABELLED:
            rows, query_rows, known, asked = choose_judged(known, asked)
            kind, database = "precision", Examples(train.inputs[rows], train.counts[rows], known)
            queries = Examples(validation.inputs[query_rows], validation.counts[query_rows], asked)
        elif hasher.n_bits < SHORT or (hasher.supervised and known and known.known.any()):
            return None
        else:
            one, two = halves(validation.counts[sample(validation.counts.shape[0], MOST_QUERIES)])
            if not one.shape[0]:
                return None
            others = train.counts[sample(train.counts.shape[0], _OTHERS)]
            hidden = csr_array(vstack([two, others], format="csr"))
            kind, both = "halves", (hidden, one)
            database, queries = (Examples(hasher._weigh(part), part, None) for part in both)
        parts = (Documents(part, hasher.target, device) for part in (database, queries))
        return cls(kind, hasher.threshold, *parts)

    def score(self, network: Network) -> float:
        """Score a network; more is better."""
        database, queries = _means(network, self.train), _means(network, self.queries)
        # "best" is a search of its own, after training, that starts from the better of these.
        names = FIXED if self.threshold == "best" else (self.threshold,)
        return max(self._score(name, database, queries) for name in names)

    def _score(self, threshold: str, database: Tensor, queries: Tensor) -> float:
        """Let validation documents search the training documents, or halves the other ones."""
        cut = _median(database) if threshold == "median" else torch.zeros_like(database[0])
        counts = tally(queries > cut, database > cut, self.relevant)
        if self.kind == "halves":
            return float(ndcg_at(counts, len(database)).mean())
        return float(precision_at(counts, self.k).mean())


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
