"""Training: a loop one reads from top to bottom, the same for the three models and every device."""

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vdsh.codes import Scores, binarize, pack, thresholds
from vdsh.errors import InputError
from vdsh.hashers.base import Corpus, Progress, Report
from vdsh.hashers.batches import (
    Batch,
    Documents,
    Epoch,
    dense_batch,
    in_order,
    shuffled,
    sparse_batches,
)
from vdsh.hashers.network import Network
from vdsh.hashers.objective import L1, L2, L3, Bound, Weights
from vdsh.labels import Labels
from vdsh.metrics import expected_precision

if TYPE_CHECKING:
    from vdsh.hashers.vdsh import VDSH

_ENCODE = 1024  # documents encoded at a time
_MOST_DOCUMENTS, _MOST_QUERIES = 20_000, 2_000  # what a validation looks at, at most


class Trained(NamedTuple):
    """The outcome of training.

    Attributes
    ----------
    weights : dict of ndarray
        The network's weights at the best epoch (the last one without validation data).
    history : list of dict
        For each epoch its loss, divergence and validation score.
    best_epoch : int
        Counted from 1.
    selected_on : str
        "precision", "bound" or "".
    interrupted : bool
        Whether the user stopped training.
    """

    weights: dict[str, NDArray[np.float32]]
    history: list[dict[str, float | None]]
    best_epoch: int
    selected_on: str
    interrupted: bool


def train(
    hasher: "VDSH", train: Corpus, validation: Corpus | None, seed: int, progress: Progress | None
) -> Trained:
    """Fit the network of `hasher` to a corpus."""
    device = choose_device(hasher.device)
    generator = torch.Generator(device).manual_seed(seed)
    documents = _documents(train, hasher.target, device)
    network = _network(hasher, documents, seed).to(device)
    optimizer = torch.optim.Adam(
        network.parameters(),
        lr=hasher.learning_rate,
        fused=True,
        capturable=device.type == "cuda",
    )
    step = _Step(hasher, network, optimizer, generator)
    run_epoch = _graphed_epochs if device.type == "cuda" else _plain_epochs
    run = run_epoch(step, documents, hasher)
    judge = _Judge.choose(hasher, train, validation, device)

    history: list[dict[str, float | None]] = []
    best, best_epoch, best_weights, interrupted = -np.inf, 0, _copy(network), False
    for number in range(1, hasher.epochs + 1):
        try:
            for done in run(shuffled(documents, hasher.word_dropout, generator)):
                if progress:
                    last = history[-1]["validation"] if history else None
                    loss, kl = step.means()
                    kind = judge.kind if judge else ""
                    progress(Report(number, hasher.epochs, done, loss, kl, last, kind))
            score = judge.score(network, seed) if judge else float(number)
        except KeyboardInterrupt:
            if not history:
                raise
            interrupted = True
            warnings.warn(
                f"Training stopped in epoch {number} of {hasher.epochs}; "
                f"kept the model of epoch {best_epoch}.",
                stacklevel=2,
            )
            break
        loss, kl = step.means(reset=True)
        history.append({"loss": loss, "kl": kl, "validation": score if judge else None})
        if score > best:
            best, best_epoch, best_weights = score, number, _copy(network)
        elif number - best_epoch >= hasher.patience:
            break
    weights = {name: value.cpu().numpy() for name, value in best_weights.items()}
    return Trained(weights, history, best_epoch, judge.kind if judge else "", interrupted)


def choose_device(device: str) -> torch.device:
    """Turn the `device` setting into a torch device; "auto" takes a GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(f'device must be "auto", "cpu" or "cuda". Got {device!r}.') from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f'No GPU is usable here. Got device={device!r}; use "cpu" or "auto".')
    return chosen


def _documents(corpus: Corpus, target: str, device: torch.device) -> Documents:
    counts = corpus.counts.data
    targets = np.ones_like(counts) if target == "binary" else counts
    return Documents(corpus.inputs, targets, corpus.labels, device)


def _network(hasher: "VDSH", documents: Documents, seed: int) -> Network:
    return Network(
        documents.n_terms,
        hasher.hidden_size,
        hasher.n_bits,
        n_labels=documents.labels.shape[1] if hasher.supervised else 0,
        private=hasher.private,
        bounded=hasher.log_variance == "bounded",
        dropout=hasher.dropout,
        generator=torch.Generator().manual_seed(seed),
    )


def lower_bound(hasher: "VDSH") -> Callable[..., Bound]:
    """Choose the objective of a model."""
    return L3 if hasher.private else L2 if hasher.supervised else L1


class _Step:
    """One update of the weights; keeps count of updates, loss and divergence on the device."""

    def __init__(
        self,
        hasher: "VDSH",
        network: Network,
        optimizer: torch.optim.Optimizer,
        generator: torch.Generator,
    ) -> None:
        self.network, self.optimizer, self.generator = network, optimizer, generator
        self.bound, self.n_samples = lower_bound(hasher), hasher.n_samples
        self.label_weight = float(getattr(hasher, "label_weight", 0))
        self.kl_weight, self.kl_warmup = hasher.kl_weight, max(hasher.kl_warmup, 1)
        device = network.W1.device
        self.updates = torch.zeros((), device=device)
        self.sums = torch.zeros(3, device=device)  # loss, divergence, documents

    def __call__(self, batch: Batch) -> None:
        """Go one step up the lower bound."""
        self.updates += 1
        kl_weight = self.kl_weight * (self.updates / self.kl_warmup).clamp(max=1)
        t2 = self.network.hidden(batch, self.generator)
        weights = Weights(kl_weight, self.label_weight)
        bound = self.bound(self.network, batch, t2, weights, self.n_samples, self.generator)
        n = batch.present.sum()
        loss = -(bound.value * batch.present).sum() / n
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        kl = (bound.kl.detach() * batch.present).sum()
        self.sums += torch.stack((loss.detach() * n, kl, n))

    def means(self, *, reset: bool = False) -> tuple[float, float]:
        """Return loss and divergence per document since the last reset."""
        loss, kl, n = self.sums.tolist()
        if reset:
            self.sums.zero_()
        return loss / max(n, 1), kl / max(n, 1)


Runner = Callable[[Epoch], Iterator[float]]


def _plain_epochs(step: _Step, documents: Documents, hasher: "VDSH") -> Runner:
    """Run epochs batch by batch on sparse batches (CPU)."""
    n_batches = -(-documents.n_docs // hasher.batch_size)

    def run(epoch: Epoch) -> Iterator[float]:
        for number, batch in enumerate(sparse_batches(epoch, hasher.batch_size), 1):
            step(batch)
            yield number / n_batches

    return run


def _graphed_epochs(step: _Step, documents: Documents, hasher: "VDSH") -> Runner:
    """Run epochs as one captured CUDA graph per batch, replayed without any work on the host."""
    size = min(hasher.batch_size, documents.n_docs)
    n_batches = -(-documents.n_docs // size)
    capacity = documents.largest_batch(size)
    number = torch.zeros((), dtype=torch.int64, device=documents.device)
    buffer = in_order(documents)  # the graph reads the epoch from here

    def work() -> None:
        step(dense_batch(buffer, number, size, documents.n_terms, capacity))
        number.add_(1)

    graph = _capture(work, step)

    def run(epoch: Epoch) -> Iterator[float]:
        for held, new in zip(buffer, epoch, strict=True):
            held.copy_(new)
        number.zero_()
        for i in range(1, n_batches + 1):
            graph.replay()
            if i % 64 == 0 or i == n_batches:
                yield i / n_batches

    return run


def _capture(work: Callable[[], None], step: _Step) -> torch.cuda.CUDAGraph:
    """Record `work` as a graph; the warm-up that this needs leaves no trace in the weights."""
    weights = {name: value.clone() for name, value in step.network.state_dict().items()}
    state = step.generator.get_state()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(step.generator)
    with torch.cuda.graph(graph):
        work()
    step.network.load_state_dict(weights)
    for values in step.optimizer.state.values():
        for value in values.values():
            value.zero_()
    step.updates.zero_()
    step.sums.zero_()
    step.generator.set_state(state)
    return graph


class _Judge:
    """Scores the network on validation data: precision where labels allow it, else the bound."""

    def __init__(
        self, hasher: "VDSH", kind: str, train: Documents, queries: Documents, labels: Any
    ) -> None:
        self.hasher, self.kind = hasher, kind
        self.train, self.queries, self.labels = train, queries, labels

    @classmethod
    def choose(
        cls, hasher: "VDSH", train: Corpus, validation: Corpus | None, device: torch.device
    ) -> "_Judge | None":
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
            _documents(database, hasher.target, device),
            _documents(queries, hasher.target, device),
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
        cut = thresholds(database, self.hasher.threshold)
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


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
