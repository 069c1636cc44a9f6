"""How weights are updated: by Adam, with the average gradients of all processes that train.

The processes are those of a torch.distributed group, or this process alone. Each trains on its part
of every batch and then takes the average of all gradients, so all networks start alike and stay
alike. What needs all documents, as validation does, the first process does for all.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.optim.adam import adam

T = TypeVar("T")


class Processes:
    """The processes that train one network; all methods do nothing for a process alone.

    `rank` is the number of this one, from 0; `size` says how many there are.
    """

    def __init__(self) -> None:
        grouped = dist.is_available() and dist.is_initialized()
        self.rank: int = dist.get_rank() if grouped else 0
        self.size: int = dist.get_world_size() if grouped else 1

    def share(self, order: Tensor) -> Tensor:
        """Return this process's part of the first one's order; all parts are equally long.

        The parts of a batch make up the batch that one process would take. The few documents left
        over, fewer than there are processes, are other ones in each epoch.
        """
        if self.size == 1:
            return order
        dist.broadcast(order, src=0)
        return order[self.rank : len(order) - len(order) % self.size : self.size]

    def average(self, weights: Iterable[Tensor]) -> None:
        """Replace the gradients by their mean over all processes."""
        if self.size == 1:
            return
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])  # one message, not ten
        dist.all_reduce(flat)
        flat /= self.size
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def add(self, sums: Tensor) -> None:
        """Replace numbers by their sums over all processes."""
        if self.size > 1:
            dist.all_reduce(sums)

    def agree(self, decide: Callable[[], T]) -> T:
        """Let the first process decide, and return its answer in all of them."""
        if self.size == 1:
            return decide()
        answer: list[Any] = [decide() if self.rank == 0 else None]
        dist.broadcast_object_list(answer, src=0)
        return answer[0]  # type: ignore[no-any-return]


class Adam:
    """Updates parameters by their gradients; its state lies where they do."""

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        self.parameters: list[Tensor] = list(parameters)
        self.learning_rate = torch.full((), learning_rate, device=self.parameters[0].device)
        self.means = [torch.zeros_like(each) for each in self.parameters]
        self.squares = [torch.zeros_like(each) for each in self.parameters]
        self.steps = [torch.zeros((), device=each.device) for each in self.parameters]

    def forget_gradients(self) -> None:
        """Have the next `backward` begin with none."""
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters; they have gradients."""
        gradients = [each.grad for each in self.parameters if each.grad is not None]
        adam(
            self.parameters, gradients, self.means, self.squares, [], self.steps,
            fused=True, capturable=self.steps[0].is_cuda, amsgrad=False, maximize=False,
            lr=self.learning_rate, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0,
        )  # fmt: skip

    def reset(self) -> None:
        """Begin anew."""
        for each in (*self.means, *self.squares, *self.steps):
            each.zero_()
