"""How weights are updated: by Adam, all of them in one step."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam


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
