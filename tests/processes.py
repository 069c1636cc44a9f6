"""Several processes that use one store, and are killed; beside a dict of what each was answered.

Each process writes documents with ids of its own, so what the store must hold of them is known. One
that was killed may have written its last batch or not, but nothing in between.
"""

import multiprocessing
import random
import shutil
import time
import traceback
from pathlib import Path

import numpy as np

from vdsh import Document
from vdsh.errors import InputError, VdshError
from vdsh.store import open_store, restore_store

WORDS = "orbit rocket shuttle launch moon goal match player season team".split()
PROCESSES = 3
ROUNDS = 20  # between two looks at everything
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["__main__", "vdsh.store.engines.sqlite"])
CHANGES = {"upsert": 9, "delete": 3, "search": 4, "reindex": 2, "compact": 1, "back_up": 1}
REMOTE = {name: weight for name, weight in CHANGES.items() if name != "back_up"}


class Processes:
    """Processes that use one store at once.

    `models`: folders of the models it may get. `whole`: whether a batch is written or not, and
    nothing in between; not on Milvus. `faults`: what was not as it should be.
    """

    def __init__(self, place, models, *, seed=0, local=True, whole=True):
        self.place, self.models, self.whole = place, models, whole
        self.rng = random.Random(seed)
        self.choices = CHANGES if local else REMOTE
        self.known = [{} for _ in range(PROCESSES)]
        self.steps = self.kills = self.refused = 0
        self.faults = []
        self.workers = [Worker(place, models[0], 0)]
        self.workers[0].do("search", "moon")  # the store is made by then
        self.workers += [Worker(place, None, i) for i in range(1, PROCESSES)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.kill()

    def run(self, steps):
        """Take so many steps; look at everything now and then, and at the end."""
        n_rounds = 0
        while self.steps < steps and not self.faults:
            self.round()
            n_rounds += 1
            if n_rounds % ROUNDS == 0:
                self.look()
        self.look()

    def round(self):
        """Let each process do something, and sometimes kill one meanwhile."""
        told = [self.choose(i) for i in range(PROCESSES)]
        for worker, (name, *given) in zip(self.workers, told, strict=True):
            worker.tell(name, *given)
        if self.rng.random() < 0.25:
            time.sleep(self.rng.choice([0.003, 0.03, 0.3]) * self.rng.random())
            self.rng.choice(self.workers).kill()
            self.kills += 1
        answers = [worker.answer() for worker in self.workers]
        for number, (name, *given) in enumerate(told):
            self.steps += 1
            if not self.workers[number].process.is_alive():
                self.workers[number] = Worker(self.place, None, number)
            self.note(number, name, given, answers[number])

    def choose(self, number):
        """Choose what a process does next."""
        (name,) = self.rng.choices(list(self.choices), list(self.choices.values()))
        ids = sorted({f"{number}-{self.rng.randrange(40):02}" for _ in range(5)})
        if name == "upsert":
            return name, {id: " ".join(self.rng.choices(WORDS, k=4)) for id in ids}
        if name == "reindex":
            return name, self.rng.choice(self.models), self.rng.random() < 0.5
        return {"delete": (name, ids), "search": (name, self.rng.choice(WORDS))}.get(name, (name,))

    def note(self, number, name, given, answer):
        """Take over what was acknowledged; look what is there where nothing was."""
        after = dict(self.known[number])
        if name == "upsert":
            after |= given[0]
        elif name == "delete":
            after = {id: text for id, text in after.items() if id not in given[0]}
        if answer is None:
            found = self.workers[number].do("held", number)
            either = [self.known[number], after]
            if not isinstance(found, dict) or not self.may_be(found, either):
                self.faults.append(f"{name} was killed: {found} is neither of {either}")
            else:
                self.known[number] = found
        elif isinstance(answer, Refused) and name in ("reindex", "compact"):
            self.refused += 1  # somebody else gives it a model, or did
        elif isinstance(answer, str):
            self.faults.append(f"{name}: {answer}")
        else:
            self.known[number] = after

    def may_be(self, found, either):
        """Say whether this can be what the store holds: one of both, or some of each."""
        if self.whole:
            return found in either
        before, after = either
        return all(found.get(i) in (before.get(i), after.get(i)) for i in {*found, *before, *after})

    def look(self):
        """While nobody writes: all that was acknowledged is there, coded by the store's model."""
        expected = {id: text for known in self.known for id, text in known.items()}
        for worker in self.workers[:2]:
            found = worker.do("everything")
            if found != (expected, 0, []):
                self.faults.append(f"found {found}, expected {expected}")


class Refused(str):
    """Why something was not done, which is no fault."""


class Worker:
    """A process that has the store open, and does what it is told."""

    def __init__(self, place, model, number):
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=obey, args=(place, model, number, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, name, *given):
        self.pipe.send((name, given))

    def answer(self):
        """Return what it answers, a string where that is an error; None where it was killed."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None

    def do(self, name, *given):
        self.tell(name, *given)
        return self.answer()

    def kill(self):
        self.process.kill()
        self.process.join()


def obey(place, model, number, pipe):
    """Do what comes through the pipe, until it ends."""
    store = open_store(place, model)
    while True:
        try:
            name, given = pipe.recv()
        except EOFError:
            return
        try:
            answer = DO[name](store, *given) if name != "back_up" else back_up(store, place, number)
        except InputError as error:
            answer = Refused(error)
        except VdshError as error:
            answer = f"{type(error).__name__}: {error}"
        except Exception:
            answer = traceback.format_exc()
        pipe.send(answer)


def upsert(store, texts):
    return store.upsert(Document(id, text) for id, text in texts.items())


def search(store, word):
    """Search; all hits have codes of one model."""
    hits = store.search(word, 5)
    return len(hits) if len({len(hit.code) for hit in hits}) <= 1 else "codes of two models"


def held(store, number):
    return {one.id: one.text for one in store if one.id.startswith(f"{number}-")}


def everything(store):
    """Return all texts, how many codes are not the model's, and what `check` says."""
    texts, n_wrong = {}, 0
    for documents, codes in store.entries():
        texts |= {one.id: one.text for one in documents}
        right = store.model.encode([one.text for one in documents])
        n_wrong += int((codes != right).any(axis=1).sum()) if len(documents) else 0
    return texts, n_wrong, store.check()


def back_up(store, place, number):
    """Back up and restore; the copy is coded by one model and sound."""
    file, copy = Path(f"{place}.{number}.vdsh"), Path(f"{place}.{number}.copy")
    shutil.rmtree(copy, ignore_errors=True)
    store.back_up(file, force=True)
    with restore_store(file, copy) as restored:
        _, n_wrong, problems = everything(restored)
    return f"{n_wrong} wrong codes, {problems}" if n_wrong or problems else 0


DO = {
    "upsert": upsert,
    "delete": lambda store, ids: store.delete(ids),
    "search": search,
    "reindex": lambda store, model, restart: store.reindex(model, restart=restart) or 0,
    "compact": lambda store: store.compact() or 0,
    "held": held,
    "everything": everything,
}


def save_models(folder):
    """Save three models of 16, 16 and 32 bits; return their folders."""
    from vdsh import TextHasher

    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 5)) for _ in range(60)]
    for i, n_bits in enumerate((16, 16, 32)):
        TextHasher("lsh", n_bits, random_state=i).fit(texts).save(Path(folder, f"model{i}"))
    return [str(Path(folder, f"model{i}")) for i in range(3)]
