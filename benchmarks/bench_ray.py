"""Encoding on a Ray cluster of two local nodes against two plain processes, and training in two.

Run: python benchmarks/bench_ray.py [--documents 200000] [--rounds 3] [--seeds 4]

Both encode the same Parquet files to Parquet files; the two processes take half of the files each,
with one thread each, as the workers of the cluster have ("plain"), or with as many as vdsh takes
by itself, which are in each other's way ("plain, all threads").
The start (processes, imports, model; for Ray also its workers, while the cluster is already up) is
measured on files of a few documents, and rates are given with it and without it. Training in two
processes is compared by precision at 100 on held-out documents, some seeds each.
"""

import filecmp
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, VDSH, alternate, run
from ray.cluster_utils import Cluster

from vdsh.datasets import docstrings
from vdsh.documents import Document
from vdsh.pipeline import TextHasher

FILES = 8  # of the corpus, half of them for each process
GROUP = 5_000  # rows in a row group
SETTINGS = ("--model", "vdsh-s", "--epochs", "12", "--set", "hidden_size=500", "--device", "cpu")


def measure(given):
    documents = docstrings.collect(areas=20, each=250)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        result = encoding(documents, given.documents, 1 if given.quick else given.rounds)
        if not given.quick:
            result["precision_at_100"] = quality(documents, given.seeds)
        os.chdir(ROOT)
    return result


def encoding(documents: list[Document], n: int, rounds: int) -> dict[str, Any]:
    texts = [document.text for document in documents]
    TextHasher("vdsh", n_bits=32, random_state=0, epochs=1).fit(texts, progress=False).save("model")
    for name, size in (("small", FILES), ("large", n)):
        for number in range(FILES):
            write(Path(name, str(number % 2), f"{number}.parquet"), texts, size // FILES)
    node = {"num_cpus": 1, "object_store_memory": 200 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    ray = ("--engine", "ray", "--address", cluster.address)
    try:
        seconds = alternate(
            {
                "plain start": lambda: run_all(*halves("small"), threads=1),
                "ray start": lambda: run_all((*encode("small", "c"), *ray)),
                "plain": lambda: run_all(*halves("large"), threads=1),
                "plain, all threads": lambda: run_all(*halves("large")),
                "ray": lambda: run_all((*encode("large", "c"), *ray)),
            },
            rounds,
        )
    finally:
        cluster.shutdown()
    check_same()
    rates = {name: round(n / seconds[name]) for name in ("plain", "ray")}
    working = {name: round(n / (seconds[name] - seconds[f"{name} start"])) for name in rates}
    return {
        "documents": n,
        "rounds": rounds,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "documents_per_second": rates,
        "documents_per_second_without_start": working,
        "ratio": round(rates["ray"] / rates["plain"], 3),
        "ratio_without_start": round(working["ray"] / working["plain"], 3),
        "wanted": 0.8,
    }


def write(path: Path, texts: list[str], size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [texts[i % len(texts)] for i in range(size)]
    table = pa.table({"id": [f"{path.stem}-{i}" for i in range(size)], "text": rows})
    pq.write_table(table, path, row_group_size=GROUP)


def encode(source: str, out: str) -> tuple[str, ...]:
    return (*VDSH, "encode", "model", source, "--out", out, "--force", "--quiet")


def halves(source: str) -> tuple[tuple[str, ...], ...]:
    return encode(f"{source}/0", "a"), encode(f"{source}/1", "b")


def run_all(*commands: tuple[str, ...], threads: int | None = None) -> None:
    """Run commands at once and wait for all."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = dict.fromkeys(names, str(threads)) if threads else {}
    options: dict[str, Any] = {"stderr": subprocess.DEVNULL, "env": os.environ | limits}
    started = [subprocess.Popen(command, **options) for command in commands]
    if any([process.wait() for process in started]):
        raise SystemExit(f"failed: {commands}")


def check_same() -> None:
    """See that both gave the same files; those of the cluster are in the order of the halves."""
    halves = [path for half in ("a", "b") for path in sorted(Path(half).iterdir())]
    for one, other in zip(halves, sorted(Path("c").iterdir()), strict=True):
        assert filecmp.cmp(one, other, shallow=False), (one, other)


def quality(documents: list[Document], seeds: int) -> dict[str, Any]:
    rows = ({"text": document.text, "labels": document.labels} for document in documents)
    Path("docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    two = (*torchrun, "--nproc-per-node", "2", "-m", "vdsh")
    found = {}
    for name, program in (("one process", VDSH), ("two processes", two)):
        values = [precision(program, seed) for seed in range(seeds)]
        found[name] = {"values": values, "mean": round(statistics.mean(values), 4)}
    return found


def precision(program: tuple[str, ...], seed: int) -> float:
    """Train with a seed; return the precision of the best epoch on held-out documents."""
    command = [*program, "fit", "docs.jsonl", "--out", "m", "--force", "--quiet", "--json"]
    command += [*SETTINGS, "--seed", str(seed)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return round(json.loads(result.stdout.splitlines()[-1])["validation"], 4)


if __name__ == "__main__":
    run(measure, documents=200_000, rounds=3, seeds=4)
