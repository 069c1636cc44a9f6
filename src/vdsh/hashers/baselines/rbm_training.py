"""Training of `StackedRBM`: three RBMs one after the other, then the autoencoder they unroll into.

R. Salakhutdinov and G. Hinton, "Semantic Hashing", IJAR 50(7), 2009: section 2 is the pretraining,
section 3 the fine-tuning. Ours are Adam for both, and noise drawn anew for each visit of a document
where the paper keeps one draw per document for the sake of conjugate gradients.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from vdsh.errors import InputError
from vdsh.hashers.base import Examples, Progress, Report
from vdsh.hashers.baselines.rbm import StackedRBM
from vdsh.hashers.vdsh.batches import Batch, DenseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, shuffled
from vdsh.hashers.vdsh.training import choose_device
from vdsh.hashers.vdsh.updates import Adam
from vdsh.model.encoders import LENGTH


def train(
    hasher: StackedRBM, inputs: csr_array, seed: int, progress: Progress | None
) -> dict[str, Any]:
    """Learn from documents of equal length; return what was learned, by attribute name."""
    device = choose_device(hasher.device)
    generator = torch.Generator(device).manual_seed(seed)
    documents = Documents(Examples(inputs, inputs, None), "counts", device)
    on_gpu = device.type == "cuda"
    given = hasher.pretraining_epochs
    pretraining = -(-hasher.epochs // 3) if given is None else given
    history: list[dict[str, Any]] = []

    def run(stage: str, epochs: int, model: nn.Module, descend: Callable[[Batch], Tensor]) -> None:
        """Update a model for some epochs; `descend` sets gradients and returns the mean loss."""
        optimizer = Adam(model.parameters(), hasher.learning_rate)
        for _ in range(epochs):
            losses = []
            epoch = shuffled(documents, 0.0, 0.0, generator)
            for batch in sparse_batches(epoch, hasher.batch_size):
                optimizer.forget_gradients()
                losses.append(descend(dense(batch, documents.n_terms) if on_gpu else batch))
                optimizer.step()
            loss = float(torch.stack(losses).mean())
            if not np.isfinite(loss):
                raise InputError(
                    f"Training diverged: the loss of {stage} is {loss}. Try a smaller "
                    f"learning_rate. Got {hasher.learning_rate}."
                )
            history.append({"stage": stage, "loss": loss})
            if progress:
                progress(Report(len(history), 3 * pretraining + hasher.epochs, 1.0, loss))

    @torch.no_grad()
    def contrast(batch: Batch) -> Tensor:
        """Learn the last RBM from what the ones below it make of the documents."""
        v = _up(batch, rbms[:-1]) if rbms[1:] else dense(batch, documents.n_terms).inputs
        return rbms[-1].contrast(v, generator)

    rbms: list[RBM] = []
    for number, rbm in enumerate(_stack(hasher, inputs, seed), 1):
        rbms.append(rbm.to(device))
        run(f"layer {number}", pretraining, rbm, contrast)
    network = Autoencoder(rbms)

    def tune(batch: Batch) -> Tensor:
        loss = network.loss(batch, hasher.noise, generator)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    run("autoencoder", hasher.epochs, network, tune)
    return network.encoder_arrays() | {"history_": history}


def dense(batch: Batch, n_terms: int) -> DenseBatch:
    """Scatter a batch into a block of shape (B, V); no two entries share a place."""
    if isinstance(batch, DenseBatch):
        return batch
    block = batch.inputs.new_zeros(len(batch.known) * n_terms)
    block = block.scatter_(0, batch.rows * n_terms + batch.columns, batch.inputs)
    block = block.view(-1, n_terms)
    rest = (batch.labels, batch.known, batch.places, batch.present)
    return DenseBatch(block, block, *rest)


class RBM(nn.Module):
    """A restricted Boltzmann machine with binary hidden units; W is (n_visible, n_hidden).

    With a `length` the visible units are word counts with this sum (the constrained Poisson model,
    section 2.1), without it they are binary.
    """

    def __init__(self, W: Tensor, visible_bias: Tensor, length: float | None = None) -> None:
        super().__init__()
        self.W, self.visible_bias = nn.Parameter(W), nn.Parameter(visible_bias)
        self.hidden_bias = nn.Parameter(W.new_zeros(W.shape[1]))
        self.length = length

    def hidden(self, v: Tensor) -> Tensor:
        """Return the chances that hidden units are 1, (B, H)."""
        return torch.sigmoid(v @ self.W + self.hidden_bias)

    def visible(self, h: Tensor) -> Tensor:
        """Return the means of the visible units, (B, V)."""
        inputs = h @ self.W.T + self.visible_bias
        if self.length is None:
            return torch.sigmoid(inputs)
        return self.length * torch.softmax(inputs, -1)

    def contrast(self, v0: Tensor, generator: torch.Generator) -> Tensor:
        """Set the gradients by one step of contrastive divergence; return the squared error.

        The gradients are the negative of data less reconstruction, since optimizers descend.
        """
        p0 = self.hidden(v0)  # (B, H)
        chance = torch.rand(p0.shape, generator=generator, device=p0.device)
        v1 = self.visible((chance < p0).float())  # (B, V)
        p1 = self.hidden(v1)
        n = len(v0)
        self.W.grad = (v1.T @ p1 - v0.T @ p0) / n
        self.visible_bias.grad = (v1 - v0).mean(0)
        self.hidden_bias.grad = (p1 - p0).mean(0)
        return (v1 - v0).square().sum(-1).mean()


def _stack(hasher: StackedRBM, inputs: csr_array, seed: int) -> Iterator[RBM]:
    """Make the RBMs of the two hidden layers and of the code."""
    generator = torch.Generator().manual_seed(seed)
    sums = torch.as_tensor(np.asarray(inputs.sum(axis=0), np.float32)).reshape(-1)
    share = (sums + sums.mean() / len(sums)) / sums.sum().clamp(min=1)
    sizes = (inputs.shape[1], hasher.hidden_size, hasher.hidden_size, hasher.n_bits)
    for layer, (n, m) in enumerate(zip(sizes, sizes[1:], strict=False)):
        W = 0.01 * torch.randn(n, m, generator=generator)
        yield RBM(W, torch.zeros(n)) if layer else RBM(W, share.log(), LENGTH)


def _up(batch: Batch, rbms: list[RBM]) -> Tensor:
    h = torch.sigmoid(batch.project(rbms[0].W) + rbms[0].hidden_bias)
    for rbm in rbms[1:]:
        h = rbm.hidden(h)
    return h


class Autoencoder(nn.Module):
    """RBMs unrolled: up through them to the code, and down again through transposed weights."""

    def __init__(self, rbms: list[RBM]) -> None:
        super().__init__()
        self.W = nn.ParameterList([rbm.W.detach().clone() for rbm in rbms])
        self.b = nn.ParameterList([rbm.hidden_bias.detach().clone() for rbm in rbms])
        self.V = nn.ParameterList([rbm.W.detach().T.contiguous() for rbm in rbms])
        self.c = nn.ParameterList([rbm.visible_bias.detach().clone() for rbm in rbms])

    def code_inputs(self, batch: Batch) -> Tensor:
        """Compute what the code units get, (B, K)."""
        h: Tensor = batch.project(self.W[0]) + self.b[0]
        for W, b in list(zip(self.W, self.b, strict=True))[1:]:
            h = torch.sigmoid(h) @ W + b
        return h

    def loss(self, batch: Batch, noise: float, generator: torch.Generator) -> Tensor:
        """Compute the cross-entropy of words and their multinomial, mean over documents."""
        h = self.code_inputs(batch)
        h = h + noise * torch.randn(h.shape, generator=generator, device=h.device)
        for V, c in list(zip(self.V, self.c, strict=True))[::-1]:
            h = torch.sigmoid(h) @ V + c
        return -batch.log_likelihood(h[None]).mean()

    def encoder_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return W1_, W2_, W3_, b1_, b2_, b3_."""
        named = [(f"{n}{i}_", p) for n in "Wb" for i, p in enumerate(getattr(self, n), 1)]
        return {name: value.detach().cpu().numpy() for name, value in named}
