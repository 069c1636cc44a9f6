import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vdsh.codes import unpack
from vdsh.errors import FolderError, InputError, MissingFileError, VdshError, WriteError
from vdsh.search import HammingIndex, RowIndex, probing
from vdsh.search.index_file import map_arrays, write_arrays

LENGTHS = [8, 16, 24, 32, 64, 128, 248, 256, 1024]


def random_codes(n, n_bits=64, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def repeated_codes(n, n_distinct, n_bits=32, seed=0):
    rng = np.random.default_rng(seed)
    return random_codes(n_distinct, n_bits, seed)[rng.integers(0, n_distinct, n)]


def build_at_once(monkeypatch):
    """Build tables at the first search, however few codes there are, and wait for them."""
    for name in "LOOK_UP", "LOOK_UP_ALL", "KEEP", "BUILD":
        monkeypatch.setattr(f"vdsh.search.probing.{name}", 0)
    start = probing.Thread.start
    monkeypatch.setattr(probing.Thread, "start", lambda thread: (start(thread), thread.join()))


def slow_search(codes, ids, query, radius=1024):
    """All ids and distances in the right order, by the most obvious way."""
    distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1).tolist()
    return sorted(pair for pair in zip(distances, ids, strict=True) if pair[0] <= radius)


def assert_search_is_right(index, codes, ids, queries, k):
    found_ids, distances = index.search(queries, k=k)
    for q, query in enumerate(queries):
        expected = slow_search(codes, ids, query)[:k]
        assert list(zip(distances[q].tolist(), found_ids[q].tolist(), strict=True)) == expected


def assert_within_is_right(index, codes, ids, queries, radius):
    for query, (found_ids, distances) in zip(queries, index.within(queries, radius), strict=True):
        expected = slow_search(codes, ids, query, radius)
        assert list(zip(distances.tolist(), found_ids.tolist(), strict=True)) == expected


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_search_agrees_with_a_slow_search_at_every_length(n_bits):
    codes, queries = random_codes(700, n_bits), random_codes(3, n_bits, seed=1)
    queries[0] = codes[5]
    queries[1] = ~codes[6]  # the largest distance there is
    index = HammingIndex(codes)
    assert_search_is_right(index, codes, range(700), queries, 50)
    assert_search_is_right(index, codes, range(700), queries, 700)
    assert_within_is_right(index, codes, range(700), queries, n_bits // 2)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 4096, 5000])
def test_search_agrees_with_a_slow_search_at_every_size(n):
    codes, queries = random_codes(n, 16), random_codes(2, 16, seed=1)
    assert_search_is_right(HammingIndex(codes), codes, range(n), queries, 10)


def test_search_breaks_ties_by_id():
    codes = np.zeros((5, 4), np.uint8)
    assert HammingIndex(codes).search(codes[0], k=3).ids.tolist() == [0, 1, 2]
    index = HammingIndex(codes, ids=[30, -10, 20, 2**40, 0])
    assert index.search(codes[0], k=3).ids.tolist() == [-10, 0, 20]
    index = HammingIndex(codes, ids=["b", "é", "a", "B", "ab"])
    assert index.search(codes[0], k=4).ids.tolist() == ["B", "a", "ab", "b"]


@pytest.mark.parametrize("n_distinct", [20, 2000, 20_000])
@pytest.mark.parametrize("shuffled", [False, True])
def test_repeated_codes_give_the_same_answers(n_distinct, shuffled):
    codes = repeated_codes(5000, n_distinct)
    ids = np.arange(5000)
    if shuffled:
        ids = np.random.default_rng(0).permutation(ids) * 3
    index = HammingIndex(codes, ids=ids)
    queries = np.concatenate([codes[:3], random_codes(2, 32, seed=1)])
    assert_search_is_right(index, codes, ids.tolist(), queries, 300)
    assert_within_is_right(index, codes, ids.tolist(), queries, 3)


def test_many_ties_among_shuffled_ids_are_cut_rightly():
    codes = np.concatenate([random_codes(2000, 64), np.zeros((900, 8), np.uint8)])
    ids = np.random.default_rng(0).permutation(len(codes)).tolist()
    index = HammingIndex(codes, ids=ids)
    assert_search_is_right(index, codes, ids, np.zeros((1, 8), np.uint8), 5)
    assert_search_is_right(index, codes, ids, np.zeros((1, 8), np.uint8), 950)


@pytest.mark.parametrize("distinct", [False, True])
def test_answers_do_not_depend_on_threads_or_batch_size(distinct):
    codes = random_codes(300_000, 32) if not distinct else repeated_codes(600_000, 300_000)
    queries = codes[:20] ^ random_codes(20, 32, seed=2) & 1
    one, many = HammingIndex(codes, threads=1), HammingIndex(codes, threads=3)
    expected = one.search(queries, k=100)
    for index in one, many:
        for size in 1, 2, 20:
            for start in range(0, 20, size):
                hits = index.search(queries[start : start + size], k=100)
                assert np.array_equal(hits.ids, expected.ids[start : start + size])
                assert np.array_equal(hits.distances, expected.distances[start : start + size])
    for a, b in zip(one.within(queries, 2), many.within(queries, 2), strict=True):
        assert np.array_equal(a.ids, b.ids)


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("kind", ["random", "crowded", "repeated"])
@pytest.mark.parametrize("n_bits", [24, 64])
def test_within_agrees_with_a_slow_search_where_tables_are_used(kind, n_bits, forced, monkeypatch):
    build_at_once(monkeypatch)
    if forced:  # even where a scan would be faster
        monkeypatch.setattr("vdsh.search.probing.shared_scan_time", lambda *_: np.inf)
    n = 20_000
    codes = random_codes(n, n_bits)
    if kind == "crowded":
        codes[: n // 2, :2] = 7
    if kind == "repeated":
        codes = repeated_codes(2 * n, n, n_bits)
    queries = np.concatenate([codes[:4], random_codes(2, n_bits, seed=1)])
    queries[1:3, 0] ^= 5
    for ids in None, np.arange(len(codes)) * 2:
        index = HammingIndex(codes, ids=ids)
        names = range(len(codes)) if ids is None else ids.tolist()
        for radius in 0, 1, 2, 3, 5:
            assert_within_is_right(index, codes, names, queries, radius)
        assert index._rows._main.tables is not None


def test_many_hits_are_sorted_like_few():
    codes = repeated_codes(50_000, 40)
    assert_within_is_right(HammingIndex(codes), codes, range(50_000), codes[:2], 14)


def test_a_single_query_gives_flat_results():
    codes = random_codes(20)
    ids, distances = HammingIndex(codes).search(codes[3], k=5)
    assert ids.shape == distances.shape == (5,)
    assert (ids[0], distances[0]) == (3, 0)
    ids, distances = HammingIndex(codes).within(codes[3], radius=0)
    assert (ids.tolist(), distances.tolist()) == ([3], [0])


def test_k_larger_than_the_index_gives_all_of_it():
    assert HammingIndex(random_codes(7)).search(random_codes(2), k=50).ids.shape == (2, 7)


def test_an_empty_index_answers_with_nothing():
    index = HammingIndex(random_codes(0, 32))
    assert len(index) == 0
    assert index.search(random_codes(3, 32), k=5).ids.shape == (3, 0)
    assert index.search(random_codes(1, 32)[0]).ids.shape == (0,)
    assert [len(hits.ids) for hits in index.within(random_codes(3, 32), radius=9)] == [0, 0, 0]
    assert index.search(random_codes(3, 32), mask=[]).ids.shape == (3, 0)
    index.add(random_codes(2, 32), ids=["x", "y"])
    assert sorted(index.search(random_codes(1, 32)[0]).ids) == ["x", "y"]


def test_no_queries_give_no_answers():
    index = HammingIndex(random_codes(10))
    assert index.search(random_codes(0), k=3).ids.shape == (0, 3)
    assert index.within(random_codes(0), radius=3) == []


@pytest.mark.parametrize("share", [0.5, 0.01, 0.001])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_mask_limits_what_is_found(share, distinct):
    codes = repeated_codes(20_000, 4000) if distinct else random_codes(20_000, 32)
    index = HammingIndex(codes)
    allowed = np.random.default_rng(1).random(20_000) < share
    kept = np.flatnonzero(allowed)
    queries = random_codes(3, 32, seed=2)
    for mask in allowed, kept, kept.tolist(), set(kept.tolist()):
        ids, distances = index.search(queries, k=30, mask=mask)
        assert ids.shape == (3, min(30, len(kept)))
        for q, query in enumerate(queries):
            expected = slow_search(codes[kept], kept.tolist(), query)[:30]
            assert list(zip(distances[q].tolist(), ids[q].tolist(), strict=True)) == expected
        for query, hits in zip(queries, index.within(queries, 9, mask=mask), strict=True):
            expected = slow_search(codes[kept], kept.tolist(), query, radius=9)
            assert hits.ids.tolist() == [id_ for _, id_ in expected]


def test_a_mask_may_name_unknown_ids_and_must_fit():
    index = HammingIndex(random_codes(5))
    assert index.search(random_codes(1)[0], mask=[2, 77]).ids.tolist() == [2]
    with pytest.raises(InputError, match="one value for each of the 5 codes"):
        index.search(random_codes(1)[0], mask=np.ones(4, bool))
    with pytest.raises(InputError, match="are integers. Got strings"):
        index.search(random_codes(1)[0], mask=["a"])


def test_a_mask_may_be_a_plain_list():
    codes = random_codes(4)
    index = HammingIndex(codes)
    assert sorted(index.search(codes[0], mask=[True, False, False, True]).ids) == [0, 3]
    assert sorted(index.within(codes[0], radius=64, mask=(1, 2)).ids) == [1, 2]


def test_a_mask_follows_the_ids_after_removals():
    codes = random_codes(6)
    index = HammingIndex(codes, ids=list("abcdef"))
    index.remove(["b", "d"])
    assert index.ids.tolist() == ["a", "c", "e", "f"]
    mask = np.array([False, True, False, True])
    assert sorted(index.search(codes[0], mask=mask).ids) == ["c", "f"]


def test_added_codes_are_found_and_removed_ones_are_not():
    codes = random_codes(9000, 16)
    index = HammingIndex(codes[:10])
    index.add(codes[10:3000])
    index.add(codes[3000:])
    index.remove(range(0, 9000, 3))
    kept = [i for i in range(9000) if i % 3]
    assert len(index) == 6000
    assert_search_is_right(index, codes[kept], kept, random_codes(2, 16, seed=1), 40)
    index.remove(kept[:4000])  # now most are gone, and their memory is given back
    kept = kept[4000:]
    assert_search_is_right(index, codes[kept], kept, random_codes(2, 16, seed=1), 40)
    index.add(codes[:1])
    assert index.ids.tolist() == [*kept, 9000]


def test_a_removed_id_can_be_given_again():
    index = HammingIndex(np.zeros((3, 1), np.uint8), ids=["a", "b", "c"])
    index.remove(["a"])
    index.add(np.full((1, 1), 255, np.uint8), ids=["a"])
    ids, distances = index.search(np.zeros(1, np.uint8))
    assert ids.tolist() == ["b", "c", "a"]
    assert distances.tolist() == [0, 0, 8]
    counted = HammingIndex(np.zeros((3, 1), np.uint8))
    counted.remove([0])
    counted.add(np.zeros((1, 1), np.uint8), ids=[0])
    assert counted.search(np.zeros(1, np.uint8)).ids.tolist() == [0, 1, 2]


def test_string_ids_that_come_later_take_their_place_in_the_order():
    index = HammingIndex(np.zeros((2, 4), np.uint8), ids=["b", "d"])
    assert index.search(np.zeros(4, np.uint8)).ids.tolist() == ["b", "d"]
    for name in ["c", "a", "e", "cc", *[f"c{i:03}" for i in range(99, 0, -1)]]:
        index.add(np.zeros((1, 4), np.uint8), ids=[name])
        ids = index.search(np.zeros(4, np.uint8), k=500).ids.tolist()
        assert ids == sorted(ids)


@pytest.mark.parametrize("ids", [None, "integers", "strings", "shuffled"])
@pytest.mark.parametrize("n_distinct", [100, 10_000])
def test_a_saved_index_answers_the_same(tmp_path, ids, n_distinct):
    codes, queries = repeated_codes(3000, n_distinct), random_codes(4, 32, seed=1)
    given = {
        None: None,
        "integers": np.arange(3000) * 2**33,
        "strings": [f"doc\0{i}é" for i in range(3000)],
        "shuffled": np.random.default_rng(0).permutation(3000).astype(str).tolist(),
    }[ids]
    index = HammingIndex(codes, ids=given)
    index.remove(index.ids[5:8])
    index.save(tmp_path / "index")
    opened = HammingIndex.open(tmp_path / "index")
    for changed in False, True:
        if changed:
            more = random_codes(5000, 32, seed=3)
            for one in index, opened:
                one.add(more, ids=None if ids is None else _more_ids(ids))
                one.remove(one.ids[:2])
        expected, hits = index.search(queries, k=200), opened.search(queries, k=200)
        assert np.array_equal(hits.ids, expected.ids)
        assert np.array_equal(hits.distances, expected.distances)
        assert len(opened) == len(index)
        assert opened.ids.tolist() == index.ids.tolist()
    opened.save(tmp_path / "index")  # over the very file that is mapped
    assert np.array_equal(opened.search(queries, k=200).ids, index.search(queries, k=200).ids)


def _more_ids(kind):
    new = range(-5000, 0)
    return list(new) if kind == "integers" else [f"new{i}" for i in new]


def test_an_empty_index_can_be_saved(tmp_path):
    HammingIndex(random_codes(0, 32)).save(tmp_path / "index")
    opened = HammingIndex.open(tmp_path / "index")
    assert (len(opened), opened.n_bits) == (0, 32)
    opened.add(random_codes(3, 32))
    assert opened.ids.tolist() == [0, 1, 2]


def test_a_damaged_file_is_told_in_one_sentence(tmp_path):
    index = HammingIndex(repeated_codes(2000, 50), ids=[f"d{i}" for i in range(2000)])
    index.save(tmp_path / "good")
    data = (tmp_path / "good").read_bytes()
    bad = tmp_path / "bad"
    for size in 1, 10, 30, 200, len(data) // 2, len(data) - 1:
        bad.write_bytes(data[:size])
        with pytest.raises(FolderError, match=r"^[^\n]*$"):
            HammingIndex.open(bad)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 40).tolist():
        changed = bytearray(data)
        changed[place] ^= 255
        bad.write_bytes(bytes(changed))
        try:
            ids = HammingIndex.open(bad).search(random_codes(1, 32)[0]).ids.tolist()
        except FolderError as error:
            assert "'" in str(error)
        else:  # a byte of padding between arrays
            assert ids == index.search(random_codes(1, 32)[0]).ids.tolist()
    for data in b"", b"something else":
        bad.write_bytes(data)
        with pytest.raises(FolderError, match="not an index file"):
            HammingIndex.open(bad)


HOSTILE_ARRAYS = {
    "no strips": lambda facts, arrays: arrays.pop("strips"),
    "flat strips": lambda facts, arrays: arrays.update(strips=arrays["strips"].reshape(-1)),
    "strips of another type": lambda f, arrays: arrays.update(strips=arrays["strips"].view(bool)),
    "more codes than strips": lambda facts, arrays: facts.update(n_codes=10**9),
    "a count that is none": lambda facts, arrays: facts.update(n_codes="3"),
    "rows beyond the end": lambda facts, arrays: arrays["members"].__setitem__(0, 10**9),
    "a row twice": lambda facts, arrays: arrays["members"].__setitem__(0, arrays["members"][1]),
    "offsets beyond the end": lambda facts, arrays: arrays["offsets"].__setitem__(1, 10**9),
    "ids beyond the text": lambda facts, arrays: arrays["id_ends"].__setitem__(0, 10**9),
    "ids that are no text": lambda facts, arrays: arrays["id_text"].fill(255),
    "fewer ids": lambda facts, arrays: arrays.update(id_ends=arrays["id_ends"][-1:]),
    "marks of other rows": lambda facts, arrays: arrays.update(alive=np.ones(3, bool)),
    "no kind of ids": lambda facts, arrays: facts.pop("ids"),
    "an unknown array": lambda facts, arrays: arrays.update(more=np.zeros(3, np.uint8)),
    "an id that is none": lambda facts, arrays: facts.update(next_id=[]),
}


@pytest.mark.parametrize("harm", HOSTILE_ARRAYS.values(), ids=HOSTILE_ARRAYS)
def test_a_hostile_file_with_good_checksums_is_refused(harm, tmp_path):  # #16 C
    path, codes = tmp_path / "index", np.repeat(random_codes(20), 100, axis=0)
    HammingIndex(codes, ids=[f"id {i}" for i in range(2000)]).save(path)
    facts, arrays = map_arrays(path)
    harm(facts, arrays)
    write_arrays(path, facts, arrays)
    with pytest.raises(FolderError, match=r"damaged or cut short|not text"):
        HammingIndex.open(path).search(codes[0])


@pytest.mark.parametrize(
    "header",
    [b"[" * 100_000, b"[]", b"\xff", b'{"format": "1", "facts": {}, "arrays": []}',
     b'{"format": 1, "facts": {}, "arrays": [{"name": "strips", "dtype": "uint8", "offset": 0, '
     b'"checksum": 0, "shape": [4294967296, 4294967296, 64]}]}'],
)  # fmt: skip
def test_a_hostile_header_is_refused(header, tmp_path):  # #16 C
    sums = np.array([len(header), zlib.crc32(header)], "<u8").tobytes()
    (tmp_path / "index").write_bytes(b"vdsh-idx" + sums + header + bytes(1000))
    with pytest.raises(FolderError, match="damaged or cut short"):
        HammingIndex.open(tmp_path / "index")


def test_opening_nothing_and_saving_nowhere_are_clear_errors(tmp_path):
    with pytest.raises(MissingFileError, match="No index file"):
        HammingIndex.open(tmp_path / "absent")
    with pytest.raises(VdshError):
        HammingIndex.open(tmp_path)
    with pytest.raises(WriteError, match="Could not write"):
        HammingIndex(random_codes(1)).save(tmp_path / "absent" / "index")


def test_a_failed_save_leaves_the_old_file_and_no_scraps(tmp_path, monkeypatch):
    path = tmp_path / "index"
    HammingIndex(random_codes(3)).save(path)
    before = path.read_bytes()

    def full_disk(file_number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(WriteError, match="No space left"):
        HammingIndex(random_codes(9)).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("k", [0, -1, 2.5, True, None])
def test_k_must_be_positive(k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1. Got"):
        HammingIndex(random_codes(3)).search(random_codes(1), k=k)


@pytest.mark.parametrize("radius", [-1, 0.5])
def test_radius_must_not_be_negative(radius):
    with pytest.raises(InputError, match="radius must be a whole number of at least 0. Got"):
        HammingIndex(random_codes(3)).within(random_codes(1), radius=radius)


def test_a_radius_beyond_the_code_length_finds_everything():
    index = HammingIndex(random_codes(100, 64))
    assert len(index.within(random_codes(1)[0], radius=100_000).ids) == 100


def test_codes_of_another_length_are_refused():
    index = HammingIndex(random_codes(3, 32))
    with pytest.raises(InputError, match="^This index holds 32-bit codes but the query has 64.$"):
        index.search(random_codes(2, 64))
    with pytest.raises(InputError, match="This index holds 32-bit codes but the query has 64"):
        index.within(random_codes(1, 64)[0], radius=1)
    with pytest.raises(InputError, match="holds 32-bit codes but the new ones have 64"):
        index.add(random_codes(1, 64))


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((2, 4)),
        np.zeros((2, 4), np.int8),
        np.zeros(4, np.uint8),
        np.zeros((2, 2, 2), np.uint8),
        np.zeros((2, 0), np.uint8),
        np.zeros((2, 129), np.uint8),
        [["a", "b"]],
    ],
)
def test_what_is_not_an_array_of_codes_is_refused(codes):
    with pytest.raises(InputError, match="[Cc]odes must"):
        HammingIndex(codes)
    with pytest.raises(InputError):
        HammingIndex(random_codes(2, 32)).search(np.asarray(codes)[None, None])


@pytest.mark.parametrize("ids", [[1, 2, 1], ["a", "b", "a"], ["x\0", "y", "x\0"]])
def test_duplicate_ids_are_refused(ids):
    with pytest.raises(InputError, match="is there twice"):
        HammingIndex(random_codes(3), ids=ids)
    index = HammingIndex(random_codes(1), ids=ids[1:2])
    with pytest.raises(InputError, match="is there twice"):
        index.add(random_codes(3), ids=ids)
    index = HammingIndex(random_codes(1), ids=ids[:1])
    with pytest.raises(InputError, match="is in the index already"):
        index.add(random_codes(2), ids=ids[:2])
    assert len(index) == 1


def test_ids_must_fit_the_codes_and_each_other():
    with pytest.raises(InputError, match="one id a code. Got 2 ids, 3 codes"):
        HammingIndex(random_codes(3), ids=[1, 2])
    with pytest.raises(InputError, match="all integers or all strings"):
        HammingIndex(random_codes(2), ids=[1, "a"])
    for wrong in [1.5, 2.5], [True, False], [None, None]:
        with pytest.raises(InputError, match="all integers or all strings"):
            HammingIndex(random_codes(2), ids=wrong)
    with pytest.raises(InputError, match="list of integers or strings"):
        HammingIndex(random_codes(2), ids="ab")
    for wrong in [2**63, 1], np.array([2**63, 1], np.uint64):
        with pytest.raises(InputError, match="64 bits"):
            HammingIndex(random_codes(2), ids=wrong)
    with pytest.raises(InputError, match="This index was given ids"):
        HammingIndex(random_codes(2), ids=["a", "b"]).add(random_codes(1))
    with pytest.raises(InputError, match="are strings. Got integers"):
        HammingIndex(random_codes(2), ids=["a", "b"]).add(random_codes(1), ids=[1])


def test_unknown_ids_cannot_be_removed():
    index = HammingIndex(random_codes(3))
    with pytest.raises(InputError, match="There is no id 99 in this index"):
        index.remove([1, 99])
    assert len(index) == 3
    index.remove([1])
    with pytest.raises(InputError, match="There is no id 1 in this index"):
        index.remove([1])
    index.remove([])
    with pytest.raises(InputError, match="There is no id 'aaa"):
        HammingIndex(random_codes(1), ids=["b"]).remove(["a" * 10_000])


def test_long_ids_nul_bytes_and_surrogates_are_ids_like_others(tmp_path):
    ids = ["x" * 10_000, "a\0b", "a", "a\0", "", "\udcff", "日本"]
    index = HammingIndex(np.zeros((7, 4), np.uint8), ids=ids)
    index.save(tmp_path / "index")
    for one in index, HammingIndex.open(tmp_path / "index"):
        assert one.search(np.zeros(4, np.uint8)).ids.tolist() == sorted(ids)
        one.remove(["a\0", "x" * 10_000])
        assert len(one) == 5


def test_a_refused_add_changes_nothing():
    index = HammingIndex(random_codes(3))
    with pytest.raises(InputError):
        index.add(random_codes(1), ids=[2])
    index.add(random_codes(1))
    assert index.ids.tolist() == [0, 1, 2, 3]


def test_searches_may_run_in_many_threads():
    codes, queries = random_codes(40_000, 32), random_codes(40, 32, seed=1)
    ids = np.random.default_rng(0).permutation(60_000)
    index = HammingIndex(codes, ids=ids[:40_000])
    for part in range(4):  # the first search after an addition moves codes and orders ids
        rows = slice(40_000 + 5000 * part, 45_000 + 5000 * part)
        index.add(random_codes(5000, 32, seed=part + 2), ids=ids[rows])
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda query: index.search(query, k=20), queries))
            near = list(pool.map(lambda query: index.within(query, radius=4), queries))
        expected = index.search(queries, k=20)
        for q, hits in enumerate(answers):
            assert np.array_equal(hits.ids, expected.ids[q])
        for hits, again in zip(near, index.within(queries, radius=4), strict=True):
            assert np.array_equal(hits.ids, again.ids)


def test_threads_must_be_positive():
    with pytest.raises(InputError, match="threads must be a whole number of at least 1"):
        HammingIndex(random_codes(1), threads=0)


def test_counted_ids_take_no_memory():
    codes = random_codes(64_000)
    assert HammingIndex(codes).nbytes == codes.nbytes
    assert HammingIndex(codes, ids=range(7, 64_007)).nbytes == codes.nbytes
    assert HammingIndex(codes, ids=range(0, 128_000, 2)).nbytes == codes.nbytes + 4 * 64_000


def test_rows_can_be_searched_without_ids():
    codes = random_codes(200)
    index = RowIndex(codes[:150])
    assert index.append(codes[150:]) == range(150, 200)
    index.remove(np.array([3, 160]))
    rows, distances = index.search(codes[[3, 4, 170]], 1)
    assert rows[1:].tolist() == [[4], [170]]
    assert rows[0, 0] != 3
    assert distances[1:].tolist() == [[0], [0]]
    index.keys = -np.arange(200)
    [hits] = index.within(codes[:1], 64)
    assert hits.rows.tolist() == sorted(
        hits.rows.tolist(), key=lambda row: (unpack(codes[row] ^ codes[0]).sum(), -row)
    )
    kept = index.compact()
    assert kept.tolist() == [i for i in range(200) if i not in (3, 160)]
    assert np.array_equal(index.codes(), codes[kept])


def test_within_answers_every_query_of_a_large_batch():
    """The last of 4,096 queries once lost its hits to an integer overflow."""
    codes = np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    for hits, row in zip(HammingIndex(codes).within(codes[:8200], 0), range(8200), strict=True):
        assert hits.ids.tolist() == [row]


@pytest.mark.parametrize("codes", [random_codes(3000, 32), repeated_codes(3000, 40)])
def test_codes_are_known_by_numbers_too(codes, tmp_path):
    rng = np.random.default_rng(1)
    ids, numbers = [f"{i:05}" for i in rng.permutation(3000)], rng.permutation(9000)[:3000]
    index = HammingIndex(codes[:2000], ids=ids[:2000], numbers=numbers[:2000])
    index.add(codes[2000:], ids=ids[2000:], numbers=numbers[2000:])
    by_id = dict(zip(ids, numbers.tolist(), strict=True))
    index.save(tmp_path / "index")
    opened = HammingIndex.open(tmp_path / "index")
    index.remove(ids[:1700])  # which leaves it compacted
    for some, kept in (opened, np.arange(3000)), (index, np.arange(1700, 3000)):
        near = some.search(codes[5], 50).ids.tolist()
        assert some.nearest(codes[5], 50)[1].tolist() == [by_id[id] for id in near]
        found, keys = some.take(numbers[kept])
        assert np.array_equal(found, codes[kept])
        assert [ids[i] for i in kept[np.argsort(keys)]] == sorted(ids[i] for i in kept)
    with pytest.raises(FolderError, match="other documents"):
        index.take(np.array([9001]))
