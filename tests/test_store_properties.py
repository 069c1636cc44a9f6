"""A store beside a model that anyone can check: a dict from id to document and code."""

import os
import random
import sqlite3
import threading
import time
import uuid
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from conftest import SPACE, SPORT, toy_corpus
from engines import ENGINES
from slow_words import assert_best, chances_of, is_stop_word, parts_of, slow_scores, stem
from vdsh import Document, TextHasher
from vdsh.errors import InputError
from vdsh.store import open_store, restore_store
from vdsh.store.engines.sqlite import words as words_module
from vdsh.text.tokenizer import tokenize
from vdsh.words import read_query

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

ids = st.sampled_from(["a", "b", "B", "1", "01", "10", "é", "a\u3000", "a\u3000b", "'", " ", "zz"])
codes = st.tuples(st.sampled_from([0, 1, 3, 255]), st.sampled_from([0, 1, 128, 255]))
names = st.sampled_from(["year", "lang", "a.b", 'q"', "n\x00", "ключ", "\\"])
labels = st.sampled_from(["space", "sport", ",", "l\x00", "é"])
texts = st.sampled_from(["", "en", "de", "en\x00", '"', "é", "1990", "true"])
numbers = st.integers(-3, 3) | st.sampled_from([1990, 1990.5, 2.0, 2**53 + 1, -0.0, 2**63])
scalars = texts | numbers | st.booleans() | st.none()
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts, scalars, max_size=1)
documents = st.builds(
    Document,
    ids,
    st.sampled_from(["", "orbit moon", "text\x00"]),
    st.none() | st.lists(labels, max_size=3).map(tuple),
    st.dictionaries(names, values, max_size=3),
)
tests = st.dictionaries(
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), scalars, min_size=1, max_size=2
) | st.fixed_dictionaries({"in": st.lists(scalars, max_size=3)})
label_tests = st.fixed_dictionaries({"in": st.lists(labels | scalars, max_size=3)})
label_tests |= st.fixed_dictionaries({"!=": labels})
fields = (
    st.dictionaries(names, scalars | tests, min_size=1, max_size=2)
    | st.dictionaries(st.just("id"), ids | tests, max_size=1)
    | st.dictionaries(st.sampled_from(["label", "labels"]), labels | label_tests, max_size=1)
)
filters = st.recursive(
    fields,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=4,
)


def kind(value):
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def compares(have, operator, operand):
    """Compare two values as the documentation says."""
    if operator == "in":
        return any(compares(have, "=", one) for one in operand)
    if operator == "!=":
        return not compares(have, "=", operand)
    if kind(have) is not kind(operand) or not isinstance(have, str | int | float | None):
        return False
    if operator == "=":
        return have == operand
    if have is None:
        return False
    below, equal = have < operand, have == operand
    return {"<": below, "<=": below or equal, ">": not (below or equal), ">=": not below}[operator]


def matches(document, where):
    for key, wanted in where.items():
        if key in ("and", "or"):
            passed = (all if key == "and" else any)([matches(document, part) for part in wanted])
        elif key == "not":
            passed = not matches(document, wanted)
        else:
            wanted = wanted if isinstance(wanted, dict) else {"=": wanted}
            passed = all(field_passes(document, key, *test) for test in wanted.items())
        if not passed:
            return False
    return True


def field_passes(document, name, operator, operand):
    if name in ("label", "labels"):
        if document.labels is None:
            return False
        if operator == "!=":
            return operand not in document.labels
        wanted = operand if operator == "in" else [operand]
        return any(isinstance(one, str) and one in document.labels for one in wanted)
    if name == "id":
        return compares(document.id, operator, operand)
    return name in document.metadata and compares(document.metadata[name], operator, operand)


def names_in(where):
    for key, wanted in where.items():
        if key in ("and", "or"):
            for part in wanted:
                yield from names_in(part)
        elif key == "not":
            yield from names_in(wanted)
        else:
            yield key


class StoreMachine(RuleBasedStateMachine):
    """Any sequence of changes leaves a store that answers as the model does."""

    model_folder: Path
    engine: str

    @initialize()
    def create(self):
        self.path = self.new_place(self.engine)
        self.store = open_store(self.path, self.model_folder, language="english")
        self.reader = open_store(self.path)
        self.model = {}
        self.known = {"id", "label", "labels"}

    @rule(batch=st.lists(st.tuples(documents, codes), max_size=6))
    def upsert(self, batch):
        given = np.array([code for _, code in batch], np.uint8).reshape(-1, 2)
        assert self.store.upsert([document for document, _ in batch], given) == len(batch)
        for document, code in batch:
            self.model[document.id] = (document, code)
            self.known |= set(document.metadata)

    @rule(gone=st.lists(ids, max_size=4))
    def delete(self, gone):
        assert self.store.delete(gone) == len({id for id in gone if id in self.model})
        for id in gone:
            self.model.pop(id, None)

    @rule(query=codes, k=st.integers(1, 14), where=st.none() | filters)
    def search(self, query, k, where):
        self.check(where, query, 16, lambda store: store.search(as_code(query), k, where=where), k)

    @rule(query=codes, radius=st.integers(0, 16), where=st.none() | filters)
    def within(self, query, radius, where):
        find = lambda store: store.within(as_code(query), radius, where=where)  # noqa: E731
        self.check(where, query, radius, find)

    def check(self, where, query, radius, find, k=None):
        """Compare the answers of the writer and of another reader with the model's."""
        for store in (self.store, self.reader):
            if not set(names_in(where or {})) <= self.known:
                with pytest.raises(InputError, match="No document has the field"):
                    find(store)
                continue
            passing = [(d, c) for d, c in self.model.values() if matches(d, where or {})]
            pairs = [(distance(code, query), document) for document, code in passing]
            expected = sorted((n, d.id) for n, d in pairs if n <= radius)[:k]
            try:
                hits = find(store)
            except InputError as error:  # of a kind that the field never has, #31 A7
                assert "No document can match" in str(error) and not passing
                continue
            assert [(hit.distance, hit.id) for hit in hits] == expected
            assert store.count(where) == len(passing)
            for hit in hits:
                document = self.model[hit.id][0]
                assert Document(hit.id, hit.text, hit.labels, hit.metadata) == document

    @precondition(lambda self: self.engine != "milvus-lite")
    @rule(field=names | st.just("label"))
    def index_a_field(self, field):
        if not (self.engine == "local" and field in ('q"', "n\x00", "\\")):
            self.store._engine.filters.make(["labels" if field == "label" else field])

    @rule()
    def reopen(self):
        maintenance = self.store._engine.maintenance
        assert maintenance is None or list(maintenance.problems()) == []
        self.store.close()
        self.store = open_store(self.path)

    @precondition(lambda self: any(Path(self.path).glob("index-*")))
    @rule(keep=st.integers(0, 400))
    def damage_the_index_file(self, keep):
        for file in Path(self.path).glob("index-*"):
            whole = file.read_bytes()
            file.unlink()  # it may be mapped: write to a new file
            file.write_bytes(whole[:keep])
        self.reopen()

    @invariant()
    def holds_what_the_model_holds(self):
        held = [document for batch in self.reader.documents(4) for document in batch]
        assert held == [self.model[id][0] for id in sorted(self.model)]
        pairs = []
        for some, their_codes in self.store.codes(5):
            pairs += zip(some, map(tuple, their_codes.tolist()), strict=True)
        assert pairs == [(id, self.model[id][1]) for id in sorted(self.model)]

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.reader.close()


def as_code(pair):
    return np.array(pair, np.uint8)


def distance(one, other):
    return sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_any_sequence_of_changes_agrees_with_a_dict(engine, new_place, model_folder):
    class Machine(StoreMachine):
        pass

    Machine.model_folder, Machine.engine = model_folder, engine
    Machine.new_place = staticmethod(new_place)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=60 if engine == "local" else 20,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# -- words -----------------------------------------------------------------------------------------

WORDS = "moon orbit orbiting rocket goal über 密码学 part7 x-ray 3.8 theMoon the of"
words = st.sampled_from([*WORDS.split(), "🚀"])
many_words = st.lists(words, max_size=6).map(" ".join)
places = st.sampled_from([f"{i:02}" for i in range(30)])
worded = st.builds(
    Document, places, many_words, st.none(), st.fixed_dictionaries({"n": st.integers(0, 2)})
)
queries = (
    many_words
    | st.tuples(many_words, words, many_words).map(lambda t: f'{t[0]} "{t[1]} {t[2]}"')
    | st.tuples(many_words, words).map(lambda t: f"{t[0]} -{t[1]}")
    | st.tuples(many_words, words, words).map(lambda t: f'{t[0]} -"{t[1]} {t[2]}"')
)
BREAK = {
    "no state": ["DELETE FROM meta WHERE key = 'words'"],
    "cut": ["UPDATE words SET data = substr(data, 1, 30)"],
    "lost": ["DELETE FROM words"],
    "pending": ["UPDATE meta SET value = '1 9' WHERE key = 'words'"],
}


class WordsMachine(RuleBasedStateMachine):
    """Any sequence of changes leaves a store that ranks by words and codes as the rule says."""

    model_folder: Path

    @initialize()
    def create(self):
        self.path = Path(self.new_place("local"))
        self.store = open_store(self.path, self.model_folder, language="english")
        self.reader = open_store(self.path)
        self.model = {}

    @rule(batch=st.lists(st.tuples(worded, codes), max_size=25))
    def upsert(self, batch):
        given = np.array([code for _, code in batch], np.uint8).reshape(-1, 2)
        self.store.upsert([document for document, _ in batch], given)
        self.model |= {document.id: (document, code) for document, code in batch}

    @rule(one=worded, code=codes, times=st.integers(1, 12))
    def upsert_one_by_one(self, one, code, times):
        for _ in range(times):
            self.upsert([(one, code)])

    @rule(gone=st.lists(places, max_size=20))
    def delete(self, gone):
        self.reader.delete(gone)
        self.model = {id: pair for id, pair in self.model.items() if id not in gone}

    @rule()
    def reopen(self):
        self.store.close()
        self.reader.close()
        self.store, self.reader = open_store(self.path), open_store(self.path)

    @precondition(lambda self: self.model)
    @rule()
    def index_a_field(self):
        self.store._engine.filters.make(["n"])

    @rule(how=st.sampled_from(sorted(BREAK)))
    def damage_the_word_index(self, how):
        self.reopen()
        with closing(sqlite3.connect(self.path / "store.sqlite")) as connection, connection:
            for statement in BREAK[how]:
                with suppress(sqlite3.OperationalError):  # twice, with nothing to mend it between
                    connection.execute(statement)

    @rule(query=queries, k=st.integers(1, 40), n=st.none() | st.integers(0, 2))
    def search(self, query, k, n):
        where = None if n is None or not self.model else {"n": n}
        read, known = read_query(query), self.plain()
        passes = lambda id: where is None or self.model[id][0].metadata["n"] == n  # noqa: E731
        chances = chances_of(self.store.model, read.text)
        spoken = self.store.language
        expected = slow_scores(known, read, chances, passes, spoken)
        wanted = {stem(word, spoken) for word in read.words if not is_stop_word(word, spoken)}
        for store in (self.store, self.reader):
            hits = store.search(query, k, where=where)
            assert_best(hits, expected, k)
            for hit in hits:
                document, code = self.model[hit.id]
                assert (hit.text, bytes.fromhex(hit.code)) == (document.text, bytes(code))
                having = dict.fromkeys(tokenize(document.text, shortest=1))
                # The rarest comes first, which `test_identifiers` looks at.
                assert set(hit.words) == {w for w in having if stem(w, spoken) in wanted}

    @rule(query=queries)
    def history_does_not_matter(self, query):
        place = self.new_place("local")
        with open_store(place, self.model_folder, language="english") as other:
            documents = [self.model[id][0] for id in sorted(self.model)]
            other.upsert(documents, np.array([self.model[d.id][1] for d in documents], np.uint8)
                         .reshape(-1, 2))  # fmt: skip
            expected = [(hit.id, hit.score) for hit in other.search(query, 40)]
        found = [(hit.id, hit.score) for hit in self.store.search(query, 40)]
        assert found == [(id, pytest.approx(score, abs=1e-12)) for id, score in expected]

    @rule()
    def words_and_codes_find_the_same_documents(self):
        by_code = {hit.id for hit in self.reader.within(np.zeros(2, np.uint8), 16)}
        self.reader.search("moon")
        with closing(sqlite3.connect(self.path / "store.sqlite")) as connection:
            index = words_module.Words().showing(connection)
            rows = dict(connection.execute("SELECT row, id FROM documents"))
            there = {rows[row] for row in index.having([]).tolist()}
            assert there == by_code == set(self.model)
            for word in ("moon", "über", "密码"):
                having = {id for id, (d, _) in self.model.items() if word in words_of(d.text)}
                assert {rows[row] for row in index.having([word]).tolist()} == having

    def plain(self):
        return {id: (document.text, code) for id, (document, code) in self.model.items()}

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.reader.close()


def words_of(text):
    tokens, pieces, _ = parts_of(text)
    return {*tokens, *(piece for _, piece in pieces)}


@pytest.mark.parametrize("most", [16, 65_536])
def test_any_sequence_of_changes_is_ranked_by_the_rule(new_place, model_folder, monkeypatch, most):
    monkeypatch.setattr(words_module, "MOST", most)  # documents of a piece
    monkeypatch.setattr(words_module, "JOINED", 3)
    monkeypatch.setattr(words_module, "BATCH", 5)

    class Machine(WordsMachine):
        pass

    Machine.model_folder, Machine.new_place = model_folder, staticmethod(new_place)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# -- several threads and handles, several models ---------------------------------------------------

STEPS = int(os.environ.get("VDSH_STEPS", "240"))  # of all examples together; a bench takes 10,000
WRITERS = 2


@pytest.fixture(scope="module")
def three_models():
    """Models of 16, 16 and 32 bits: what differs in length is noticed sooner."""
    corpus = toy_corpus()[0]
    return [
        TextHasher("lsh", n_bits, random_state=seed).fit(corpus)
        for n_bits, seed in ((16, 0), (16, 1), (32, 2))
    ]


class SharedMachine(RuleBasedStateMachine):
    """Threads write through one handle all the time, whatever else is done with the store (#31).

    Each thread has ids of its own, so it knows what the store has to hold of them.
    """

    three_models: list
    engine: str

    @initialize()
    def create(self):
        self.path = self.new_place(self.engine)
        self.store = open_store(self.path, self.three_models[0])
        self.reader = open_store(self.path)
        self.known = [{} for _ in range(WRITERS)]
        self.problems, self.stop, self.may_write = [], threading.Event(), threading.Event()
        self.may_write.set()
        self.idle = [threading.Event() for _ in range(WRITERS)]
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, number):
        rng = random.Random(number)
        try:
            while not self.stop.is_set():
                if self.may_write.is_set():
                    self.change(self.known[number], number, rng)
                    time.sleep(0.005)
                else:
                    self.idle[number].set()
                    self.may_write.wait(0.01)
        except BaseException as error:
            self.problems.append(error)

    def change(self, known, number, rng):
        ids = sorted({f"{number}-{rng.randrange(30):02}" for _ in range(4)})
        if rng.random() < 0.25:
            assert self.store.delete(ids) == len(known.keys() & ids)
            for id in ids:
                known.pop(id, None)
        else:
            texts = [" ".join(rng.choices(SPACE + SPORT, k=4)) for _ in ids]
            documents = [Document(id, text) for id, text in zip(ids, texts, strict=True)]
            self.store.upsert(documents)
            known |= {document.id: document for document in documents}

    @rule(which=st.integers(0, 2), through=st.booleans())
    def reindex(self, which, through):
        (self.store if through else self.reader).reindex(self.three_models[which])

    @rule(rank=st.sampled_from(["relevance", "distance"]), word=st.sampled_from(SPACE + SPORT))
    def search(self, rank, word):
        for store in (self.store, self.reader):
            assert {len(hit.code) for hit in store.search(word, 5, rank=rank)} <= {4, 8}

    @rule()
    def compact(self):
        self.reader.compact()

    @precondition(lambda self: self.engine == "local")
    @rule()
    def back_up_and_restore(self):
        file = Path(f"{self.path}.vdsh")
        self.reader.back_up(file, force=True)
        with restore_store(file, f"{self.path}-{uuid.uuid4().hex}") as copy:
            self.check_codes(copy)

    @rule()
    def reopen_the_reader(self):
        self.reader.close()
        self.reader = open_store(self.path)

    @rule()
    def look_at_everything(self):
        """Nobody writes for a moment: the store holds what was acknowledged, coded by its model."""
        self.may_write.clear()
        for idle in self.idle:
            idle.clear()
        for idle in self.idle:
            while not idle.wait(0.1) and not self.problems:
                pass
        assert not self.problems
        expected = {id: document for known in self.known for id, document in known.items()}
        for store in (self.store, self.reader):
            assert {document.id: document for document in store} == expected
            self.check_codes(store)
        assert self.reader.check() == []
        self.may_write.set()

    def check_codes(self, store):
        for some, given in store.entries():
            assert np.array_equal(given, store.model.encode([document.text for document in some]))

    def teardown(self):
        if not hasattr(self, "store"):
            return
        try:
            self.look_at_everything()
        finally:
            self.stop.set()
            for thread in self.threads:
                thread.join()
            self.store.close()
            self.reader.close()


@pytest.mark.parametrize("engine", ["local", "milvus-lite", "postgres"])
def test_threads_and_handles_of_one_store_keep_one_model(engine, new_place, three_models):
    class Machine(SharedMachine):
        pass

    Machine.three_models, Machine.engine = three_models, engine
    Machine.new_place = staticmethod(new_place)
    steps = STEPS if engine == "local" else STEPS // 6
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=max(1, steps // 20),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # threads do nothing twice alike
            database=None,
        ),
    )
