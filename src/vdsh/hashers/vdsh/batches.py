"""Documents on a device, and the batches of an epoch: sparse in memory from end to end.

On a CPU a batch stays sparse in the network too (an embedding bag, a gather). On a GPU the few
megabytes of one batch are scattered into a dense block, which feeds the matrix units, keeps every
shape fixed and every sum in the same order; no step waits for the host.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional as F

from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh.processes import Processes
from vdsh.labels import Labels

NO_VECTOR, NO_WORDS = 0.2, 0.1  # of the documents, in training, where there are both
MOST_DENSE = 1 << 26  # numbers of a dense block


class Batch(Protocol):
    """What the network and the objective ask of B documents."""

    @property
    def labels(self) -> Tensor:
        """0/1 labels, (B, L)."""

    @property
    def known(self) -> Tensor:
        """1 where the labels are known, (B,)."""

    @property
    def places(self) -> Tensor:
        """Where the documents lie, (B, P); P is 0 where nothing is known of it."""

    @property
    def vectors(self) -> Tensor:
        """What the encoder sees beside words, (B, N), zero where it is not known; N may be 0."""

    @property
    def present(self) -> Tensor:
        """1 for a document, 0 for padding, (B,)."""

    def project(self, W: Tensor) -> Tensor:
        """Multiply the weighted terms with W of shape (V, H): (B, H)."""

    def log_likelihood(self, logits: Tensor) -> Tensor:
        """Sum target times log P(w) over the words, from logits (M, B, V): (M, B)."""


class Documents:
    """A corpus on a device, in rows one can permute.

    Parameters
    ----------
    inputs : csr_array of shape (n_docs, n_terms)
        What the encoder sees.
    targets : ndarray of shape (n_entries,)
        What the decoder has to produce, for the same entries.
    neighbours : int32 ndarray of shape (n_docs, k), optional
        Rows of similar documents; a part of each target is then taken from one of them.
    places : float32 ndarray of shape (n_docs, P), optional
        Where the documents lie among one another.
    vectors : float32 ndarray of shape (n_docs, N), optional
        What the encoder sees beside words.
    """

    def __init__(
        self,
        inputs: csr_array,
        targets: NDArray[np.float32],
        labels: Labels | None,
        device: torch.device,
        neighbours: NDArray[np.int32] | None = None,
        places: NDArray[np.float32] | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        def tensor(array: NDArray[np.generic], dtype: torch.dtype) -> Tensor:
            return torch.as_tensor(array).to(device, dtype)

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
        self.vectors = tensor(nowhere if vectors is None else vectors, torch.float32)

    @classmethod
    def of(
        cls,
        corpus: Examples,
        target: str,
        device: torch.device,
        neighbours: NDArray[np.int32] | None = None,
        places: NDArray[np.float32] | None = None,
    ) -> "Documents":
        """Take a corpus; the target is each word once ("binary") or as often as it occurs."""
        counts = corpus.counts.data
        targets = np.ones_like(counts) if target == "binary" else counts
        labels, vectors = corpus.labels, corpus.seen
        return cls(corpus.inputs, targets, labels, device, neighbours, places, vectors)

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
    vectors: Tensor  # (n_docs, N)


def in_order(documents: Documents) -> Epoch:
    """Take the documents as they stand."""
    return _arrange(documents, torch.arange(documents.n_docs, device=documents.device))


def shuffled(
    documents: Documents,
    word_dropout: float,
    share: float,
    generator: torch.Generator,
    processes: Processes | None = None,
) -> Epoch:
    """Take the documents in random order, each with some of its inputs left out.

    The targets keep every word: the encoder has to guess what it does not see. Of each target
    `share` comes from a neighbour drawn anew, where the documents have neighbours. Of several
    processes each gets its part of the documents.
    """
    order = torch.randperm(documents.n_docs, generator=generator, device=documents.device)
    order = processes.share(order) if processes else order
    if documents.neighbours is None:
        epoch = _arrange(documents, order)
    else:
        epoch = _with_neighbours(documents, order, share, generator)
    if word_dropout:
        keep = 1 - word_dropout
        chance = torch.rand(len(epoch.inputs), generator=generator, device=documents.device)
        epoch = epoch._replace(inputs=epoch.inputs * (chance < keep) / keep)
    return _hide(epoch, word_dropout, generator) if documents.vectors.shape[1] else epoch


def _hide(epoch: Epoch, dropout: float, generator: torch.Generator) -> Epoch:
    """Hide the vectors of some documents, all words of others, and a part of each vector.

    So either does alone, and the vector, which says more than a few words, is not learned by
    heart.
    """
    chance = torch.rand(len(epoch.known), generator=generator, device=epoch.known.device)
    words = (chance < 1 - NO_WORDS).float()[epoch.rows]
    vectors, keep = epoch.vectors * (chance >= NO_VECTOR).float()[:, None], 1 - dropout
    kept = torch.rand(vectors.shape, generator=generator, device=vectors.device) < keep
    return epoch._replace(inputs=epoch.inputs * words, vectors=vectors * kept / keep)


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
    pairs = _arrange(documents, torch.stack([order, neighbour], 1).flatten(), order)
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
        pairs.vectors,
    )


def _arrange(documents: Documents, order: Tensor, encoded: Tensor | None = None) -> Epoch:
    """Put documents in order; `encoded` are those whose vectors are wanted, if not all."""
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
        documents.vectors[order if encoded is None else encoded],
    )


class SparseBatch(NamedTuple):
    """Documents `first` to `last` of an epoch, sparse: for CPUs."""

    seen: Tensor  # (m,), columns that the encoder sees
    offsets: Tensor  # (B,), where each document's begin
    inputs: Tensor  # (m,)
    columns: Tensor  # (n,), what the decoder has to produce
    rows: Tensor  # (n,), from 0
    targets: Tensor  # (n,)
    labels: Tensor
    known: Tensor
    places: Tensor
    vectors: Tensor

    @property
    def present(self) -> Tensor:
        """All rows are documents."""
        return torch.ones_like(self.known)

    def project(self, W: Tensor) -> Tensor:
        """Sum the rows of W that the documents have, weighted.

        A GPU multiplies a dense block faster than it picks rows.
        """
        if W.is_cuda:
            block = W.new_zeros(len(self.known), len(W))
            ends = torch.cat((self.offsets[1:], self.offsets.new_full((1,), len(self.seen))))
            rows = torch.repeat_interleave(ends - self.offsets, output_size=len(self.seen))
            block[rows, self.seen] = self.inputs
            return block @ W
        return F.embedding_bag(
            self.seen, W, self.offsets, mode="sum", per_sample_weights=self.inputs
        )

    def log_likelihood(self, logits: Tensor) -> Tensor:
        """Pick the logits of the words that are there; the rest only enters the normaliser."""
        total: Tensor = _LogLikelihood.apply(logits, self.rows, self.columns, self.targets)  # type: ignore[no-untyped-call]
        return total


class _LogLikelihood(torch.autograd.Function):
    """Sum targets times log-softmax over the words that are there.

    Its own backward keeps the probabilities of the forward pass, which halves the passes over
    all words of the vocabulary: they are a third of a step on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, columns: Tensor, targets: Tensor) -> Tensor:
        M, B, V = logits.shape
        place = rows * V + columns
        picked = logits.flatten(1).index_select(1, place) * targets
        words = logits.new_zeros(M, B).index_add_(1, rows, picked)
        total = logits.new_zeros(B).index_add_(0, rows, targets)
        peak = logits.amax(-1, keepdim=True)
        p = (logits - peak).exp_()
        norm = p.sum(-1, keepdim=True)
        ctx.save_for_backward(p, norm, place, rows, targets, total)
        return words - total * (norm.log() + peak)[..., 0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        p, norm, place, rows, targets, total = ctx.saved_tensors
        of_logits = p.mul_((-grad * total)[..., None].div(norm))  # nobody needs p again
        of_logits.flatten(1).index_add_(1, place, grad[:, rows] * targets)
        return of_logits, None, None, None


def sparse_batches(epoch: Epoch, batch_size: int) -> Iterator[SparseBatch]:
    """Cut an epoch into batches."""
    offsets = epoch.offsets.tolist()
    n_docs = len(offsets) - 1
    for first in range(0, n_docs, batch_size):
        last = min(first + batch_size, n_docs)
        start, stop = offsets[first], offsets[last]
        columns, rows = epoch.columns[start:stop], epoch.rows[start:stop] - first
        inputs, targets = epoch.inputs[start:stop], epoch.targets[start:stop]
        kept = inputs.nonzero()[:, 0]  # dropped words and those of neighbours are targets only
        lengths = torch.bincount(rows[kept], minlength=last - first)
        yield SparseBatch(
            columns[kept],
            lengths.cumsum(0) - lengths,
            inputs[kept],
            columns,
            rows,
            targets,
            epoch.labels[first:last],
            epoch.known[first:last],
            epoch.places[first:last],
            epoch.vectors[first:last],
        )


class DenseBatch(NamedTuple):
    """A batch as dense blocks of fixed shape: for GPUs."""

    inputs: Tensor  # (B, V)
    targets: Tensor  # (B, V)
    labels: Tensor
    known: Tensor
    places: Tensor
    vectors: Tensor
    present: Tensor

    def project(self, W: Tensor) -> Tensor:
        """Multiply."""
        return self.inputs @ W

    def log_likelihood(self, logits: Tensor) -> Tensor:
        """Weigh the normalised logits with the targets."""
        return (self.targets * logits.log_softmax(-1)).sum(-1)


class Stretch:
    """Room for batches of an epoch as dense blocks, one of which is the current one.

    `advance` does the same work on the same memory every time, so that a GPU can record it.

    Parameters
    ----------
    documents : Documents
    batch_size : int

    Attributes
    ----------
    batch : DenseBatch
        The current one; documents beyond the last are not `present`.
    """

    def __init__(self, documents: Documents, batch_size: int) -> None:
        self.batch_size, self.n_terms = batch_size, documents.n_terms
        n_batches = min(
            -(-documents.n_docs // batch_size),
            max(1, MOST_DENSE // (batch_size * documents.n_terms)),
        )
        self.n_docs = n_batches * batch_size
        n_labels, n_places, n_vectors = (
            part.shape[1] for part in (documents.labels, documents.places, documents.vectors)
        )

        def room(n_docs: int) -> DenseBatch:
            widths: tuple[list[int], ...]
            widths = ([self.n_terms], [self.n_terms], [n_labels], [], [n_places], [n_vectors], [])
            blocks = (torch.zeros(n_docs, *width, device=documents.device) for width in widths)
            return DenseBatch(*blocks)

        self._held, self.batch = room(self.n_docs), room(batch_size)
        self._first = torch.arange(batch_size, device=documents.device)
        self._at = self._first.clone()

    def fill(self, epoch: Epoch) -> Iterator[int]:
        """Lay out the epoch, part by part; say each time how many batches there are.

        The first is then the current one.
        """
        n_docs, held = len(epoch.known), self._held
        firsts = range(0, n_docs, self.n_docs)
        starts = epoch.offsets[[*firsts, n_docs]].tolist()
        for first, start, stop in zip(firsts, starts, starts[1:], strict=False):
            last = min(first + self.n_docs, n_docs)
            for block in held:
                block.zero_()
            place = (epoch.rows[start:stop] - first) * self.n_terms + epoch.columns[start:stop]
            # At most two entries share a place, a word of the document and of its neighbour, so
            # the sum does not depend on their order.
            held.inputs.view(-1).scatter_add_(0, place, epoch.inputs[start:stop])
            held.targets.view(-1).scatter_add_(0, place, epoch.targets[start:stop])
            for name in ("labels", "known", "places", "vectors"):
                getattr(held, name)[: last - first] = getattr(epoch, name)[first:last]
            held.present[: last - first] = 1
            self._at.copy_(self._first)
            self.advance()
            yield -(-(last - first) // self.batch_size)

    def advance(self) -> None:
        """Go on to the next batch, or to the first again."""
        for block, part in zip(self._held, self.batch, strict=True):
            if block.numel():
                torch.index_select(block, 0, self._at, out=part)
        self._at.add_(self.batch_size).remainder_(self.n_docs)
