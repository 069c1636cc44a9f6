"""An index for filters finds what reading all documents finds, and is made when it is needed."""

import sqlite3
from contextlib import closing

import pytest

from engines import code, codes_of, doc, ids
from vdsh.store import open_store, restore_store
from vdsh.store.engines.postgres import filters as postgres_filters
from vdsh.store.engines.sqlite import filters, snapshot
from vdsh.store.where import matches, parse

pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

LONG = "x" * 150
# One field has values of all kinds; documents without it are in the store too.
MIXED = [1990, 1990.5, -3, 10**400, 1e-30, 0, "1990", "", "a", "a\x00", "a\x00b", LONG + "a",
         LONG + "b", True, False, None, [1990], {"a": 1990}, 2**53 + 1, float(2**53)]  # fmt: skip
WHERES = [
    {"year": 1990},
    {"year": {"in": [1990, "1990", LONG + "b"]}},
    {"year": {"in": [1990, None]}},
    {"year": {">": 0}},
    {"year": {">=": -3, "<": 1990.5}},
    {"year": {">": 1e-31, "<=": 2**53}},
    {"year": {">": "", "<": "a\x00b"}},
    {"year": {">": "a"}},
    {"year": {">": LONG + "a"}},
    {"year": {">": "a", "<": 5}},
    {"year": {">=": None}},
    {"year": True},
    {"year": {"!=": 1990}},
    {"not": {"year": {">": 0}}},
    {"or": [{"year": "a\x00b"}, {"label": "even", "id": {"<": "d2"}}]},
    {"or": [{"year": 1990}, {"not": {"label": "even"}}]},
    {"or": []},
    {"label": "odd", "year": {"<": 1000}},
    {"label": {"in": ["o\x00", "o", 7]}},
    {"label": {"in": ["even\x00x", "none"]}},
    {"id": {"in": ["d1", "d2", "none"]}, "year": {">": 0}},
]


@pytest.fixture
def mixed(request, new_place, fitted):
    """A store on an engine, and its documents: d0 and so on, with codes 0 and so on."""
    documents = [
        doc(f"d{i}", f"rocket part{i}", ("even",) if i % 2 == 0 else ("odd", "o\x00"), year=value)
        for i, value in enumerate(MIXED)
    ]
    documents += [doc("none", "rocket moon")]
    with open_store(new_place(request.param), fitted) as store:
        store.upsert(documents, codes_of(*range(len(documents))))
        yield store, documents


def index_fields(store, *fields):
    """Make indexes, however few documents there are."""
    store._engine.filters.make(fields)


local = pytest.mark.parametrize("mixed", ["local"], indirect=True)


@pytest.mark.parametrize("mixed", ["local", "postgres"], indirect=True)
def test_an_index_changes_no_answer(mixed):
    store, documents = mixed
    index_fields(store, "year", "labels")
    for where in WHERES:
        tree = parse(where, ["year"])
        expected = [document.id for document in documents if matches(tree, document)]
        assert store.count(where) == len(expected), where
        assert ids(store.search(code(0), 99, where=where)) == in_order(expected), where
        assert sorted(ids(store.within(code(0), 16, where=where))) == sorted(expected), where
        assert sorted(ids(store.search("rocket", 99, where=where))) == sorted(expected), where


def in_order(some):
    """Put ids in the order of the distance of their codes from 0, ties by id."""
    number = {id: 20 if id == "none" else int(id[1:]) for id in some}
    return sorted(some, key=lambda id: (number[id].bit_count(), id))


@local
def test_signs_of_a_query_hold_among_few(mixed):
    store, _ = mixed
    index_fields(store, "year")
    where = {"year": {">": 0}}
    assert ids(store.search('"rocket part1"', where=where)) == ["d1"]
    left = ids(store.search("rocket -part1", where=where))
    assert "d0" in left
    assert "d1" not in left
    assert left == ids(store.search('rocket -"rocket part1"', where=where))


@pytest.mark.parametrize("mixed", ["local", "postgres"], indirect=True)
def test_the_first_filter_makes_the_index_where_documents_are_many(mixed, monkeypatch):
    store, _ = mixed
    assert store.count({"year": 1990}) == 1
    assert indexed(store) == set()
    for module in (filters, postgres_filters):
        monkeypatch.setattr(module, "WORTH", 5)
        monkeypatch.setattr(module, "AGAIN", 0, raising=False)
        monkeypatch.setattr(module, "BATCH", 7, raising=False)
    found = store.search(code(0), where={"year": {">": 0}, "not": {"label": "even"}})
    assert indexed(store) == {"year"}
    store.upsert([doc("new", "", ("even",), year=1990)], codes_of(0))
    store.delete(["d0"])
    assert ids(store.search(code(0), where={"year": 1990})) == ["new"]
    for module in (filters, postgres_filters):
        monkeypatch.setattr(module, "MOST", 1)
    assert store.count({"label": "even"}) == 10
    assert indexed(store) == {"year"}
    assert found


def indexed(store):
    """The fields that have an index."""
    engine = store._engine
    if not hasattr(engine, "_database"):
        return engine.filters._known
    with engine._database.reading() as connection:
        return set(filters.usable_fields(connection))


@local
def test_a_folder_that_cannot_be_written_is_filtered_without(mixed, monkeypatch):
    store, _ = mixed
    monkeypatch.setattr(filters, "WORTH", 5)
    monkeypatch.setattr(store._engine._database, "read_only", True)
    assert store.count({"year": {">": 0}}) == 6
    assert indexed(store) == set()


@local
def test_documents_of_an_older_version_are_found(mixed, monkeypatch):
    store, _ = mixed
    index_fields(store, "year")
    with monkeypatch.context() as older:
        older.setattr(filters, "add_entries", lambda *_: None)
        older.setattr(filters, "remove_entries", lambda *_: None)
        store.upsert([doc("new", year=1990)], codes_of(0))
        store.delete(["d0"])
        assert indexed(store) == set()
    store.upsert([doc("newer", year=1990)], codes_of(1))
    assert store.count({"year": 1990}) == 2
    assert indexed(store) == {"year"}  # what is there is brought up to date, few or many


@local
def test_care_keeps_the_index(mixed, tmp_path, fitted):
    store, _ = mixed
    index_fields(store, "year", "labels")
    store.back_up(tmp_path / "backup")
    store.delete([f"d{i}" for i in range(1, 9)])
    store.reindex(fitted)
    store.compact()
    with restore_store(tmp_path / "backup", tmp_path / "restored") as restored:
        assert indexed(store) == indexed(restored) == {"year", "labels"}
        for one in (store, restored):
            one.upsert([doc("new", year=1990)])
            assert sorted(ids(one.search(code(0), where={"year": 1990}))) == ["d0", "new"]
            assert list(one._engine.maintenance.problems()) == []


@local
@pytest.mark.parametrize(
    "damage, complaint",
    [("DELETE FROM filters WHERE row = 1", True), ("DROP TABLE filters", False),
     ("UPDATE filter_fields SET last = 'x'", False)],
)  # fmt: skip
def test_a_damaged_index_is_noticed_and_mended(mixed, damage, complaint):
    store, _ = mixed
    index_fields(store, "year")
    with closing(sqlite3.connect(store._engine._database.file)) as base, base:
        base.execute(damage)
    found = [one for one in store._engine.maintenance.problems() if "index for filters" in one]
    assert bool(found) == complaint
    store.compact()
    store.upsert([doc("new", year=1990)], codes_of(0))
    assert sorted(ids(store.search(code(0), where={"year": 1990}))) == ["d0", "new"]


@local
def test_a_name_that_cannot_have_an_index_is_filtered_without(mixed, monkeypatch):
    store, _ = mixed
    monkeypatch.setattr(filters, "WORTH", 5)
    store.upsert([doc("x", **{'q"': 1})], codes_of(0))
    assert store.count({'q"': 1}) == 1
    assert indexed(store) == set()


@local
def test_filters_that_many_pass_are_answered_by_the_index_too(mixed, monkeypatch):
    store, _ = mixed
    index_fields(store, "year")
    monkeypatch.setattr(snapshot, "FEW", 2)
    monkeypatch.setattr(snapshot, "ONE_BY_ONE", 1)
    for where, n in (({"year": {">": 0}}, 6), ({"year": {">": 0}, "label": "even"}, 3)):
        assert store.count(where) == len(store.search(code(0), 99, where=where)) == n
        assert len(store.search("rocket", 99, where=where)) == n
