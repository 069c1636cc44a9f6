"""The search for one query as a recorded graph: the GPU then waits for the host once, not per step.

A search for one query is a dozen short steps before the one that reads all codes. Asked for one by
one they take the host longer than the GPU needs for them.
"""

import threading
from collections.abc import Callable

import torch
from torch import Tensor

from vdsh.codes import Codes
from vdsh.recording import record
from vdsh.search.gpu.layout import Queries, to_words

Search = Callable[[Queries], tuple[Tensor, Tensor]]


class Replay:
    """The k nearest of one query, as steps on a GPU that were recorded once.

    Parameters
    ----------
    search : callable
        Takes a query on the device and returns what is nearest, packed, of shape (1, k), and how
        many codes were within the last bound, of shape (1,). It must not wait for the device.
    query : ndarray of uint8 of shape (1, n_bytes)
        Any.
    kept : int
        What a scan keeps; the answer holds only where no more were found.
    device : torch.device
    """

    def __init__(self, search: Search, query: Codes, kept: int, device: torch.device) -> None:
        self.kept, self._lock = kept, threading.Lock()
        self._words = to_words(query, device)
        asked = Queries(self._words)

        def find() -> Tensor:
            nearest, counts = search(asked)
            return torch.cat([nearest[0], counts.long()])

        with torch.cuda.device(device):
            self._graph, self._found = record(find)

    def __call__(self, query: Codes) -> Tensor | None:
        """Return the nearest, packed, of shape (1, k), or None where too many are as near."""
        with self._lock:
            self._words.copy_(to_words(query, torch.device("cpu")))
            self._graph.replay()
            found = self._found.cpu()
        return None if int(found[-1]) > self.kept else found[None, :-1]
