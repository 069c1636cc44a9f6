"""VDSH beside that of version 0.2: nothing may have become worse.

  git worktree add build/before 41f42713
  python benchmarks/bench_before.py --before build/before/src --jobs 20

Defaults of 8 to 128 bits learn with the code of version 0.2 and with today's, from the same
training and validation documents: VDSH, with --models others too. Precision at 100 on test
documents, means of eight seeds, none of which is in the tables: of three, noise hides much.
"""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from unittest.mock import patch

import numpy as np
from common import run

from vdsh.errors import InputError
from vdsh.hashers import HASHERS
from vdsh.jit import load_kernels
from vdsh.paper.reference import BITS, DATASETS

SEEDS = range(3, 11)


def measure(dataset, given):
    if not given.before:
        raise InputError("--before is missing: it takes the folder `src` of version 0.2.")
    kinds = [("vdsh", 32)] if given.quick else list(product(given.models, BITS))
    seeds = SEEDS[:1] if given.quick else SEEDS
    rows = []
    before, now = (fit_all(dataset, kinds, seeds, given.jobs, code) for code in (given.before, ""))
    for (model, n_bits), *found in zip(kinds, before, now, strict=True):
        old, new = (round(float(np.mean(values)), 4) for values in found)
        error = np.std(np.subtract(*found), ddof=min(1, len(seeds) - 1)) / len(seeds) ** 0.5
        row = {"model": model, "bits": n_bits, "0.2": old, "now": new}
        rows.append(row | {"difference": round(new - old, 4), "error": round(float(error), 4)})
    return {"seeds": list(seeds), "rows": rows}


def fit_all(dataset, kinds, seeds, jobs, source):
    """Fit with the code of a folder, in processes of their own: (n_kinds, n_seeds)."""
    spawn = multiprocessing.get_context("spawn")
    with patch.object(sys, "path", [source, *sys.path] if source else sys.path):  # theirs too
        with ProcessPoolExecutor(jobs, spawn, initializer=load_kernels) as pool:
            asked = [
                [pool.submit(fit, split(dataset, seed), *kind, seed) for kind in kinds]
                for seed in seeds
            ]
            return np.transpose([[each.result() for each in row] for row in asked])


@cache
def split(dataset, seed):
    from vdsh.paper import corpora  # version 0.2, which loads this module too, has none

    return [(part.counts, list(part.labels)) for part in corpora.count(dataset, seed)[:3]]


def fit(data, model, n_bits, seed):
    """Fit a model with the defaults of the code of this process; measure it on test documents."""
    try:
        from vdsh.paper.protocol import evaluate_codes
    except ImportError:  # version 0.2
        from vdsh.evaluation import evaluate_codes
    (train, labels), validation, (test, asked) = data
    hasher = HASHERS[model](n_bits, random_state=seed)
    hasher.fit(train, labels, validation=validation)
    found = evaluate_codes(hasher.transform(test), asked, hasher.transform(train), labels, k=100)
    return found.means["precision@100"]


if __name__ == "__main__":
    run({name: partial(measure, name) for name in DATASETS}, before=str, jobs=2, models=("vdsh",))
