"""Counting what queries find on the device that trains, after each epoch."""

import torch
from torch import Tensor

from vdsh.metrics.ranking import Tally

_AT_A_TIME = 256  # queries


def tally(queries: Tensor, documents: Tensor, relevant: Tensor) -> Tally:
    """Count for each query the documents, and the relevant ones, at each distance.

    Only the counts leave the device: a few numbers for each query.

    Parameters
    ----------
    queries, documents : bool tensor of shape (n, n_bits)
        Their bits.
    relevant : bool tensor of shape (n_queries, n_docs)
    """
    signs = [2 * bits.float() - 1 for bits in (queries, documents)]  # 1 and -1
    n_bits, parts = queries.shape[1], []
    for first in range(0, len(queries), _AT_A_TIME):
        rows = slice(first, first + _AT_A_TIME)
        distance = n_bits - signs[0][rows] @ signs[1].T  # twice the Hamming distance
        place = distance.round().long() + relevant[rows]
        ones = torch.ones((), dtype=torch.int32, device=place.device).expand_as(place)
        counts = torch.zeros(len(place), 2 * n_bits + 2, dtype=torch.int32, device=place.device)
        parts.append(counts.scatter_add_(1, place, ones))
    others, relevant = torch.cat(parts).long().cpu().view(-1, n_bits + 1, 2).unbind(-1)
    return Tally((others + relevant).numpy(), relevant.numpy())
