"""Training by many processes, each on its part of every batch: those of torchrun, or of Ray.

torchrun --nproc-per-node 2 -m vdsh fit news.jsonl --out news-model
"""

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from vdsh.errors import EngineError, InputError, VdshError, suggest
from vdsh.hashers import HASHERS, VDSH
from vdsh.hashers.base import trainer
from vdsh.model import Model
from vdsh.pipeline import TextHasher
from vdsh.scale.cluster import Machines, cluster, count_workers

_PATIENCE = timedelta(hours=12)  # the others wait while the first process looks for neighbours
RESTARTS = 3  # times that training begins again after a worker died

Texts = tuple[Sequence[str], Sequence[Any] | None]  # with their labels


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


class Lesson(NamedTuple):
    """A model to train and what to train it on."""

    hasher: TextHasher
    train: Texts
    validation: Texts | None = None
    source: str = ""
    vectors: Any = None
    vectors_source: str = ""
    start: Model | None = None

    def fit(self, *, progress: bool = False) -> TextHasher:
        """Train here, with the other processes of a group if this one is in any."""
        others = {name: getattr(self, name) for name in self._fields[2:]}
        # Nothing is sampled: what the lesson has was chosen before.
        return self.hasher.fit(*self.train, **others, sample=None, progress=progress)


def fit_on_ray(lesson: Lesson, machines: Machines) -> TextHasher:
    """Train on a Ray cluster and return the trained model.

    When a worker dies, all begin again from the start. The same seed then gives the same model as
    if nothing had happened, and nothing needs a disk that all machines share.
    """
    check_model(lesson.hasher.model)
    trainer("vdsh.training")  # says what to install where there is no torch
    with cluster(machines.address) as ray, tempfile.TemporaryDirectory(prefix="vdsh-") as folder:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        logging.getLogger("ray.train").setLevel(logging.ERROR)
        gpu = _wants_gpu(ray, lesson.hasher)
        workers = count_workers(ray, machines.workers, "GPU" if gpu else "CPU")
        run = TorchTrainer(
            _work,
            train_loop_config={"lesson": [ray.put(lesson)]},
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpu),
            run_config=RunConfig(
                storage_path=folder, failure_config=FailureConfig(max_failures=RESTARTS)
            ),
        )
        try:
            result: Any = run.fit()
        except (ray.exceptions.RayError, ray.train.TrainingFailedError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise EngineError(
                f"Training on Ray failed, also after {RESTARTS} new starts: {reason}"
            ) from error
    if isinstance(result.return_value, VdshError):
        raise result.return_value
    hasher, warned = result.return_value
    for message, category in warned:
        warnings.warn(message, category, stacklevel=2)
    assert isinstance(hasher, TextHasher)
    return hasher


def _wants_gpu(ray: Any, hasher: TextHasher) -> bool:
    """Tell whether the workers should have a GPU each: where asked for, or where there are any."""
    device = str(hasher.get_params().get("device", "auto"))
    return device.startswith("cuda") or (device == "auto" and "GPU" in ray.cluster_resources())


def _work(config: dict[str, Any]) -> Any:
    """Train as one of the workers; hand back the model and what it was warned of.

    An error of ours would come again at a new start, so it is handed back too, not raised.
    """
    import ray

    (reference,) = config["lesson"]
    lesson: Lesson = ray.get(reference)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            hasher = lesson.fit()
        except VdshError as error:
            return error
    if ray.train.get_context().get_world_rank():
        return None  # all have the same model
    return hasher, [
        (str(each.message), each.category)
        for each in caught
        if issubclass(each.category, UserWarning)
    ]
