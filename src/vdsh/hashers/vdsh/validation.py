"""Scoring a network on validation documents, to keep its best epoch. Test data is never seen."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from vdsh.codes import FIXED, Scores, pack
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh.batches import MOST_DENSE, SparseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.hashers.vdsh.estimators import VDSH
from vdsh.hashers.vdsh.linear_start import SHORT
from vdsh.hashers.vdsh.network import Network
from vdsh.metrics.by_threshold import MOST_QUERIES, choose_judged, choose_k
from vdsh.metrics.ranking import ndcg_at, precision_at, tally
from vdsh.model.health import sample
from vdsh.text.counts import halves

# 0/1 matrices of training documents and of queries; those that share a label are relevant.
Labels = tuple[NDArray[np.uint8], NDArray[np.uint8]]

_ENCODE = 1024  # documents at a time on a CPU
_LABELLED = 0.3  # share from which epochs are judged by labels: few say little of precision
_OTHERS = 2_000  # training documents that halves are hidden among


class Judge:
    """Scores the network on validation data: precision where labels allow it, else halves.

    Halves: one half of a validation document looks for the other one, which lies among those of
    the others and 2,000 training documents (nDCG: 1 where it always comes first).
    """

    def __init__(
        self, kind: str, threshold: str, train: Documents, queries: Documents, labels: Labels
    ) -> None:
        self.kind, self.threshold = kind, threshold
        self.k = choose_k(train.n_docs)
        # Cut once, not after every epoch.
        self.train, self.queries = list(_batches(train)), list(_batches(queries))
        self.labels, self.query_labels = labels

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
            kind, inputs = "precision", (train.inputs[rows], validation.inputs[query_rows])
            labels = known.matrix, asked.matrix
        elif hasher.n_bits < SHORT or (hasher.supervised and known and known.known.any()):
            return None
        else:
            one, two = halves(validation.counts[sample(validation.counts.shape[0], MOST_QUERIES)])
            if not one.shape[0]:
                return None
            others = train.counts[sample(train.counts.shape[0], _OTHERS)]
            hidden = csr_array(vstack([two, others], format="csr"))
            kind, inputs = "halves", (hasher._weigh(hidden), hasher._weigh(one))
            eye = np.eye(hidden.shape[0], one.shape[0], dtype=np.uint8)  # each finds its own
            labels = eye, eye[: one.shape[0]]
        lying, asking = (Documents(Examples(x, x, None), "counts", device) for x in inputs)
        return cls(kind, hasher.threshold, lying, asking, labels)

    def score(self, network: Network) -> float:
        """Score a network; more is better."""
        database, queries = _means(network, self.train), _means(network, self.queries)
        # "best" is a search of its own, after training, that starts from the better of these.
        names = FIXED if self.threshold == "best" else (self.threshold,)
        return max(self._score(name, database, queries) for name in names)

    def _score(self, threshold: str, database: Scores, queries: Scores) -> float:
        """Let validation documents search the training documents, or halves the other ones."""
        cut = np.median(database, axis=0) if threshold == "median" else np.float32(0)
        codes, asked = pack(database > cut), pack(queries > cut)
        counts = tally(asked, self.query_labels, codes, self.labels)
        if self.kind == "halves":
            return float(ndcg_at(counts, len(database)).mean())
        return float(precision_at(counts, self.k).mean())


def _batches(documents: Documents) -> Iterator[SparseBatch]:
    """Cut documents into batches to encode: a GPU takes as many as make a dense block."""
    on_gpu = documents.device.type == "cuda"
    size = max(1, MOST_DENSE // documents.n_terms) if on_gpu else _ENCODE
    return sparse_batches(in_order(documents), size)


def _means(network: Network, batches: Iterable[SparseBatch]) -> Scores:
    """Encode documents to the mean mu of Q(s | d), of shape (n_docs, K)."""
    with torch.no_grad():
        found = [network.posterior(network.hidden(batch)).mu for batch in batches]
    return torch.cat(found).cpu().numpy()
