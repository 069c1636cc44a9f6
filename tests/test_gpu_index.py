"""The index in a GPU's memory beside that of the CPU.

What the kernels do is done by torch alone where there is no GPU, so all but the kernels is tested
everywhere; tests marked `gpu` run them.
"""

from pathlib import Path

import numpy as np
import pytest

from test_search import LENGTHS, random_codes, repeated_codes
from vdsh.errors import InputError
from vdsh.search import HammingIndex, RowIndex

torch = pytest.importorskip("torch")
gpu_rows = pytest.importorskip("vdsh.search.gpu.rows")
layout = pytest.importorskip("vdsh.search.gpu.scan")
GpuRows = gpu_rows.GpuRows

HERE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(HERE == "cpu", reason="needs a CUDA device")


@pytest.fixture
def small(monkeypatch):
    """Take samples, split scans and batches of queries already with few codes."""
    monkeypatch.setattr(gpu_rows, "FIRST_SAMPLE", 4096)
    monkeypatch.setattr(gpu_rows, "LEAST_KEPT", 4096)
    monkeypatch.setattr(gpu_rows, "MOST_KEPT", 3 * 4096)


def assert_same(one, other):
    assert one.rows.tolist() == other.rows.tolist()
    assert one.distances.tolist() == other.distances.tolist()


def assert_agree(codes, queries, k, *, allowed=None, keys=None, removed=()):
    gpu, cpu = GpuRows(codes, HERE), RowIndex(codes)
    for rows in (gpu, cpu):
        rows.keys = keys
        rows.remove(np.array(removed, np.int64))
    assert_same(gpu.search(queries, k, allowed=allowed), cpu.search(queries, k, allowed=allowed))
    radius = codes.shape[1]
    pairs = zip(
        gpu.within(queries, radius, allowed=allowed),
        cpu.within(queries, radius, allowed=allowed),
        strict=True,
    )
    for one, other in pairs:
        assert_same(one, other)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("n_queries", [1, 5, 200])
@pytest.mark.parametrize("n_bits", LENGTHS)
def test_kernels_agree_with_the_cpu_at_every_length(n_bits, n_queries):
    codes, queries = random_codes(70_000, n_bits), random_codes(n_queries, n_bits, seed=1)
    queries[0] = ~codes[6]  # the largest distance there is
    assert_agree(codes, queries, 20)
    assert_agree(repeated_codes(70_000, 40, n_bits), queries[:40], 300)
    allowed = np.random.default_rng(2).random(70_000) < 0.01
    assert_agree(codes, queries, 20, allowed=allowed, removed=range(0, 70_000, 3))


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("n_bits", [24, 64, 128])
def test_searches_for_one_query_know_what_changed(n_bits):
    codes, queries = random_codes(300_000, n_bits), random_codes(9, n_bits, seed=1)
    codes[:100_000] = codes[0]  # more than a scan keeps, near the queries below
    queries[0], queries[1] = codes[0], ~codes[0]
    gpu, cpu = GpuRows(codes, HERE), RowIndex(codes)

    def assert_one_by_one(*sizes):
        for k in sizes:
            for query in queries[:, None]:
                assert_same(gpu.search(query, k), cpu.search(query, k))

    assert_one_by_one(1, 10, 200)
    for rows in (gpu, cpu):
        rows.remove(np.arange(0, 300_000, 7))
    assert_one_by_one(10)
    for rows in (gpu, cpu):
        rows.append(queries)
    assert_one_by_one(10)
    for rows in (gpu, cpu):
        rows.keys = np.random.default_rng(2).permutation(rows.n_rows)
    assert_one_by_one(*range(1, 12))


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_without_enough_memory_says_what_would_fit(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 20, 1 << 30))
    with pytest.raises(InputError, match="131,072 codes would fit"):
        HammingIndex(random_codes(200_000), device="cuda")


@pytest.mark.parametrize("n_bits", [8, 24, 64, 128])
@pytest.mark.parametrize("k", [1, 30])
def test_rows_agree_with_the_cpu(small, n_bits, k):
    queries = random_codes(4, n_bits, seed=1)
    assert_agree(random_codes(20_000, n_bits), queries, k)
    assert_agree(repeated_codes(20_000, 3, n_bits), queries, k)


@pytest.mark.parametrize("n_bits", [24, 64, 128, 256])
def test_products_are_negative_where_codes_are_far(n_bits):
    codes, queries = random_codes(300, n_bits), random_codes(40, n_bits, seed=1)
    codes[:40] = queries  # at all distances
    codes[40:80], codes[80:120, :2] = ~queries, queries[:, :2]
    bounds = np.arange(40, dtype=np.int32) * (n_bits + 2) // 39 - 1
    asked = layout.to_words(queries, torch.device("cpu"))
    width = 32 * layout.power_of_two(layout.n_words(n_bits // 8))
    rows = layout.products(asked, torch.from_numpy(bounds), width, 128).long()
    words = layout.to_words(codes, torch.device("cpu"))
    bit = torch.arange(32)
    bits = torch.zeros((300, width), dtype=torch.int64)
    bits[:, : 32 * words.shape[1]] = (words[:, :, None] >> (bit // 4 + 8 * (bit % 4)) & 1).flatten(
        1
    )
    bits[:, -1] = -layout.scale(width)
    near = (bits @ rows.T >= 0).numpy()
    distances = np.bitwise_count(codes[:, None] ^ queries).sum(2)
    assert near[:, :40][distances <= bounds].all()
    assert not near[:, :40][distances > bounds + (1 if width < 256 else 2)].any()
    assert not near[:, 40:].any()


def test_ties_go_by_key_where_codes_are_crowded(small):
    codes = repeated_codes(20_000, 2)
    keys = np.random.default_rng(3).permutation(20_000)
    queries = np.concatenate([codes[:2], ~codes[:1]])
    assert_agree(codes, queries, 500, keys=keys, removed=range(0, 20_000, 2))


def test_masks_that_allow_few_none_and_all(small):
    codes, queries = random_codes(20_000), random_codes(3, seed=1)
    for share in (0, 0.0005, 0.5, 1):
        assert_agree(codes, queries, 20, allowed=np.random.default_rng(0).random(20_000) < share)


def test_rows_grow_shrink_and_come_back(small):
    gpu, cpu = GpuRows(random_codes(100), HERE), RowIndex(random_codes(100))
    keys = np.random.default_rng(5).permutation(20_100)
    for rows in (gpu, cpu):
        assert rows.append(random_codes(20_000, seed=2)) == range(100, 20_100)
        rows.keys = keys
        rows.remove(np.arange(50, 15_000))
    queries = random_codes(3, seed=9)
    assert_same(gpu.search(queries, 40), cpu.search(queries, 40))
    assert gpu.codes().tolist() == cpu.codes().tolist()
    assert gpu.compact().tolist() == cpu.compact().tolist()
    assert_same(gpu.search(queries, 40), cpu.search(queries, 40))
    assert_same(gpu.search(queries, 5000), cpu.search(queries, 5000))
    assert_same(gpu.on_cpu().search(queries, 40), cpu.search(queries, 40))
    assert len(gpu) == len(cpu) == 5150


def test_an_index_by_id_is_the_same_saved_opened_and_on_another_device(tmp_path, monkeypatch):
    codes, queries = random_codes(600), random_codes(2, seed=1)
    names = [f"d{i:03}" for i in np.random.default_rng(1).permutation(600)]
    monkeypatch.setattr("vdsh.search.index._on_gpu", lambda codes, device: GpuRows(codes, HERE))
    there = HammingIndex(codes, ids=names, device="cuda")
    here = HammingIndex(codes, ids=names)
    for index in (there, here):
        index.remove(names[:30])
        index.add(random_codes(10, seed=4), ids=[f"n{i}" for i in range(10)])
    there.save(tmp_path / "index")
    opened = HammingIndex.open(tmp_path / "index", device="cuda")
    for index in (there, opened, HammingIndex.open(tmp_path / "index")):
        found, expected = index.search(queries, k=50), here.search(queries, k=50)
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.distances.tolist() == expected.distances.tolist()
    mask = names[100:200]
    assert (
        opened.search(queries, mask=mask).ids.tolist()
        == here.search(queries, mask=mask).ids.tolist()
    )


def assert_a_store_searches_there(folder):
    """Compare a store opened for "cuda" with one on the CPU, through changes and a saved index."""
    from vdsh import Document, open_store
    from vdsh.model import Model

    model = Model.load(Path(__file__).parent / "data" / "models" / "lsh")
    words = list(model.words)[:30]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 5)) for _ in range(400)]
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]

    def answers(device):
        with open_store(folder, model, device=device) as store:
            ranks = ("distance", "relevance")
            hits = [store.search(text, k=30, rank=rank) for text in texts[:5] for rank in ranks]
            hits += [store.within(text, radius=2) for text in texts[:5]]
            return [[(hit.id, hit.distance) for hit in found] for found in hits]

    with open_store(folder, model, device="cuda") as store:
        store.upsert(documents[:300])
        assert store.search(texts[0], k=1, rank="distance")
        assert isinstance(store._engine._need_cache().index._rows, GpuRows)
        store.upsert(documents[250:])
        store.delete(["d1", "d260"])
        assert len(store) == 398
    assert answers("cuda") == answers("cpu")
    assert answers("cuda") == answers("cpu")  # with the file that was saved


@pytest.mark.gpu
@needs_gpu
def test_a_store_searches_on_a_gpu(tmp_path):  # #32
    assert_a_store_searches_there(tmp_path / "store")


def test_a_store_searches_with_the_index_of_its_device(tmp_path, monkeypatch):  # #32
    monkeypatch.setattr("vdsh.store.opening.check_device", lambda device: None)
    monkeypatch.setattr("vdsh.search.index._on_gpu", lambda codes, device: GpuRows(codes, HERE))
    assert_a_store_searches_there(tmp_path / "store")


def test_stores_that_have_no_such_device_say_so(tmp_path, monkeypatch):  # #32
    from vdsh import open_store

    with pytest.raises(InputError, match='must be "cpu" or "cuda". Got \'moon\''):
        open_store(tmp_path / "store", device="moon")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="torch finds no GPU here"):
        open_store(tmp_path / "store", device="cuda")
    monkeypatch.setattr("vdsh.store.opening.check_device", lambda device: None)
    with pytest.raises(InputError, match="is searched by its server"):
        open_store("postgresql://somewhere/else", device="cuda")


def test_an_empty_index_finds_nothing():
    rows = GpuRows(np.empty((0, 8), np.uint8), HERE)
    assert rows.search(random_codes(2), 5).rows.shape == (2, 0)
    assert [len(hits.rows) for hits in rows.within(random_codes(2), 5)] == [0, 0]


def test_devices_that_are_not_there():
    with pytest.raises(InputError, match='must be "cpu" or "cuda". Got \'moon\''):
        HammingIndex(random_codes(5), device="moon")
    if HERE == "cpu":
        with pytest.raises(InputError, match="torch finds no GPU here"):
            HammingIndex(random_codes(5), device="cuda")
