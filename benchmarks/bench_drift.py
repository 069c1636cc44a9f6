"""Whether `vdsh drift` raises its hand where the world has moved, and only there.

    VDSH_DATA=path/to/data python benchmarks/bench_drift.py [FOLDER-TO-KEEP-MODELS-IN]

Models are fitted as `vdsh fit` does, a tenth held out, but from fewer documents (MOST): it
is the measures that are on trial. It must say yes to documents of a newsgroup
that was left out, and to Reuters' later news, and no to random documents that were not trained
on: 100 draws for four models of four random splits, 400 more with the reference drawn anew.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import save

from vdsh import Model, TextHasher
from vdsh.datasets import find
from vdsh.datasets.base import locate
from vdsh.model.drift import compare
from vdsh.model.health import sample
from vdsh.model.profile import AMONG, look_at, make_profile

SETTINGS = {"device": "cpu"}
MOST = 6_000  # documents to learn from and hold out: a model a minute
RECENT = 1_000  # what `vdsh drift` looks at
SIZES = (100, 300, 1_000)
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)  # of the new group among recent documents
LEFT_OUT = ("sci.space", "rec.autos", "comp.graphics", "talk.politics.guns")
SPLITS = (("20newsgroups", 0), ("20newsgroups", 1), ("reuters", 0), ("reuters", 1))
POOL = 4_000  # unseen documents that draws are of


class Corpus:
    """Texts with their labels, in the order of their dates where the corpus has one."""

    def __init__(self, name: str) -> None:
        source = find(name)
        documents, self.parts, _ = source.read(locate(source, None, quiet=True))
        self.name, self.texts = name, np.array(documents.texts, object)
        self.labels = [label[0] for label in documents.labels]
        self.numbers = np.array([int(re.search(r"\d+$", id)[0]) for id in documents.ids])


class Case:
    """A model with the texts it learned from, those held out, and others it has never seen."""

    def __init__(self, name: str, corpus: Corpus, rows: np.ndarray, folder: Path) -> None:
        order = np.random.RandomState(0).permutation(rows)[:MOST]
        held_out, train = np.split(order, [len(order) // 10])
        self.rows = train
        self.train, self.held_out = (corpus.texts[some].tolist() for some in (train, held_out))
        place, begin = folder / name, time.perf_counter()
        if not place.exists():
            hasher = TextHasher("vdsh", 32, random_state=0, **SETTINGS)
            hasher.fit(self.train, validation=self.held_out, progress=False).save(place)
            print(f"{name}: learned in {time.perf_counter() - begin:.0f} s", flush=True)
        self.model = Model.load(place)
        self.others = self.model.encode([self.train[i] for i in sample(len(self.train), AMONG)])
        self.reference = make_profile(self.model, self.held_out, self.others)
        assert self.model.profile is not None

    def drift(self, texts):
        """Compare texts with the reference."""
        return compare(self.reference, make_profile(self.model, texts, self.others))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch)
        news, reuters = Corpus("20newsgroups"), Corpus("reuters")
        save(
            "drift",
            {
                "left_out": {group: left_out(news, group, folder) for group in LEFT_OUT},
                "by_date": by_date(reuters, folder),
                "random": random_splits({c.name: c for c in (news, reuters)}, folder),
            },
        )


def left_out(corpus: Corpus, group: str, folder: Path) -> dict:
    """Learn without a group, then look at recent documents of which a share is of that group."""
    rng = np.random.RandomState(0)
    is_new = np.array([label == group for label in corpus.labels])
    old = rng.permutation(np.flatnonzero(~is_new))
    unseen, rows = np.split(old, [len(old) // 5])
    case = Case(f"without-{group}", corpus, rows, folder)
    found = {}
    for share in SHARES:
        new = rng.permutation(np.flatnonzero(is_new))[: int(RECENT * share)]
        recent = np.concatenate([new, rng.permutation(unseen)[: RECENT - int(RECENT * share)]])
        found[str(share)] = tell(case.drift(corpus.texts[recent].tolist()))
    return found


def by_date(corpus: Corpus, folder: Path) -> dict:
    """Learn from the published training part, the earlier one; look at what came later."""
    part = np.array(corpus.parts)
    order = np.argsort(corpus.numbers, kind="stable")
    case = Case("by-date", corpus, order[part[order] == "train"], folder)
    later = order[part[order] == "test"]
    found = {"all": tell(case.drift(corpus.texts[later].tolist()))}
    for number, rows in enumerate(np.array_split(later, 3), 1):
        found[f"third {number}"] = tell(case.drift(corpus.texts[rows].tolist()))
    return found


def random_splits(corpora: dict, folder: Path) -> dict:
    """Count alarms where nothing has moved."""
    found = {"alarms": 0, "draws": 0, "models": {}, "redrawn": {}}
    redrawn = {size: [] for size in SIZES}
    for name, seed in SPLITS:
        corpus = corpora[name]
        order = np.random.RandomState(100 + seed).permutation(len(corpus.texts))
        rows, unseen = np.split(order, [int(0.6 * len(order))])
        case = Case(f"random-{name}-{seed}", corpus, rows, folder)
        rng, texts = np.random.RandomState(seed), corpus.texts[unseen[:POOL]].tolist()
        looks = look_at(case.model, texts, case.others)

        def draw(n: int, rng=rng, looks=looks):
            return looks.take(rng.permutation(len(looks.unknown))[:n])

        draws = [compare(case.reference, draw(RECENT).profile()) for _ in range(25)]
        found["models"][f"{name}, split {seed}"] = summary(draws)
        found["alarms"] += sum(draw.drifted for draw in draws)
        found["draws"] += len(draws)
        for number in range(100):
            size = SIZES[number % len(SIZES)]
            both = draw(RECENT + size)
            halves = np.split(np.arange(RECENT + size), [RECENT])
            redrawn[size].append(compare(*(both.take(rows).profile() for rows in halves)))
    found["redrawn"] = {str(size): summary(draws) for size, draws in redrawn.items()}
    return found


def summary(draws: list) -> dict:
    """Say how often there was an alarm, and the largest effect by chance."""
    names = draws[0].measures
    largest = {n: round(max(d.measures[n].effect for d in draws), 3) for n in names}
    return {"draws": len(draws), "alarms": sum(d.drifted for d in draws), "largest": largest}


def tell(drift) -> dict:
    """Keep what is worth keeping, rounded."""
    measures = {
        name: [float(f"{value:.4g}") for value in measure[:4]] + [measure.moved]
        for name, measure in drift.measures.items()
    }
    print(drift.verdict, flush=True)
    return {"drifted": drift.drifted, "documents": drift.documents, "measures": measures}


if __name__ == "__main__":
    main()
