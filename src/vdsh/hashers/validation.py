"""Scoring a network on validation documents, to keep its best epoch. Test data is never seen."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from vdsh.codes import Scores, binarize, pack, thresholds
from vdsh.hashers.base import Corpus
from vdsh.hashers.batches import Documents, in_order, sparse_batches
from vdsh.hashers.network import Network
from vdsh.hashers.objective import Weights, lower_bound
from vdsh.labels import Labels
from vdsh.metrics import expected_precision

if TYPE_CHECKING:
    from vdsh.hashers.vdsh import VDSH

_ENCODE = 1024  # documents encoded at a time
_MOST_DOCUMENTS, _MOST_QUERIES = 20_000, 2_000  # what a validation looks at, at most


class Judge:
    """Scores the network on validation data: precision where labels allow it, else the bound."""

    def __init__(
        self, hasher: "VDSH", kind: str, train: Documents, queries: Documents, labels: Any
    ) -> None:
        self.hasher, self.kind = hasher, kind
        self.train, self.queries, self.labels = train, queries, labels

    @classmethod
    def choose(
        cls, hasher: "VDSH", train: Corpus, validation: Corpus | None, device: torch.device
    ) -> "Judge | None":
        """Make the judge that the validation data allows; None without any."""
        if validation is None:
            return None
        labels = (_known(train.labels), _known(validation.labels))
        kind = "precision" if hasher.selection == "precision" and all(labels) else "bound"
        rng = np.random.RandomState(0)
        database = _subset(train, _MOST_DOCUMENTS, kind, rng)
        queries = _subset(validation, _MOST_QUERIES, kind, rng)
        return cls(
            hasher,
            kind,
            Documents.of(database, hasher.target, device),
            Documents.of(queries, hasher.target, device),
            (database.labels, queries.labels),
        )

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
        # "best" is a search of its own, after training.
        cut = thresholds(database, "median" if kind == "best" else kind)
        codes, query_codes = pack(binarize(database, cut)), pack(binarize(queries, cut))
        labels, query_labels = self.labels
        return float(
            expected_precision(query_codes, query_labels.matrix, codes, labels.matrix).mean()
        )

    def _bound(self, network: Network, seed: int) -> float:
        """Compute the lower bound per validation document, with the same noise every time."""
        generator = torch.Generator(network.W1.device).manual_seed(seed)
        bound = lower_bound(self.hasher)
        weights = Weights(self.hasher.kl_weight, float(getattr(self.hasher, "label_weight", 0)))
        total = 0.0
        for batch in sparse_batches(in_order(self.queries), _ENCODE):
            t2 = network.hidden(batch, None)
            total += float(bound(network, batch, t2, weights, 1, generator).value.sum())
        return total / self.queries.n_docs


def _known(labels: Labels | None) -> bool:
    return labels is not None and bool(labels.known.any())


def _subset(corpus: Corpus, most: int, kind: str, rng: np.random.RandomState) -> Corpus:
    """Take at most so many documents; for precision only those whose labels are known."""
    rows = np.arange(corpus.inputs.shape[0])
    if kind == "precision" and corpus.labels is not None:
        rows = rows[corpus.labels.known]
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    labels = None if corpus.labels is None else corpus.labels.take(rows)
    return Corpus(corpus.inputs[rows], corpus.counts[rows], labels)


def means(network: Network, documents: Documents) -> Scores:
    """Encode documents to the mean mu of Q(s | d), of shape (n_docs, K)."""
    batches = sparse_batches(in_order(documents), _ENCODE)
    parts: list[Tensor] = []
    with torch.no_grad():
        for batch in batches:
            parts.append(network.posterior(network.hidden(batch, None)).mu)
    return torch.cat(parts).cpu().numpy()
