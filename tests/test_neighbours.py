import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from vdsh.hashers.vdsh.neighbours import nearest


def slow(inputs, k):
    dense = inputs.toarray().astype(np.float64)
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(cosines, order, axis=1)


@pytest.mark.parametrize("k", [1, 5, 39])
def test_neighbours_are_those_of_all_cosines(k):
    rng = np.random.default_rng(k)
    inputs = csr_array(random_array((40, 25), density=0.4, rng=rng, dtype=np.float32))
    ids, cosines = nearest(inputs, k)
    expected, values = slow(inputs, k)
    positive = values > 0
    assert cosines[positive] == pytest.approx(values[positive], abs=1e-6)
    clear = positive & (np.abs(np.diff(values, axis=1, append=-2)) > 1e-6)
    assert (ids == expected)[clear].mean() > 0.99


def test_a_document_is_not_its_own_neighbour_even_among_copies():
    inputs = csr_array(np.ones((5, 3), np.float32))
    ids, cosines = nearest(inputs, 2)
    assert ids.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]
    assert cosines == pytest.approx(np.ones((5, 2)))


def test_a_document_that_shares_no_term_has_itself_with_cosine_zero():
    ids, cosines = nearest(csr_array(np.eye(3, dtype=np.float32)), 2)
    assert ids.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert (cosines == 0).all()


def test_weights_of_zero_and_below_overrun_nothing():
    """#16 A1: a sum of 0 was taken for a document not yet seen, and written down again."""
    rng = np.random.default_rng(0)
    terms = rng.permuted(np.tile(np.arange(50), (300, 1)), axis=1).ravel()
    for values in (np.zeros(15_000), rng.choice([-1.0, 0.0, 1.0], 15_000)):
        starts = np.arange(0, 15_001, 50)
        inputs = csr_array((values.astype(np.float32), terms, starts), shape=(300, 50))
        ids, cosines = nearest(inputs, 5)
        _, wanted = slow(inputs, 5)
        assert cosines == pytest.approx(np.maximum(wanted, 0), abs=1e-5)
        own = np.broadcast_to(np.arange(300)[:, None], ids.shape)
        assert (ids == own)[cosines == 0].all()


def test_a_bound_on_the_work_keeps_nearly_the_same_neighbours():
    rng = np.random.default_rng(0)
    terms = (rng.zipf(1.5, (2000, 30)) - 1) % 3000  # some terms in nearly every document
    topic = np.repeat(np.arange(100), 20)[:, None] * 5 + 3000 + rng.integers(0, 5, (2000, 6))
    columns = np.concatenate([terms, topic], axis=1).ravel()
    rows = np.repeat(np.arange(2000), 36)
    counts = csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(2000, 3500))
    idf = np.log(2000 / np.maximum(1, np.bincount(counts.indices, minlength=3500)))
    weighted = csr_array(counts.multiply(idf[None]).astype(np.float32))
    exact, _ = nearest(weighted, 5)
    bounded, _ = nearest(weighted, 5, work=2000 * 500)
    same_topic = [np.mean(ids // 20 == np.arange(2000)[:, None] // 20) for ids in (exact, bounded)]
    assert same_topic[1] > same_topic[0] - 0.05


def test_progress_ends_at_one():
    seen = []
    nearest(csr_array(np.ones((5000, 2), np.float32)), 1, progress=seen.append)
    assert seen[-1] == 1 and seen == sorted(seen)
