"""Training: a loop one reads from top to bottom, the same for the three models and every device."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Progress, Report
from vdsh.hashers.vdsh.adam import Adam
from vdsh.hashers.vdsh.batches import (
    Batch,
    Documents,
    Epoch,
    Stretch,
    in_order,
    shuffled,
    sparse_batches,
)
from vdsh.hashers.vdsh.beginning import begin
from vdsh.hashers.vdsh.network import Network
from vdsh.hashers.vdsh.objective import Weights, lower_bound
from vdsh.hashers.vdsh.processes import Processes
from vdsh.hashers.vdsh.related import Related, related
from vdsh.hashers.vdsh.validation import Judge, means

if TYPE_CHECKING:
    from vdsh.hashers.vdsh import VDSH


Arrays = dict[str, NDArray[np.float32]]
_ONLY_TRAINING = ("P", "b_places")  # weights that nobody asks for afterwards


class Trained(NamedTuple):
    """The outcome of training."""

    # The network's weights at the best epoch (the last one without validation data).
    weights: dict[str, NDArray[np.float32]]
    # For each epoch its loss, divergence and validation score.
    history: list[dict[str, float | None]]
    best_epoch: int  # counted from 1
    selected_on: str  # "precision", "bound" or ""
    interrupted: bool  # whether the user stopped training


class _Best(NamedTuple):
    """The best epoch so far, in one piece, so that Ctrl-C finds it whole at any moment."""

    score: float
    epoch: int
    weights: dict[str, Tensor]


def train(
    hasher: "VDSH",
    train: Examples,
    validation: Examples | None,
    seed: int,
    progress: Progress | None,
    start: Arrays | None = None,
) -> Trained:
    """Fit the network of `hasher` to a corpus, from nothing or from the weights of `start`."""
    device = choose_device(hasher.device)
    with _fast_products(device):
        return _train(hasher, train, validation, seed, progress, device, start)


def _train(
    hasher: "VDSH",
    train: Examples,
    validation: Examples | None,
    seed: int,
    progress: Progress | None,
    device: torch.device,
    start: Arrays | None,
) -> Trained:
    processes = Processes()
    seed = processes.agree(lambda: seed)
    generator = torch.Generator(device).manual_seed(seed + processes.rank)
    others = processes.agree(lambda: _related(hasher, train, progress))
    documents = Documents.of(train, hasher.target, device, *(others or ()))
    network = _network(hasher, documents, seed, start).to(device)
    if hasher.beginning == "linear":
        learned = None if start is None else documents
        begun = processes.agree(lambda: _begin(hasher, network, train, others, seed, learned))
        network.load_state_dict(begun)
    optimizer = Adam(network.parameters(), hasher.learning_rate_)
    n_updates = hasher.epochs_ * -(-documents.n_docs // hasher.batch_size_)
    step = _Step(hasher, network, optimizer, generator, processes, n_updates)
    run_epoch = _graphed_epochs if device.type == "cuda" and processes.size == 1 else _plain_epochs
    run = run_epoch(step, documents, -(-hasher.batch_size_ // processes.size))
    n_epochs = hasher.epochs_
    judge = Judge.choose(hasher, train, validation, device)

    def epochs(generator: torch.Generator) -> Epoch:
        return shuffled(
            documents, hasher.word_dropout_, hasher.neighbor_share_, generator, processes
        )

    history: list[dict[str, float | None]] = []
    best, interrupted = _Best(-np.inf, 0, {}), False
    try:
        for number in range(1, n_epochs + 1):
            for done in run(epochs(generator)):
                if progress:
                    last = history[-1]["validation"] if history else None
                    loss, kl = step.means()
                    kind = judge.kind if judge else ""
                    progress(Report(number, n_epochs, done, loss, kl, last, kind))
            loss, kl = step.means(reset=True)
            if not np.isfinite(loss):
                raise InputError(
                    f"Training diverged: the loss of epoch {number} is {loss}. Try a smaller "
                    f"learning_rate. Got {hasher.learning_rate_}."
                )
            score = processes.agree(lambda: judge.score(network, seed)) if judge else float(number)
            history.append({"loss": loss, "kl": kl, "validation": score if judge else None})
            if score > best.score:
                best = _Best(score, number, _copy(network))
            elif number - best.epoch >= hasher.patience:
                break
    except KeyboardInterrupt:
        if not best.epoch or processes.size > 1:
            raise
        interrupted = True
        warnings.warn(
            f"Training stopped in epoch {number} of {n_epochs}; "
            f"kept the model of epoch {best.epoch}.",
            stacklevel=2,
        )
    kept = {name: value for name, value in best.weights.items() if name not in _ONLY_TRAINING}
    weights = {name: value.cpu().numpy() for name, value in kept.items()}
    return Trained(weights, history, best.epoch, judge.kind if judge else "", interrupted)


@contextmanager
def _fast_products(device: torch.device) -> Iterator[None]:
    """Let a GPU multiply matrices in TF32, which training does not feel; a CPU stays exact."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


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


def _related(hasher: "VDSH", train: Examples, progress: Progress | None) -> Related | None:
    """Find the documents that a part of each target comes from, and where all of them lie."""
    if not hasher.neighbor_share_:
        return None

    def show(done: float) -> None:
        if progress:
            progress(Report(1, 1, done, unit="neighbours"))

    most = int(train.counts.shape[0] ** 0.5)  # of few documents, few are about one matter
    return related(train.counts, min(hasher.n_neighbors, most), train.vectors, progress=show)


def _network(
    hasher: "VDSH", documents: Documents, seed: int, start: Arrays | None = None
) -> Network:
    network = Network(
        documents.n_terms,
        hasher.hidden_size_,
        hasher.n_bits,
        n_labels=documents.labels.shape[1] if hasher.supervised else 0,
        n_places=documents.places.shape[1],
        n_vectors=documents.vectors.shape[1],
        private=hasher.private,
        decoder_size=hasher.decoder_size,
        bounded=hasher.log_variance == "bounded",
        dropout=hasher.dropout_,
        generator=torch.Generator().manual_seed(seed),
    )
    if network.deep:
        network.expect(documents.word_frequencies(), documents.label_frequencies())
    network.expect_places(documents.places.mean(0))
    network.begin_with(start or {})
    return network


def _begin(
    hasher: "VDSH",
    network: Network,
    train: Examples,
    others: Related | None,
    seed: int,
    learned: Documents | None,
) -> dict[str, Tensor]:
    """Begin with the places of documents, or else with their labels; without, by chance.

    Where it learns on, `learned` are the documents whose codes are to stay.
    """
    before = None if learned is None else means(network, learned).cpu().numpy()
    if others is not None:
        begin(network, train.inputs, others.places, seed, train.seen, before)
    elif hasher.supervised and train.labels is not None:
        known = train.labels.known
        told = train.labels.matrix[known].astype(np.float32)
        seen, before = (None if rows is None else rows[known] for rows in (train.seen, before))
        begin(network, train.inputs[known], told, seed, seen, before)
    return network.state_dict()


class _Step:
    """One update of the weights; keeps count of updates, loss and divergence on the device."""

    def __init__(
        self,
        hasher: "VDSH",
        network: Network,
        optimizer: Adam,
        generator: torch.Generator,
        processes: Processes,
        n_updates: int,
    ) -> None:
        self.network, self.optimizer, self.generator = network, optimizer, generator
        self.processes = processes
        self.bound, self.n_samples = lower_bound(hasher), hasher.n_samples
        self.label_weight = float(getattr(hasher, "label_weight", 0))
        self.kl_weight, self.kl_warmup = hasher.kl_weight_, max(hasher.kl_warmup, 1)
        self.learning_rate, self.falls = hasher.learning_rate_, hasher.schedule == "linear"
        self.n_updates = n_updates
        device = network.W1.device
        self.updates = torch.zeros((), device=device)
        self.sums = torch.zeros(3, device=device)  # loss, divergence, documents

    def __call__(self, batch: Batch) -> None:
        """Go one step up the lower bound."""
        self.updates += 1
        kl_weight = self.kl_weight * (self.updates / self.kl_warmup).clamp(max=1)
        if self.falls:
            left = 1 - (self.updates - 1) / self.n_updates
            self.optimizer.learning_rate.copy_(self.learning_rate * left)
        t2 = self.network.hidden(batch, self.generator)
        weights = Weights(kl_weight, self.label_weight)
        bound = self.bound(self.network, batch, t2, weights, self.n_samples, self.generator)
        n = batch.present.sum()
        total = -(bound.value * batch.present).sum()
        self.optimizer.forget_gradients()
        (total / n).backward()  # type: ignore[no-untyped-call]
        self.processes.average(self.network.parameters())
        self.optimizer.step()
        kl = (bound.kl.detach() * batch.present).sum()
        self.sums += torch.stack((total.detach(), kl, n))

    def means(self, *, reset: bool = False) -> tuple[float, float]:
        """Return loss and divergence per document since the last reset.

        With `reset` they are those of all processes, else of this process.
        """
        if reset:
            self.processes.add(self.sums)
        loss, kl, n = self.sums.tolist()
        if reset:
            self.sums.zero_()
        return loss / max(n, 1), kl / max(n, 1)


Runner = Callable[[Epoch], Iterator[float]]


def _plain_epochs(step: _Step, documents: Documents, size: int) -> Runner:
    """Run epochs batch by batch on sparse batches (CPU, or several processes)."""

    def run(epoch: Epoch) -> Iterator[float]:
        n_batches = -(-len(epoch.known) // size)
        for number, batch in enumerate(sparse_batches(epoch, size), 1):
            step(batch)
            yield number / n_batches

    return run


def _graphed_epochs(step: _Step, documents: Documents, size: int) -> Runner:
    """Run epochs as one captured CUDA graph per batch, replayed without any work on the host."""
    stretch = Stretch(documents, min(size, documents.n_docs))
    next(stretch.fill(in_order(documents)))  # something to record with
    graph = _capture(lambda: step(stretch.take()), step)

    def run(epoch: Epoch) -> Iterator[float]:
        n_batches, done = -(-len(epoch.known) // stretch.batch_size), 0
        for n in stretch.fill(epoch):
            for _ in range(n):
                graph.replay()
            done += n
            yield done / n_batches

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
    step.optimizer.reset()
    step.updates.zero_()
    step.sums.zero_()
    step.generator.set_state(state)
    return graph


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
