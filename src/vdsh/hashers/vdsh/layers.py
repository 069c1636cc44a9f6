"""One layer of the network, x W + b, in the way that suits its device."""

from typing import Any

import torch
from torch import Tensor

from vdsh.recording import Beside


def linear(x: Tensor, W: Tensor, b: Tensor, beside: Beside | None = None) -> Tensor:
    """Compute x W + b, with the last axis of x: (..., H) to (..., K).

    With `beside` the gradients of W and b are computed beside that of x, which the layers below
    wait for; whoever wants them has to join it.
    """
    if beside is None:
        return _product(x, W, b)
    y: Tensor = _Linear.apply(x, W, b, beside)  # type: ignore[no-untyped-call]
    return y


def _product(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Add the biases in passing, but on a GPU to a sum over many nodes, where that is slower."""
    if x.is_cuda and len(W) >= W.shape[1]:
        return x @ W + b
    return torch.addmm(b, x.reshape(-1, len(W)), W).view(*x.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor, beside: Beside) -> Tensor:
        ctx.save_for_backward(x, W)
        ctx.beside = beside
        return _product(x, W, b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, W = ctx.saved_tensors
        with ctx.beside(x, grad):
            rows = grad.reshape(-1, W.shape[1])
            of_W, of_b = x.reshape(-1, len(W)).T @ rows, rows.sum(0)
        return grad @ W.T, of_W, of_b, None
