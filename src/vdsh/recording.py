"""Work of a GPU as a recorded graph: replayed, it waits for the host once, not at every step."""

from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar("T")


def record(
    work: Callable[[], T], *, times: int = 1, generator: torch.Generator | None = None
) -> tuple[torch.cuda.CUDAGraph, T]:
    """Record `work` on the current GPU; what it returned then is what a replay fills again.

    It is done `times` before, as what compiles or allocates for good may not be recorded. It must
    not wait for the device. Random numbers come from `generator`, if any. Each record has a stream
    of its own, and with it room for matrix products: torch's one stream for all would have two
    graphs share it.
    """
    here = torch.cuda.current_stream()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        for _ in range(times):
            work()
    here.wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        result = work()
    return graph, result
