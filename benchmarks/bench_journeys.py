"""How much code a search, a write and a fit pass: functions of ours, and the files they are in.

A profiler notes each function of `src/vdsh` that is called, on any thread of this process. Lambdas,
comprehensions and generators' expressions are left out. It is a thermometer of what a reader has to
hold in mind, and no goal: to merge functions that should be apart would miss the point.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from common import run

import vdsh
from vdsh import Document, TextHasher, open_store
from vdsh.evaluation import measure_quality

SOURCE = str(Path(vdsh.__file__).parent)
# Texts of two topics, enough of them to learn from.
TOPICS = ("moon orbit rocket launch crater", "goal match referee team league")


def called(work: Callable[[], Any]) -> dict[str, int]:
    """Run some work, and count the functions of ours that it calls and the files they are in."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name[0] != "<":
            seen.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {"functions": len(seen), "files": len({file for file, _ in seen})}


def make_texts(n: int) -> list[str]:
    """Make texts, each of one topic and a word of its own."""
    return [f"{TOPICS[i % 2]} {TOPICS[i % 2].split()[i % 5]} word{i % 97}" for i in range(n)]


def journeys(given: Any) -> dict[str, Any]:
    """Follow each journey once."""
    texts = make_texts(given.texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with open_store(path) as store:
            store.upsert(Document(str(i), text) for i, text in enumerate(texts))
            store.learn(method="linear", progress=False)
        with open_store(path) as store:
            found = {
                "first_search": called(lambda: store.search("rocket to the moon")),
                "next_search": called(lambda: store.search("goal of the match")),
                "write": called(lambda: store.upsert([Document("new", "a new rocket")])),
            }
    hasher = TextHasher("linear", 32, random_state=0)
    train = (texts[: -given.texts // 10], None)
    held_out = (texts[-given.texts // 10 :], None)
    found["fit"] = called(lambda: hasher.fit(train[0]))

    def fit_and_measure() -> None:
        fitted = TextHasher("linear", 32, random_state=0).fit(train[0])
        measure_quality(fitted, train, held_out)

    found["fit_and_quality"] = called(fit_and_measure)
    return found


if __name__ == "__main__":
    run(journeys, texts=500)
