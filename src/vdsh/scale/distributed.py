"""Training by the processes that torchrun started, each on its part of every batch.

torchrun --nproc-per-node 2 -m vdsh fit news.jsonl --out news-model
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from vdsh.errors import InputError, suggest
from vdsh.hashers import HASHERS, VDSH
from vdsh.hashers.base import trainer

_PATIENCE = timedelta(hours=12)  # the others wait while the first process looks for neighbours


def check_model(model: str) -> None:
    """Raise for a model that several processes cannot train together."""
    known = [name for name, kind in HASHERS.items() if issubclass(kind, VDSH)]
    if model not in known:
        raise InputError(f"Only one process can train '{model}'. {suggest('', known)}")


@contextmanager
def launched(model: str, docs: str) -> Iterator[bool]:
    """Join the other processes, if torchrun started this one; gives whether this is the first.

    The first process alone shows progress, warns and writes the model. Each process takes a GPU
    of its own where its machine has enough of them.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield True
        return
    check_model(model)
    if docs == "-":
        raise InputError("Several processes cannot share standard input. Give a file.")
    trainer("vdsh.training")  # says what to install where there is no torch
    import torch
    from torch import distributed

    place, beside = (int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    own_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= beside
    if own_gpu:
        torch.cuda.set_device(place)
    distributed.init_process_group("nccl" if own_gpu else "gloo", timeout=_PATIENCE)
    first = distributed.get_rank() == 0
    try:
        with warnings.catch_warnings():
            if not first:
                warnings.simplefilter("ignore")
            yield first
    finally:
        distributed.destroy_process_group()
