"""Damaged bytes in the files of a store: no crash, and no wrong answer that `check` calls sound."""

import random
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import mutants
from conftest import toy_corpus
from vdsh import Document, TextHasher, open_store
from vdsh.errors import VdshError

# Texts here are not about words.
pytestmark = pytest.mark.filterwarnings("ignore::vdsh.pipeline.EmptyDocumentWarning")

FEW, MANY = 15, 200  # mutations of each file
QUERIES = ("orbit moon", '"team season" -goal', "lanuch", "goal referee", "title7")


@pytest.fixture(scope="module")
def sound(tmp_path_factory, fitted):
    """A store with something in each of its tables, closed; with its answers."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    texts, labels = toy_corpus(120)
    documents = [
        Document(f"d{i}", text, (label,), {"year": 1900 + i, "title": f"title{i}"})
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    long = [Document(f"long{i}", ". ".join(texts[i:] * 3) + ".") for i in range(5)]
    other = TextHasher("lsh", 16, random_state=1).fit(texts)
    with open_store(folder, other) as store:
        store.upsert(documents[:60])
        store.upsert(documents[60:] + long)
        store.reindex(fitted)  # the model before is kept
        store.delete([f"d{i}" for i in range(20, 30)])
        store.remember("own/", {f"file{i}": f"mark {i}" for i in range(50)})
        store._engine.filters.make(["labels", "year"])
    return folder


def answers(folder):
    """Ask a store for everything that it can tell."""
    found = []
    with open_store(folder, create=False) as store:
        found += [(one.id, one.text, one.labels, one.metadata) for one in store]
        found += [(ids, codes.tolist()) for ids, codes in store.codes()]
        for query in QUERIES:
            found += [(hit.id, hit.score, hit.text) for hit in store.search(query, 10)]
        code = np.array([3, 200], np.uint8)
        found += [(hit.id, hit.distance) for hit in store.search(code, 10)]
        found += [(hit.id, hit.distance) for hit in store.within(code, 6)]
        for where in ({"year": {">": 1990}}, {"label": "space"}, {"year": 1915}):
            found += [store.count(where)]
            found += [hit.id for hit in store.search("moon season", 5, where=where)]
        found += [store.labels(), store.language, store.remembered("own/")]
        found += [sorted(store.info()["fields"]), store.info()["bits"], store.model.fingerprint]
    return found


def problems(folder):
    """Say what is wrong, as `vdsh check` does."""
    try:
        with open_store(folder, create=False) as store:
            return store.check()
    except VdshError as error:
        return [str(error)]


def damaged(data, rng):
    """Change some bytes in place, as a disk does, or in ways that no disk does."""
    if rng.random() < 0.3:
        return mutants.of_bytes(data, rng)
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        place = rng.randrange(len(out))
        out[place] = rng.choice((out[place] ^ 1 << rng.randrange(8), rng.randrange(256)))
    return bytes(out)


@pytest.mark.parametrize(
    "n", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("pattern", ["store.sqlite", "index-*.vdsh"])
def test_no_wrong_answer_of_damaged_bytes_is_called_sound(sound, tmp_path, pattern, n):
    assert problems(sound) == []
    expected = answers(sound)
    (name,) = [file.name for file in sound.glob(pattern)]
    data, noticed = (sound / name).read_bytes(), 0
    for seed in range(n):
        for place in ("asked", "checked"):  # asking may mend what is damaged
            shutil.copytree(sound, tmp_path / place)
            (tmp_path / place / name).write_bytes(damaged(data, random.Random(seed)))
        complaints = problems(tmp_path / "checked")
        noticed += bool(complaints)
        try:
            is_same = answers(tmp_path / "asked") == expected
        except VdshError:
            is_same = False
        assert is_same or complaints, f"seed {seed}"
        shutil.rmtree(tmp_path / "asked")
        shutil.rmtree(tmp_path / "checked")
    if pattern == "store.sqlite":
        assert noticed > n / 4  # what was changed was in use


TABLES = ["documents", "meta", "models", "key_values", "fields", "words", "filters"]


@pytest.mark.parametrize("table", TABLES)
def test_a_changed_value_in_any_table_is_noticed(sound, tmp_path, table):
    """Whatever a column of a row is changed to, be it of another type."""
    rng = random.Random(table)
    for _ in range(6):
        folder = tmp_path / "store"
        shutil.copytree(sound, folder)
        with closing(sqlite3.connect(folder / "store.sqlite")) as base, base:
            rows = base.execute(f"SELECT * FROM {table}").fetchall()
            names = [column[1] for column in base.execute(f"PRAGMA table_info({table})")]
            column = rng.choice([one for one in names if one not in ("row", "segment")])
            old = rng.choice(rows)
            keys = " AND ".join(f"{name} IS ?" for name in names)
            new = {str: "other", bytes: b"other", int: -7}.get(type(old[names.index(column)]), 5)
            base.execute(f"UPDATE {table} SET {column} = ? WHERE {keys}", (new, *old))
            assert base.total_changes == 1
        assert problems(folder), (table, column, old)
        shutil.rmtree(folder)
