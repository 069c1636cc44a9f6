"""Learning on from a model of the first half, beside learning everything from nothing.

    VDSH_DATA=path/to/data python benchmarks/bench_learning_on.py [FOLDER-WITH-MODELS]

The first half is what a model of `bench_drift.py` learned, 5,400 posts of 20 Newsgroups; as many
others come with it. All are learned from nothing in 12 epochs, and on from that model in 4. Time is
that of the processor, for others use the machine too; the two run side by side.
"""

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from bench_drift import SETTINGS, Case, Corpus
from common import save

from vdsh import Model, TextHasher
from vdsh.evaluation import measure_quality
from vdsh.hashers.vdsh.defaults import learning_on
from vdsh.model.changes import count_changes

NAME, TEST = "20newsgroups", 2_000


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch)
        corpus = Corpus(NAME)
        order = np.random.RandomState(100).permutation(len(corpus.texts))  # as bench_drift.py
        rows, unseen = np.split(order, [int(0.6 * len(order))])
        case = Case(f"random-{NAME}-0", corpus, rows, folder)
        test, more = unseen[:TEST], unseen[TEST : TEST + len(case.train)]
        learn = np.concatenate([case.rows, more])
        lots = [(corpus.texts[some].tolist(), [corpus.labels[i] for i in some])
                for some in (learn, test)]  # fmt: skip
        found = {"documents": len(learn), "first half": judge(case.model, case.model, lots)}
        with ProcessPoolExecutor(2) as pool:
            jobs = [pool.submit(work, case.model, case.held_out, lots, on) for on in (True, False)]
            found |= {"learned on": jobs[0].result(), "from nothing": jobs[1].result()}
    save("learning_on", found)


def work(half: Model, held_out: list, lots: list, on: bool) -> dict:
    """Learn all documents, on from the first half or from nothing."""
    settings = SETTINGS | ({"epochs": learning_on(SETTINGS["epochs"])} if on else {})
    begin = time.process_time()
    hasher = TextHasher("vdsh", 32, random_state=0, **settings).fit(
        lots[0][0], validation=held_out, start=half if on else None, progress=False
    )
    seconds = round(time.process_time() - begin, 1)
    return {"cpu_seconds": seconds, **judge(hasher.model_, half, lots)}


def judge(model: Model, half: Model, lots: list) -> dict:
    """Measure precision, and how far the codes are from those of the first half's model."""
    changes = count_changes(half, model, lots[1][0])
    found = {
        "epochs": len(model.learned["history_"]),
        "best_epoch": model.learned["best_epoch_"],
        "terms": len(model.words),
        "precision_at_100": round(measure_quality(model, *lots).values["codes"], 4),
        "codes_changed": round(changes.codes, 4),
        "bits_changed": round(changes.bits, 4),
    }
    print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
