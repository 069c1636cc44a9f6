"""Work of a GPU as a recorded graph: replayed, it waits for the host once, not at every step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def record(
    work: Callable[[], T], *, times: int = 1, generator: torch.Generator | None = None
) -> tuple[torch.cuda.CUDAGraph, T]:
    """Record `work` on the current GPU; what it returned then is what a replay fills again.

    It is done `times` before, as what compiles or allocates for good may not be recorded. It must
    not wait for the device. Random numbers come from `generator`, if any. Each record has a stream
    of its own, and with it room for matrix products: two may be replayed beside one another.
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


class Beside:
    """A second stream of a GPU, for work that need not be waited for at once.

    On a CPU one thing is done after the other.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @contextmanager
    def __call__(self, *read: Tensor) -> Iterator[None]:
        """Do what is in the block, when all before it is done, beside what follows it.

        `read`: what it reads that nobody else may keep until `join`.
        """
        stream = self._stream
        if stream is None:
            yield
            return
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        with torch.cuda.stream(stream):
            yield
        for tensor in read:
            tensor.record_stream(stream)

    def join(self) -> None:
        """Have what follows wait for it."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)


def bring(tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
    """Begin to copy tensors to the host; what it returns waits for them, and for nothing after."""
    copies = [torch.empty_like(one, device="cpu", pin_memory=one.is_cuda) for one in tensors]
    for copy, one in zip(copies, tensors, strict=True):
        copy.copy_(one, non_blocking=True)
    done = [torch.cuda.current_stream(one.device).record_event() for one in tensors if one.is_cuda]

    def wait() -> list[Tensor]:
        for event in done[-1:]:
            event.synchronize()
        return copies

    return wait
