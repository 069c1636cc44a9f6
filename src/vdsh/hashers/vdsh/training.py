"""Training: a loop one reads from top to bottom, the same for the three models and every device."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Progress, Report
from vdsh.hashers.vdsh.adam import Adam
from vdsh.hashers.vdsh.batches import Batch, Stretch, sparse_batches
from vdsh.hashers.vdsh.beginning import begin
from vdsh.hashers.vdsh.epochs import Documents, Epoch, in_order, shuffled
from vdsh.hashers.vdsh.network import Network
from vdsh.hashers.vdsh.objective import Weights, lower_bound
from vdsh.hashers.vdsh.processes import Processes
from vdsh.hashers.vdsh.related import Related, related
from vdsh.hashers.vdsh.validation import Judge, means
from vdsh.recording import Beside, bring, record

if TYPE_CHECKING:
    from vdsh.hashers.vdsh import VDSH


T = TypeVar("T")
Arrays = dict[str, NDArray[np.float32]]
_FIRST_LAYER = ("W1", "b1", "W_vectors")  # whose gradients come last
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


class _Ended(NamedTuple):
    """An epoch that was run, or that a GPU was told to run."""

    number: int
    sums: Callable[[], list[Tensor]]  # waits for loss, divergence and documents
    score: Callable[[], float]  # waits for it
    weights: dict[str, Tensor]


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
    with ThreadPoolExecutor(1) as beside:
        drawing = beside.submit(_network, hasher, train, others, seed)
        documents = Documents.of(train, hasher.target, device, *(others or ()))
        judge = Judge.choose(hasher, train, validation, device)
        network = drawing.result()
    _expect(network, documents, start)
    network = network.to(device)
    if hasher.beginning == "linear":
        learned = None if start is None else documents
        begun = processes.agree(lambda: _begin(hasher, network, train, others, seed, learned))
        network.load_state_dict(begun)
    optimizer = Adam(network.parameters(), hasher.learning_rate_)
    n_updates = hasher.epochs_ * -(-documents.n_docs // hasher.batch_size_)
    step = _Step(hasher, network, optimizer, generator, processes, n_updates)
    ahead = device.type == "cuda" and processes.size == 1
    run_epoch = _graphed_epochs if ahead else _plain_epochs
    run = run_epoch(step, documents, -(-hasher.batch_size_ // processes.size))
    n_epochs = hasher.epochs_
    history: list[dict[str, float | None]] = []

    def run_epochs() -> Iterator[_Ended]:
        share, dropout = hasher.neighbor_share_, hasher.word_dropout_
        for number in range(1, n_epochs + 1):
            for done in run(shuffled(documents, dropout, share, generator, processes)):
                if progress:
                    last = history[-1]["validation"] if history else None
                    kind = judge.kind if judge else ""
                    progress(Report(number, n_epochs, done, *_means(step.sums), last, kind))
            first = processes.rank == 0
            score = judge.begin(network, seed) if judge and first else lambda: 0.0
            yield _Ended(number, step.take_sums(), score, _copy(network))

    best, interrupted = _Best(-np.inf, 0, {}), False
    try:
        # What became of an epoch is looked at while a GPU runs the next one.
        for epoch in _one_late(run_epochs()) if ahead else run_epochs():
            loss, kl = _means(*epoch.sums())
            if not np.isfinite(loss):
                raise InputError(
                    f"Training diverged: the loss of epoch {epoch.number} is {loss}. Try a smaller "
                    f"learning_rate. Got {hasher.learning_rate_}."
                )
            score = processes.agree(epoch.score) if judge else float(epoch.number)
            history.append({"loss": loss, "kl": kl, "validation": score if judge else None})
            if score > best.score:
                best = _Best(score, epoch.number, epoch.weights)
            elif epoch.number - best.epoch >= hasher.patience:
                break
    except KeyboardInterrupt:
        if not best.epoch or processes.size > 1:
            raise
        interrupted = True
        warnings.warn(
            f"Training stopped in epoch {len(history) + 1} of {n_epochs}; "
            f"kept the model of epoch {best.epoch}.",
            stacklevel=2,
        )
    finally:
        if judge:
            judge.join()
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


def _network(hasher: "VDSH", train: Examples, others: Related | None, seed: int) -> Network:
    """Draw the first weights."""
    return Network(
        train.counts.shape[1],
        hasher.hidden_size_,
        hasher.n_bits,
        n_labels=train.labels.matrix.shape[1] if train.labels and hasher.supervised else 0,
        n_places=0 if others is None else others.places.shape[1],
        n_vectors=0 if train.seen is None else train.seen.shape[1],
        private=hasher.private,
        decoder_size=hasher.decoder_size,
        bounded=hasher.log_variance == "bounded",
        dropout=hasher.dropout_,
        generator=torch.Generator().manual_seed(seed),
    )


def _expect(network: Network, documents: Documents, start: Arrays | None) -> None:
    """Have the decoders begin with what is usual, and all with the weights of `start`."""
    if network.deep:
        network.expect(documents.word_frequencies(), documents.label_frequencies())
    network.expect_places(documents.places.mean(0))
    network.begin_with(start or {})


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
        self.beside = Beside(device)
        network.beside = self.beside if device.type == "cuda" else None
        self.early = device.type == "cuda" and processes.size == 1
        names = [name for name, _ in network.named_parameters()]
        self.first = [i for i, name in enumerate(names) if name in _FIRST_LAYER]
        self.upper = [i for i in range(len(names)) if i not in self.first]
        self.updates = torch.zeros((), device=device)
        self.sums = torch.zeros(3, device=device)  # loss, divergence, documents

    def __call__(self, batch: Batch, then: Callable[[], None] = lambda: None) -> None:
        """Go one step up the lower bound; do `then` as soon as the batch is no longer needed."""
        network, n_docs = self.network, len(batch.present)
        with self.beside():
            self.updates += 1
            kl_weight = self.kl_weight * (self.updates / self.kl_warmup).clamp(max=1)
            if self.falls:
                left = 1 - (self.updates - 1) / self.n_updates
                self.optimizer.learning_rate.copy_(self.learning_rate * left)
            kept = network.kept(n_docs, self.generator)
            noise = network.noise(n_docs, self.n_samples, self.generator)
            n = batch.present.sum()
            share = batch.present / n
        projected = network.project(batch)
        if self.early:
            projected.register_hook(self._update_upper)  # type: ignore[no-untyped-call]
        self.beside.join()
        t2, weights = network.above(projected, kept), Weights(kl_weight, self.label_weight)
        bound = self.bound(network, batch, t2, weights, noise)
        self.optimizer.forget_gradients()
        (-bound.value * share).sum().backward()  # type: ignore[no-untyped-call]
        if not self.early:
            self.beside.join()
            self.processes.average(network.parameters())
            self.optimizer.step()
        with torch.no_grad(), self.beside():
            loss, kl = ((part * batch.present).sum() for part in (-bound.value, bound.kl))
            self.sums += torch.stack((loss, kl, n))
            then()
        if self.early:
            self.optimizer.step(self.first)
        self.beside.join()

    def _update_upper(self, of_projected: Tensor) -> None:
        """Update all but the first layer beside the last and largest product of the backward pass.

        Whoever asks for the gradient of what the first layer makes has no use for them any more.
        """
        with self.beside():
            self.optimizer.step(self.upper)

    def state(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return what `restore` needs for training to begin as if no step had been gone."""
        return _copy(self.network), self.generator.get_state()

    def restore(self, weights: dict[str, Tensor], random: Tensor) -> None:
        """Begin anew."""
        self.network.load_state_dict(weights)
        self.generator.set_state(random)
        self.optimizer.reset()
        self.updates.zero_()
        self.sums.zero_()

    def take_sums(self) -> Callable[[], list[Tensor]]:
        """Begin to bring the sums of all processes to the host, and count from 0 again."""
        self.processes.add(self.sums)
        coming = bring([self.sums])
        self.sums.zero_()
        return coming


def _means(sums: Tensor) -> tuple[float, float]:
    """Give loss and divergence per document."""
    loss, kl, n = sums.tolist()
    return loss / max(n, 1), kl / max(n, 1)


def _one_late(items: Iterator[T]) -> Iterator[T]:
    """Give each item when the next one is there."""
    before = next(items)
    for item in items:
        yield before
        before = item
    yield before


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
    before = step.state()
    graph, _ = record(
        lambda: step(stretch.batch, stretch.advance), times=3, generator=step.generator
    )
    step.restore(*before)

    def run(epoch: Epoch) -> Iterator[float]:
        n_batches, done = -(-len(epoch.known) // stretch.batch_size), 0
        for n in stretch.fill(epoch):
            for _ in range(n):
                graph.replay()
            done += n
            yield done / n_batches

    return run


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
