"""The batches of an epoch, in the shape that suits the device.

On a CPU a batch stays sparse in the network too (an embedding bag, a gather). On a GPU the few
megabytes of one batch are scattered into a dense block, which feeds the matrix units, keeps every
shape fixed and every sum in the same order; no step waits for the host.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from vdsh.hashers.vdsh.epochs import Documents, Epoch

MOST_DENSE = 1 << 26  # numbers of a dense block


class SparseBatch(NamedTuple):
    """B documents that follow each other in an epoch, sparse: for CPUs."""

    seen: Tensor  # (m,), columns that the encoder sees
    offsets: Tensor  # (B,), where each document's begin
    inputs: Tensor  # (m,)
    columns: Tensor  # (n,), what the decoder has to produce
    rows: Tensor  # (n,), from 0
    targets: Tensor  # (n,)
    labels: Tensor  # (B, L): 0/1
    known: Tensor  # (B,): 1 where the labels are known
    places: Tensor  # (B, P): where the documents lie; P is 0 where nothing is known of it

    @property
    def present(self) -> Tensor:
        """1 for a document, 0 for padding, (B,): all rows are documents."""
        return torch.ones_like(self.known)

    def project(self, W: Tensor) -> Tensor:
        """Multiply the weighted terms with W of shape (V, H): (B, H).

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
        """Sum target times log P(w) over the words, from logits (M, B, V): (M, B).

        The logits of words that are not there only enter the normaliser.
        """
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
        )


class DenseBatch(NamedTuple):
    """A batch as dense blocks of fixed shape: for GPUs."""

    inputs: Tensor  # (B, V)
    targets: Tensor  # (B, V)
    labels: Tensor
    known: Tensor
    places: Tensor
    present: Tensor

    def project(self, W: Tensor) -> Tensor:
        """Multiply."""
        return self.inputs @ W

    def log_likelihood(self, logits: Tensor) -> Tensor:
        """Weigh the normalised logits with the targets."""
        return (self.targets * logits.log_softmax(-1)).sum(-1)


Batch = SparseBatch | DenseBatch


class Buffer:
    """Room for batches of an epoch as dense blocks; `batch` is the current one.

    `advance` does the same work on the same memory every time, so that a GPU can record it.
    Documents beyond the last are not `present`.
    """

    def __init__(self, documents: Documents, batch_size: int) -> None:
        self.batch_size, self.n_terms = batch_size, documents.n_terms
        n_batches = min(
            -(-documents.n_docs // batch_size),
            max(1, MOST_DENSE // (batch_size * documents.n_terms)),
        )
        self.n_docs = n_batches * batch_size
        terms, labels, places = (
            [n] for n in (self.n_terms, documents.labels.shape[1], documents.places.shape[1])
        )

        def room(n_docs: int) -> DenseBatch:
            widths: tuple[list[int], ...] = (terms, terms, labels, [], places, [])
            return DenseBatch(*(torch.zeros(n_docs, *w, device=documents.device) for w in widths))

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
            for name in ("labels", "known", "places"):
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


def record(work: Callable[[], None], generator: torch.Generator) -> torch.cuda.CUDAGraph:
    """Record `work`, which draws from `generator` and never waits, on the current GPU.

    It is done thrice before, as what compiles or allocates for good may not be recorded. Each
    record has a stream of its own, and with it room for matrix products: torch's one stream for
    all would have two graphs share it.
    """
    here = torch.cuda.current_stream()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    here.wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        work()
    return graph
