"""HammingIndex beside a model that anyone can check: a dict from id to code."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vdsh.codes import pack, unpack
from vdsh.search import HammingIndex

N_BYTES = 3
# Few values, so that codes repeat and distances tie.
codes_bytes = st.lists(st.sampled_from([0, 1, 3, 255]), min_size=N_BYTES, max_size=N_BYTES)
LARGEST = 2**63 - 1
integer_ids = (
    st.integers(-50, 50) | st.integers(-LARGEST - 1, LARGEST) | st.integers(LARGEST - 3, LARGEST)
)
string_ids = st.text(max_size=4)


def as_codes(rows):
    return np.array(rows, np.uint8).reshape(-1, N_BYTES)


def expected_hits(model, query):
    query = np.array(query, np.uint8)
    pairs = [
        (int(np.unpackbits(np.array(code, np.uint8) ^ query).sum()), id_)
        for id_, code in model.items()
    ]
    return sorted(pairs)


def as_pairs(hits):
    return list(zip(hits.distances.tolist(), hits.ids.tolist(), strict=True))


class AtOnce:
    """A thread whose work is done before it has started."""

    def __init__(self, target, args, daemon):
        target(*args)

    def start(self):
        pass

    def join(self):
        pass

    def is_alive(self):
        return False


class IndexMachine(RuleBasedStateMachine):
    """Any sequence of changes leaves an index that answers as the model does."""

    ids = integer_ids

    @initialize(data=st.data())
    def build(self, data):
        self.model = {}
        rows = data.draw(st.dictionaries(self.ids, codes_bytes, max_size=8))
        self.index = HammingIndex(as_codes(list(rows.values())), ids=list(rows) if rows else None)
        self.model.update(rows)
        self.folder = tempfile.TemporaryDirectory()

    @rule(data=st.data())
    def add(self, data):
        rows = data.draw(st.dictionaries(self.ids, codes_bytes, min_size=1, max_size=8))
        rows = {id_: code for id_, code in rows.items() if id_ not in self.model}
        if rows:
            self.index.add(as_codes(list(rows.values())), ids=list(rows))
            self.model.update(rows)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        ids = data.draw(st.lists(st.sampled_from(list(self.model)), unique=True, max_size=5))
        self.index.remove(ids)
        for id_ in ids:
            del self.model[id_]

    @rule(queries=st.lists(codes_bytes, min_size=1, max_size=5), k=st.integers(1, 30))
    def search(self, queries, k):
        ids, distances = self.index.search(as_codes(queries), k=k)
        for q, query in enumerate(queries):
            pairs = list(zip(distances[q].tolist(), ids[q].tolist(), strict=True))
            assert pairs == expected_hits(self.model, query)[:k]

    @rule(query=codes_bytes, radius=st.integers(0, 24))
    def within(self, query, radius):
        found = as_pairs(self.index.within(as_codes(query)[0], radius))
        assert found == [pair for pair in expected_hits(self.model, query) if pair[0] <= radius]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), query=codes_bytes, k=st.integers(1, 30))
    def search_among_some(self, data, query, k):
        chosen = data.draw(st.lists(st.sampled_from(list(self.model)), max_size=8))
        found = as_pairs(self.index.search(as_codes(query)[0], k=k, mask=chosen))
        allowed = {id_: self.model[id_] for id_ in chosen}
        assert found == expected_hits(allowed, query)[:k]

    @rule()
    def save_and_open(self):
        path = Path(self.folder.name) / "index"
        self.index.save(path)
        self.index = HammingIndex.open(path)

    @invariant()
    def has_the_same_ids(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.model)
            assert sorted(self.index.ids.tolist()) == sorted(self.model)

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()


class StringIndexMachine(IndexMachine):
    ids = string_ids


class EagerMachine(IndexMachine):
    """Few codes take the paths of many: grouping, tables, compaction, masks copied out."""

    ids = integer_ids
    thresholds = {
        "partition.SMALL": 3,
        "rows.SMALL_TAIL": 2,
        "rows.FEW_ALLOWED": 2,
        "index.WORTH_COMPACTING": 3,
        "scan.WORTH_A_THREAD": 2,
        "id_kinds.FEW": 2,
        "id_kinds.GAP": 4,
        "probing.LOOK_UP": 0,
        "probing.LOOK_UP_ALL": 0,
        "probing.KEEP": 0,
        "probing.BUILD": 0,
        "probing.Thread": AtOnce,
        "tables.FULL": 0,
        "tables.NARROWEST": 1,
        "index_file.NARROWEST": 1,
        "probing.shared_scan_time": lambda *_: np.inf,
    }

    def __init__(self):
        super().__init__()
        self.patches = [
            mock.patch(f"vdsh.search.{name}", value) for name, value in self.thresholds.items()
        ]
        for patch in self.patches:
            patch.start()

    def teardown(self):
        super().teardown()
        for patch in self.patches:
            patch.stop()


class EagerStringMachine(EagerMachine):
    ids = string_ids


class PlainMachine(EagerStringMachine):
    """numpy answers, as in a process that has not loaded the kernels."""

    never = staticmethod(lambda seconds: False)
    thresholds = EagerMachine.thresholds | {"rows.compiled": never}


SETTINGS = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestIntegerIds = IndexMachine.TestCase
TestIntegerIds.settings = SETTINGS
TestStringIds = StringIndexMachine.TestCase
TestStringIds.settings = SETTINGS
TestEager = EagerMachine.TestCase
TestEager.settings = SETTINGS
TestEagerStrings = EagerStringMachine.TestCase
TestEagerStrings.settings = SETTINGS
TestPlain = PlainMachine.TestCase
TestPlain.settings = SETTINGS


@settings(max_examples=40, deadline=None)
@given(
    n_bytes=st.sampled_from([1, 2, 4, 8, 16, 31, 32, 40]),
    n=st.integers(0, 2500),
    n_distinct=st.integers(1, 2500),
    k=st.integers(1, 400),
    threads=st.integers(1, 3),
    shuffled=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_search_agrees_with_sorting_everything(n_bytes, n, n_distinct, k, threads, shuffled, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (n_distinct, n_bytes), dtype=np.uint8)
    codes = codes[rng.integers(0, n_distinct, n)]
    ids = rng.permutation(n) if shuffled else np.arange(n)
    queries = rng.integers(0, 256, (int(rng.integers(1, 40)), n_bytes), dtype=np.uint8)
    hits = HammingIndex(codes, ids=ids, threads=threads).search(queries, k=k)
    for query, found, distances in zip(queries, *hits, strict=True):
        truth = unpack(codes ^ query).sum(axis=1)
        order = np.lexsort((ids, truth))[:k]
        assert np.array_equal(found, ids[order])
        assert np.array_equal(distances, truth[order])


@given(st.lists(st.lists(st.booleans(), min_size=16, max_size=16), min_size=1, max_size=20))
def test_every_code_finds_itself_first(bits):
    codes = pack(np.array(bits))
    ids, distances = HammingIndex(codes).search(codes, k=1)
    assert not distances.any()
    assert np.array_equal(codes[ids[:, 0]], codes)
