"""Documents on a device, and their order in an epoch: sparse in memory from end to end."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vdsh.hashers.base import Examples


class Documents:
    """A corpus on a device, in rows one can permute; the encoder sees its inputs.

    A part of each target is taken from one of the `neighbours`, (n_docs, k), where there are any.
    """

    def __init__(
        self,
        corpus: Examples,
        target: str,
        device: torch.device,
        neighbours: NDArray[np.int32] | None = None,
        places: NDArray[np.float32] | None = None,
    ) -> None:
        def tensor(array: NDArray[np.generic], dtype: torch.dtype) -> Tensor:
            return torch.as_tensor(array).to(device, dtype)

        inputs, counts, labels = corpus.inputs, corpus.counts.data, corpus.labels
        targets = np.ones_like(counts) if target == "binary" else counts
        self.n_docs, self.n_terms = inputs.shape
        self.device = device
        self.starts = tensor(inputs.indptr[:-1], torch.int64)
        self.lengths = tensor(np.diff(inputs.indptr), torch.int64)
        self.columns = tensor(inputs.indices, torch.int64)
        self.inputs = tensor(inputs.data, torch.float32)
        self.targets = tensor(targets, torch.float32)
        matrix = np.zeros((self.n_docs, 0), np.uint8) if labels is None else labels.matrix
        known = np.zeros(self.n_docs, bool) if labels is None else labels.known
        self.labels, self.known = tensor(matrix, torch.float32), tensor(known, torch.float32)
        self.neighbours = None if neighbours is None else tensor(neighbours, torch.int64)
        nowhere = np.zeros((self.n_docs, 0), np.float32)
        self.places = tensor(nowhere if places is None else places, torch.float32)

    def word_frequencies(self) -> Tensor:
        """Return each word's share of all targets, none of them 0: (V,)."""
        total = torch.ones(self.n_terms, device=self.device)
        total.index_add_(0, self.columns, self.targets)
        return total / total.sum()

    def label_frequencies(self) -> Tensor:
        """Return the share of labelled documents with each label, none of them 0 or 1: (L,)."""
        return (self.labels.sum(0) + 1) / (self.known.sum() + 2)


class Epoch(NamedTuple):
    """The documents in the order of one epoch."""

    offsets: Tensor  # (n_docs + 1,): document i has the entries offsets[i]:offsets[i + 1]
    rows: Tensor  # (n_entries,): the document of each entry
    columns: Tensor
    inputs: Tensor
    targets: Tensor
    labels: Tensor  # (n_docs, L)
    known: Tensor  # (n_docs,)
    places: Tensor  # (n_docs, P)


def in_order(documents: Documents) -> Epoch:
    """Take the documents as they stand."""
    return _arrange(documents, torch.arange(documents.n_docs, device=documents.device))


def shuffled(
    documents: Documents, word_dropout: float, share: float, generator: torch.Generator
) -> Epoch:
    """Take the documents in random order, each with some of its inputs left out.

    The targets keep every word: the encoder has to guess what it does not see. Of each target
    `share` comes from a neighbour drawn anew, where the documents have neighbours.
    """
    order = torch.randperm(documents.n_docs, generator=generator, device=documents.device)
    if documents.neighbours is None:
        epoch = _arrange(documents, order)
    else:
        epoch = _with_neighbours(documents, order, share, generator)
    if word_dropout:
        keep = 1 - word_dropout
        chance = torch.rand(len(epoch.inputs), generator=generator, device=documents.device)
        epoch = epoch._replace(inputs=epoch.inputs * (chance < keep) / keep)
    return epoch


def _with_neighbours(
    documents: Documents, order: Tensor, share: float, generator: torch.Generator
) -> Epoch:
    """Put behind each document's entries those of a neighbour, as targets only.

    A document whose labels are not known borrows the neighbour's.
    """
    assert documents.neighbours is not None
    k = documents.neighbours.shape[1]
    drawn = torch.randint(k, (len(order), 1), generator=generator, device=order.device)
    neighbour = documents.neighbours[order].gather(1, drawn)[:, 0]
    pairs = _arrange(documents, torch.stack([order, neighbour], 1).flatten())
    own = (pairs.rows % 2 == 0).float()
    return Epoch(
        pairs.offsets[::2],
        pairs.rows // 2,
        pairs.columns,
        pairs.inputs * own,
        pairs.targets * (own * (1 - share) + (1 - own) * share),
        torch.where(pairs.known[::2, None] > 0, pairs.labels[::2], pairs.labels[1::2]),
        torch.maximum(pairs.known[::2], pairs.known[1::2]),
        pairs.places[::2],
    )


def _arrange(documents: Documents, order: Tensor) -> Epoch:
    """Put documents in order."""
    lengths = documents.lengths[order]
    offsets = F.pad(lengths.cumsum(0), (1, 0))  # (len(order) + 1,)
    size = int(offsets[-1])
    shift = torch.repeat_interleave(
        documents.starts[order] - offsets[:-1], lengths, output_size=size
    )
    source = torch.arange(size, device=order.device) + shift
    rows = torch.repeat_interleave(
        torch.arange(len(order), device=order.device), lengths, output_size=size
    )
    return Epoch(
        offsets,
        rows,
        documents.columns[source],
        documents.inputs[source],
        documents.targets[source],
        documents.labels[order],
        documents.known[order],
        documents.places[order],
    )
