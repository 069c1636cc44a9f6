"""The k nearest by tables: the same answers as by a slow search, whatever is asked or changed."""

import numpy as np
import pytest

from vdsh.errors import FolderError, InputError
from vdsh.jit import load_kernels
from vdsh.search import HammingIndex, RowIndex, probing
from vdsh.search.index_file import map_arrays, write_arrays
from vdsh.search.tables import table_shape

N = 20_000


@pytest.fixture(autouse=True)
def kernels():
    load_kernels()


@pytest.fixture
def at_once(monkeypatch):
    """Build tables at the first search, however few codes there are, and wait for them."""
    for name in "LOOK_UP", "LOOK_UP_ALL", "KEEP", "BUILD":
        monkeypatch.setattr(f"vdsh.search.probing.{name}", 0)
    start = probing.Thread.start
    monkeypatch.setattr(probing.Thread, "start", lambda thread: (start(thread), thread.join()))


def make_codes(kind, n_bytes, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (N, n_bytes), dtype=np.uint8)
    if kind == "repeated":
        return codes[rng.integers(0, N * 3 // 5, N)]
    if kind == "crowded":  # a bit in nine flipped of one code
        return np.packbits(rng.random((N, 8 * n_bytes)) < 1 / 9, axis=1) ^ codes[0]
    if kind == "real":  # documents seen through doubt
        chances = rng.beta(0.2, 0.2, (60, 8 * n_bytes))[rng.integers(0, 60, N)]
        return np.packbits(rng.random(chances.shape) < chances, axis=1)
    return codes


def assert_right(index, codes, ids, queries, mask=None):
    """Compare with a sort of everything."""
    for k in 1, 10, 100:
        hits = index.search(queries, k, mask=mask)
        for query, found, distances in zip(queries, *hits, strict=True):
            truth = np.bitwise_count(codes ^ query).sum(axis=1)
            order = np.lexsort((ids, truth))[:k]
            assert np.array_equal(found, ids[order])
            assert np.array_equal(distances, truth[order])


def has_tables(index):
    return index._rows._main.tables is not None


@pytest.mark.parametrize("patience", [0.0, np.inf], ids=["scanned", "walked"])
@pytest.mark.parametrize("kind", ["random", "repeated", "crowded", "real"])
@pytest.mark.parametrize("n_bytes", [4, 8, 16])
def test_the_nearest_are_right_after_additions_and_removals_and_with_masks(
    kind, n_bytes, patience, at_once, monkeypatch
):
    monkeypatch.setattr("vdsh.search.probing.shared_scan_time", lambda *_: patience)
    rng = np.random.default_rng(1)
    codes, ids = make_codes(kind, n_bytes), rng.permutation(N) * 3
    queries = np.concatenate([codes[:3], codes[3:5] ^ 1, make_codes("random", n_bytes, 2)[:2]])
    index = HammingIndex(codes, ids=ids, threads=2)
    assert_right(index, codes, ids, queries)
    assert has_tables(index)
    removed = rng.choice(ids, 500, replace=False)
    index.remove(removed)
    index.add(codes[:200] ^ 2, ids=10**6 - np.arange(200))
    kept = ~np.isin(ids, removed)
    codes = np.concatenate([codes[kept], codes[:200] ^ 2])
    ids = np.concatenate([ids[kept], 10**6 - np.arange(200)])
    assert_right(index, codes, ids, queries)
    mask = rng.random(len(ids)) < 0.2
    assert_right(index, codes[mask], ids[mask], queries, mask)
    assert has_tables(index)


def test_a_walk_goes_through_all_tables_where_everything_is_far(at_once, monkeypatch):
    monkeypatch.setattr("vdsh.search.probing.shared_scan_time", lambda *_: np.inf)
    codes = make_codes("crowded", 8)
    assert_right(HammingIndex(codes), codes, np.arange(N), ~codes[:2])


def test_tables_are_built_when_scans_have_taken_as_long(monkeypatch):
    for name in "LOOK_UP", "KEEP":
        monkeypatch.setattr(f"vdsh.search.probing.{name}", 0)
    codes = make_codes("random", 8)
    index = HammingIndex(codes)
    index.search(codes[0], 10)
    index._rows._keeper.wait()
    assert not has_tables(index)
    for _ in range(20):
        index.search(codes[:100], 10)
    index._rows._keeper.wait()
    assert has_tables(index)


def test_few_codes_need_no_tables(at_once, monkeypatch):
    monkeypatch.setattr("vdsh.search.probing.LOOK_UP", 4_000_000.0)
    codes = make_codes("random", 8)
    index = HammingIndex(codes)
    index.search(codes[:1], 10)
    assert not has_tables(index)
    assert table_shape(8, 1000) is None


def test_tables_of_rows_that_have_changed_are_not_used(monkeypatch):
    codes = make_codes("random", 8)
    rows = RowIndex(codes)
    main = rows._main
    rows.append(codes[:6000])
    rows.settled()
    rows._build(main)
    assert rows.n_rows == N + 6000
    hits = rows.search(codes[:1], 2)
    assert hits.rows.tolist() == [[0, N]]


@pytest.mark.parametrize("kind", ["random", "repeated"])
@pytest.mark.parametrize("n_bytes", [4, 8, 16, 32])
def test_an_index_with_tables_takes_at_most_three_times_its_codes(kind, n_bytes, at_once):
    codes = make_codes(kind, n_bytes)
    index = HammingIndex(codes)
    index.search(codes[:1], 10)
    assert has_tables(index)
    luts = index._rows._main.tables.luts.nbytes  # the same for any number of codes
    groups = 0 if kind == "random" else 4 * N  # where each distinct code is kept once
    assert index.nbytes - luts <= 3 * codes.nbytes + groups + n_bytes * 64


@pytest.mark.parametrize("kind", ["random", "repeated"])
def test_a_saved_index_keeps_its_tables_and_does_without_them_where_they_are_cut_short(
    kind, at_once, tmp_path, monkeypatch
):
    codes, path = make_codes(kind, 8), tmp_path / "index"
    index = HammingIndex(codes)
    index.search(codes[:1], 10)
    index.save(path)
    expected = index.search(codes[:5], 20)
    entries = index._rows._main.tables.entries.nbytes
    data = path.read_bytes()
    assert has_tables(HammingIndex.open(path))
    monkeypatch.setattr("vdsh.search.probing.BUILD", 1e9)
    for cut, whole in (0, True), (1, False), (entries - 5, False), (entries + 70, False):
        path.write_bytes(data[: len(data) - cut])
        opened = HammingIndex.open(path)
        hits = opened.search(codes[:5], 20)
        assert has_tables(opened) == whole
        assert np.array_equal(hits.ids, expected.ids)
    path.write_bytes(data[: len(data) // 4])
    with pytest.raises(FolderError, match="damaged or cut short"):
        HammingIndex.open(path)


HOSTILE_TABLES = {
    "buckets beyond the end": lambda arrays: arrays["starts"].__setitem__((0, 5), 10**9),
    "other entries": lambda arrays: arrays.update(entries=arrays["entries"][:, :3]),
    "pieces that are too wide": lambda arrays: arrays["luts"].fill(2**63),
    "one table": lambda arrays: arrays.update(starts=arrays["starts"][:1]),
}


@pytest.mark.parametrize("harm", HOSTILE_TABLES.values(), ids=HOSTILE_TABLES)
def test_tables_that_do_not_fit_are_left_out(harm, at_once, tmp_path):
    codes, path = make_codes("random", 8), tmp_path / "index"
    index = HammingIndex(codes)
    index.search(codes[:1], 10)
    index.save(path)
    facts, arrays = map_arrays(path)
    harm(arrays)
    write_arrays(path, facts, arrays)
    opened = HammingIndex.open(path)
    assert not has_tables(opened)
    assert opened.search(codes[7], 1).ids.tolist() == [7]


def test_more_codes_than_memory_are_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr("vdsh.search.checks.WORTH_ASKING", 0)
    codes = make_codes("random", 8)
    index = HammingIndex(codes)
    monkeypatch.setattr("vdsh.search.checks.free_memory", lambda: 50_000)
    with pytest.raises(InputError, match=r"^20,000 codes need 0 MB of memory and 0 MB are free\."):
        HammingIndex(codes)
    with pytest.raises(InputError, match="20,000 more codes need"):
        index.add(codes)
    assert len(index) == N


def test_tables_that_memory_cannot_hold_are_not_built_and_it_is_said_once(at_once, monkeypatch):
    monkeypatch.setattr("vdsh.search.probing.free_memory", lambda: 1000)
    codes = make_codes("random", 8)
    index = HammingIndex(codes)
    with pytest.warns(UserWarning, match=r"Tables for 20,000 codes need .* are free"):
        index.search(codes[:1], 10)
    assert index.search(codes[7], 1).ids.tolist() == [7]
    assert not has_tables(index)
