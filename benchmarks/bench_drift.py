"""Whether `vdsh drift` raises the alarm where documents have moved, and only there.

    VDSH_DATA=path/to/data python benchmarks/bench_drift.py

Models are fitted as `vdsh fit` does, a tenth held out, but from fewer documents and in few epochs
(SETTINGS): the measures are on trial, not the codes. No alarm may come right after `fit` and
`index` of one file, nor where the store holds a file of which the model learned a random half,
shuffled or in the file's order. It must come for documents of a newsgroup that was left out and
for Reuters' later news, and not for random documents that the model has not seen.
"""

import gzip
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import save

from vdsh import Document, TextHasher, open_store
from vdsh.datasets import find
from vdsh.model.drift import compare, look_at
from vdsh.paper.datasets.base import locate

SEED = 0
SETTINGS = {"epochs": 2, "device": "cpu"}
CORPORA = """20newsgroups reuters snippets tmc ir/cranfield ir/cacm ir/med ir/nfcorpus ir/scifact
    ir/squad-dev ir/trecqa""".split()
FRESH = 2_000  # documents of a corpus, from all over the file
MOST = 6_000  # documents to learn from and hold out, for the other questions
RECENT = 1_000
SIZES = (100, 300, 1_000)
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)  # of the new group among recent documents
LEFT_OUT = ("sci.space", "rec.autos", "comp.graphics", "talk.politics.guns")


def main() -> None:
    warnings.simplefilter("ignore")  # bits of a model that hardly learned
    save(
        "drift",
        {
            "settings": SETTINGS | {"random_state": SEED, "documents": MOST, "fresh": FRESH},
            "fresh": {name: fresh(name) for name in CORPORA},
            "left_out": {group: left_out(group) for group in LEFT_OUT},
            "by_date": by_date(),
            "random": random_draws(),
        },
    )


def read_file(name: str) -> np.ndarray:
    """Read the texts of a file as a person would, in its order."""
    file = "corpus.jsonl.gz" if name.startswith("ir/") else "documents.jsonl.gz"
    with gzip.open(Path(os.environ["VDSH_DATA"], name, file), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = [f"{row.get('title', '')}\n{row['text']}".strip() for row in rows]
    return np.array(texts, object)


def read(name: str) -> tuple[np.ndarray, Any]:
    """Read a corpus of the paper: its texts, and its ids and labels."""
    corpus = find(name).read(locate(find(name), None, quiet=True)).documents
    return np.array(corpus.texts, object), corpus


def learn(texts):
    """Learn as `vdsh fit` does."""
    hasher = TextHasher("vdsh", 32, random_state=SEED, **SETTINGS)
    return hasher.fit(list(texts), progress=False).model_


def fresh(name: str) -> dict:
    """Index the file that a model learned from, then one of which it learned a random half."""
    texts, found = read_file(name), {}
    texts = texts[np.linspace(0, len(texts) - 1, min(FRESH, len(texts))).astype(int)]
    for order in ("in order", "shuffled"):
        rng = np.random.RandomState(SEED)
        if order == "shuffled":
            texts = rng.permutation(texts)
        half = np.sort(rng.permutation(len(texts))[::2])
        for learned, rows in (("all", np.arange(len(texts))), ("half", half)):
            with tempfile.TemporaryDirectory() as folder:
                with open_store(Path(folder, "store"), learn(texts[rows])) as store:
                    store.upsert(Document(f"{i:05}", text) for i, text in enumerate(texts))
                    found[f"{order}, learned from {learned}"] = tell(store.drift())
    return found


def left_out(group: str) -> dict:
    """Learn without a group, then look at documents of which a share is of that group."""
    texts, corpus = read("20newsgroups")
    rng = np.random.RandomState(SEED)
    is_new = np.array([label[0] == group for label in corpus.labels])
    unseen, old = np.split(rng.permutation(np.flatnonzero(~is_new)), [(~is_new).sum() // 5])
    model, found = learn(texts[old[:MOST]]), {}
    for share in SHARES:
        new = rng.permutation(np.flatnonzero(is_new))[: int(RECENT * share)]
        others = rng.permutation(unseen)[: RECENT - int(RECENT * share)]
        found[str(share)] = tell(drift(model, texts[np.concatenate([new, others])]))
    return found


def by_date() -> dict:
    """Learn from the published training part, the earlier one; look at what came later."""
    texts, corpus = read("reuters")
    is_later = np.array([id.startswith("test/") for id in corpus.ids])  # the published test part
    order = np.argsort([int(id.split("/")[-1]) for id in corpus.ids], kind="stable")
    early, later = order[~is_later[order]], order[is_later[order]]
    model = learn(texts[np.random.RandomState(SEED).permutation(early)[:MOST]])
    found = {"all": tell(drift(model, texts[later]))}
    for number, some in enumerate(np.array_split(later, 3), 1):
        found[f"third {number}"] = tell(drift(model, texts[some]))
    return found


def random_draws() -> dict:
    """Count alarms where nothing has moved, also with the held-out documents drawn anew."""
    found, redrawn = {}, {size: [] for size in SIZES}
    for name in ("20newsgroups", "reuters"):
        for seed in range(2):
            rng = np.random.RandomState(100 + seed)
            texts = rng.permutation(read(name)[0])
            rows, unseen = np.split(texts, [int(0.6 * len(texts))])
            model = learn(rows[:MOST])
            looks = look_at(model, unseen[:4_000].tolist(), model.profile.landmarks)
            draws = [
                compare(
                    model.profile.held_out, take(looks, rng.permutation(len(looks.codes))[:1000])
                )
                for _ in range(25)
            ]
            found[f"{name}, split {seed}"] = count(draws)
            for number in range(100):
                size = SIZES[number % len(SIZES)]
                both = rng.permutation(len(looks.codes))[: RECENT + size]
                redrawn[size].append(
                    compare(*(take(looks, rows) for rows in np.split(both, [RECENT])))
                )
    return found | {f"{size} at a time": count(draws) for size, draws in redrawn.items()}


def take(looks, rows):
    """Choose some documents."""
    return type(looks)(*(array[rows] for array in looks))


def drift(model, texts):
    """Compare texts with those that were held out."""
    return compare(model.profile.held_out, look_at(model, list(texts), model.profile.landmarks))


def count(draws: list) -> dict:
    """Say how often there was an alarm, and the largest effect by chance."""
    largest = max(measure.effect for draw in draws for measure in draw.measures.values())
    alarms = sum(draw.drifted for draw in draws)
    return {"draws": len(draws), "alarms": alarms, "largest": round(largest, 3)}


def tell(found) -> dict:
    """Keep what is worth keeping, rounded."""
    print(found.verdict, flush=True)
    effects = {name: round(measure.effect, 3) for name, measure in found.measures.items()}
    moved = [name for name, measure in found.measures.items() if measure.moved]
    return {"drifted": found.drifted, "documents": found.documents, "moved": moved} | effects


if __name__ == "__main__":
    main()
