"""Training: a loop one reads from top to bottom, the same for the three models and every device."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Progress, Report
from vdsh.hashers.vdsh.batches import Batch, Buffer, record, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, Epoch, in_order, shuffled
from vdsh.hashers.vdsh.estimators import VDSH
from vdsh.hashers.vdsh.linear_start import SHORT_OF_SHORT, start_from_labels, start_from_places
from vdsh.hashers.vdsh.lsa import are_short
from vdsh.hashers.vdsh.network import Network
from vdsh.hashers.vdsh.objective import L1, L2, L3, Weights
from vdsh.hashers.vdsh.related import Related, related
from vdsh.hashers.vdsh.updates import Adam
from vdsh.hashers.vdsh.validation import Judge, is_clearly_better

_ENCODER = ("W1", "b1", "W2", "b2", "W3", "b3")
_ONLY_TRAINING = ("P", "b_places")  # weights that nobody asks for afterwards


class _Best(NamedTuple):
    """The best epoch so far, in one piece, so that Ctrl-C finds it whole at any moment."""

    score: float
    epoch: int
    weights: dict[str, Tensor]


def train(
    hasher: VDSH, train: Examples, validation: Examples | None, seed: int, progress: Progress | None
) -> dict[str, Any]:
    """Fit the network of `hasher` to a corpus.

    Return what was learned, by attribute name: the weights of the best epoch, or where no labels
    tell which that is, those that `keeps_start` says. Where that is 0, the start, the decoder is
    that of epoch 1: the start has none.
    """
    device = choose_device(hasher.device)
    with _fast_products(device):
        generator = torch.Generator(device).manual_seed(seed)
        others = _related(hasher, train, progress)
        network = _network(hasher, train, others, seed)
        taught = train if hasher.supervised else train._replace(labels=None)
        documents = Documents(taught, hasher.target, device, *(others[:2] if others else ()))
        judge = Judge.choose(hasher, train, validation, device)
        network.expect(documents)
        network = network.to(device)
        if hasher.start == "linear":
            _start(hasher, network, train, others, seed)
        start_is_kept = judge is None and keeps_start(hasher, train, others)
        n_epochs = 1 if start_is_kept else hasher.epochs_
        n_updates = n_epochs * -(-documents.n_docs // hasher.batch_size_)
        step = _Step(hasher, network, generator, n_updates)
        epochs = graphed_epochs if device.type == "cuda" else plain_epochs
        run = epochs(step, documents, hasher.batch_size_)
        begun = None  # the scores of a linear start; weights by chance are not looked at
        if judge and hasher.start == "linear":
            begun = judge.score(network)
        first = None if begun is None else float(begun.mean())
        history: list[dict[str, float | None]] = [{"loss": None, "kl": None, "validation": first}]

        def show(number: int, done: float) -> None:
            if progress:
                last = history[-1]["validation"]
                kind = judge.kind if judge else ""
                progress(Report(number, n_epochs, done, *_means(step.sums), last, kind))

        best, interrupted = _Best(-np.inf if first is None else first, 0, _copy(network)), False
        share, dropout = hasher.neighbor_share_, hasher.word_dropout_
        try:
            for number in range(1, n_epochs + 1):
                for done in run(shuffled(documents, dropout, share, generator)):
                    show(number, done)
                loss, kl = _means(step.sums)
                step.sums.zero_()
                if not np.isfinite(loss):
                    raise InputError(
                        f"Training diverged: the loss of epoch {number} is {loss}. Try a smaller "
                        f"learning_rate. Got {hasher.learning_rate_}."
                    )
                scores = judge.score(network) if judge else None
                score = float(number) if scores is None else float(scores.mean())
                history.append({"loss": loss, "kl": kl, "validation": score if judge else None})
                is_better = score > best.score and not start_is_kept
                if not best.epoch and scores is not None and begun is not None:
                    is_better = is_clearly_better(scores, begun)
                if is_better:
                    best = _Best(score, number, _copy(network))
                    continue
                if number == 1:
                    encoder = {name: best.weights[name] for name in _ENCODER}
                    best = best._replace(weights=_copy(network) | encoder)
                if number - best.epoch >= hasher.patience:
                    break
        except KeyboardInterrupt:
            if len(history) == 1 or (begun is None and not best.epoch):
                raise
            interrupted = True
            warnings.warn(
                f"Training stopped in epoch {len(history)} of {n_epochs}; "
                f"kept the model of epoch {best.epoch}.",
                stacklevel=2,
            )
        kept = {name: value for name, value in best.weights.items() if name not in _ONLY_TRAINING}
        return {f"{name}_": value.cpu().numpy() for name, value in kept.items()} | {
            "epochs_": n_epochs,
            "history_": history,
            "best_epoch_": best.epoch,
            "selected_on_": judge.kind if judge else "",
            "interrupted_": interrupted,
        }


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


def keeps_start(hasher: VDSH, train: Examples, others: Related | None) -> bool:
    """Tell whether a network without a judge keeps its linear start: where texts are short.

    Training on texts of ten words loses what the start had (P@100 on web snippets: 0.01 to 0.015
    at 32 to 128 bits, with any step size, word dropout and target), and no judge sees it. Who gives
    a number of epochs gets them. Labels, of however few documents, are worth training.
    """
    labelled = hasher.supervised and train.labels is not None and train.labels.known.any()
    return (
        hasher.epochs is None
        and hasher.start == "linear"
        and hasher.n_bits >= SHORT_OF_SHORT
        and others is not None
        and not labelled
        and are_short(train.counts)
    )


def _related(hasher: VDSH, train: Examples, progress: Progress | None) -> Related | None:
    """Find the documents that a part of each target comes from, and where all of them lie."""
    if not hasher.neighbor_share_:
        return None
    most = int(train.counts.shape[0] ** 0.5)  # of few documents, few are about one matter
    return related(train.counts, min(hasher.n_neighbors, most), train.vectors, progress=progress)


def _network(hasher: VDSH, train: Examples, others: Related | None, seed: int) -> Network:
    """Draw the first weights."""
    n_labels = len(train.labels.names) if train.labels and hasher.supervised else 0
    n_places = 0 if others is None else others.places.shape[1]
    generator = torch.Generator().manual_seed(seed)
    return Network(hasher, train.counts.shape[1], n_labels, n_places, generator)


def _start(
    hasher: VDSH, network: Network, train: Examples, others: Related | None, seed: int
) -> None:
    """Start with the places of documents as targets, or else their labels; without, at random."""
    if others is not None:
        rows = others.rows
        start_from_places(network, train.inputs[rows], others.places[rows], seed)
    elif hasher.supervised and train.labels is not None:
        known = train.labels.known
        targets = train.labels.take(known).matrix.astype(np.float32)
        start_from_labels(network, train.inputs[known], targets, seed)


class _Step:
    """One update of the weights; keeps count of updates, loss and divergence on the device."""

    def __init__(
        self, hasher: VDSH, network: Network, generator: torch.Generator, n_updates: int
    ) -> None:
        self.hasher, self.network = hasher, network
        self.optimizer = Adam(network.parameters(), hasher.learning_rate_)
        self.generator, self.n_updates = generator, n_updates
        self.bound = L3 if hasher.private else L2 if hasher.supervised else L1
        device = network.W1.device
        self.updates = torch.zeros((), device=device)
        self.sums = torch.zeros(3, device=device)  # loss, divergence, documents

    def __call__(self, batch: Batch) -> None:
        """Go one step up the lower bound."""
        hasher, network, n_docs = self.hasher, self.network, len(batch.present)
        self.updates += 1
        kl_weight = hasher.kl_weight_ * (self.updates / max(hasher.kl_warmup, 1)).clamp(max=1)
        if hasher.schedule == "linear":
            left = 1 - (self.updates - 1) / self.n_updates
            self.optimizer.learning_rate.copy_(hasher.learning_rate_ * left)
        kept = network.kept(n_docs, self.generator)
        noise = network.noise(n_docs, hasher.n_samples, self.generator)
        full = min(1.0, hasher.neighbor_share_ / 0.3)  # places count fully from a share of 0.3 on
        weights = Weights(kl_weight, float(getattr(hasher, "label_weight", 0)), full)
        bound = self.bound(network, batch, network.hidden(batch, kept), weights, noise)
        n = batch.present.sum()
        self.optimizer.forget_gradients()
        (-bound.value * (batch.present / n)).sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        with torch.no_grad():
            loss, kl = ((part * batch.present).sum() for part in (-bound.value, bound.kl))
            self.sums += torch.stack((loss, kl, n))

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


def _means(sums: Tensor) -> tuple[float, float]:
    """Give loss and divergence per document."""
    loss, kl, n = sums.tolist()
    return loss / max(n, 1), kl / max(n, 1)


Runner = Callable[[Epoch], Iterator[float]]


def plain_epochs(step: _Step, documents: Documents, size: int) -> Runner:
    """Run epochs batch by batch on sparse batches, on a CPU."""

    def run(epoch: Epoch) -> Iterator[float]:
        n_batches = -(-len(epoch.known) // size)
        for number, batch in enumerate(sparse_batches(epoch, size), 1):
            step(batch)
            yield number / n_batches

    return run


def graphed_epochs(step: _Step, documents: Documents, size: int) -> Runner:
    """Run epochs on dense batches; on a GPU a step is a recorded graph, replayed for each batch."""
    buffer = Buffer(documents, min(size, documents.n_docs))

    def work() -> None:
        step(buffer.batch)
        buffer.advance()

    replay: Callable[[], None] = work
    if documents.device.type == "cuda":
        next(buffer.fill(in_order(documents)))  # something to record with
        before = step.state()
        replay = record(work, step.generator).replay
        step.restore(*before)

    def run(epoch: Epoch) -> Iterator[float]:
        n_batches, done = -(-len(epoch.known) // buffer.batch_size), 0
        for n in buffer.fill(epoch):
            for _ in range(n):
                replay()
            done += n
            yield done / n_batches

    return run


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
