"""Our Adam does what torch's does."""

import torch
from torch import nn

from vdsh.hashers.vdsh.updates import Adam


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 2), (5,))]


def descend(ours, optimizer, forget, n_steps=5):
    for _ in range(n_steps):
        forget()
        sum((each**4).sum() for each in ours).backward()
        optimizer.step()
    return torch.cat([each.detach().flatten() for each in ours])


def test_steps_are_those_of_torch():
    mine, theirs = parameters(), parameters()
    ours, other = Adam(mine, 0.01), torch.optim.Adam(theirs, 0.01, fused=True)
    expected = descend(theirs, other, other.zero_grad)
    assert torch.equal(descend(mine, ours, ours.forget_gradients), expected)


def test_after_a_reset_it_is_as_new():
    used, fresh = parameters(), parameters()
    optimizer, new = Adam(used, 0.01), Adam(fresh, 0.01)
    descend(used, optimizer, optimizer.forget_gradients)
    optimizer.reset()
    with torch.no_grad():
        for each, start in zip(used, parameters(), strict=True):
            each.copy_(start)
    again = descend(used, optimizer, optimizer.forget_gradients)
    assert torch.equal(again, descend(fresh, new, new.forget_gradients))
