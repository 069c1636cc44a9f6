"""Counting what queries find on the device that trains, after each epoch."""

import torch
from torch import Tensor

from vdsh.metrics.ranking import Tally

_AT_A_TIME = 256  # queries


def count(queries: Tensor, documents: Tensor, relevant: Tensor) -> Tensor:
    """Count for each query the documents that are not and that are relevant, at each distance.

    Parameters
    ----------
    queries, documents : bool tensor of shape (n, n_bits)
        Their bits.
    relevant : bool tensor of shape (n_queries, n_docs)

    Returns
    -------
    int32 tensor of shape (n_queries, n_bits + 1, 2)
        A few numbers for each query: only they have to leave the device.
    """
    signs = [2 * bits.float() - 1 for bits in (queries, documents)]  # 1 and -1
    n_bits, parts = queries.shape[1], []
    for first in range(0, len(queries), _AT_A_TIME):
        rows = slice(first, first + _AT_A_TIME)
        # Twice the Hamming distance is n_bits minus the product of the signs, all whole numbers.
        own = relevant[rows].float() + n_bits
        place = torch.addmm(own, signs[0][rows], signs[1].T, alpha=-1).long()
        ones = torch.ones((), dtype=torch.int32, device=place.device).expand_as(place)
        counts = torch.zeros(len(place), 2 * n_bits + 2, dtype=torch.int32, device=place.device)
        parts.append(counts.scatter_add_(1, place, ones))
    return torch.cat(parts).view(-1, n_bits + 1, 2)


def tally(counts: Tensor) -> Tally:
    """Take counts that were brought to the host."""
    others, relevant = counts.long().unbind(-1)
    return Tally((others + relevant).numpy(), relevant.numpy())
