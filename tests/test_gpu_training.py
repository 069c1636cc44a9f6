"""Training on a GPU, where steps are recorded and parts of them run beside each other."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from vdsh.hashers import VDSH, VDSH_S, VDSH_SP
from vdsh.hashers.vdsh import training
from vdsh.hashers.vdsh.batches import sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.metrics.ranking import expected_precision
from vdsh.recording import Beside, record

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"),
]
CPU = torch.device("cpu")
SETTINGS = {"random_state": 0, "device": "cuda", "epochs": 4, "hidden_size": 96, "batch_size": 64}
PAPER = {"decoder_size": 0, "neighbor_share": 0.0, "beginning": "random", "schedule": "constant"}


@pytest.fixture(scope="module")
def corpus():
    """Documents about one of six matters each, in words of their own and of all."""
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 6, 1_000)
    words = np.where(
        rng.rand(1_000, 40) < 0.5, labels[:, None] * 60 + rng.randint(0, 60, (1_000, 40)),
        rng.randint(0, 500, (1_000, 40)),
    )  # fmt: skip
    counts = np.zeros((1_000, 500), np.float32)
    np.add.at(counts, (np.arange(1_000)[:, None], words), 1)
    return csr_array(counts), [f"matter {label}" for label in labels]


def fitted(kind, corpus, **settings):
    X, y = corpus
    hasher = kind(16, **(SETTINGS | settings))
    return hasher.fit(X[:800], y[:800], validation=(X[800:], y[800:]))


@pytest.mark.parametrize("settings", [{}, PAPER, {"n_samples": 2, "dropout": 0.0}])
@pytest.mark.parametrize("kind", [VDSH, VDSH_S, VDSH_SP])
def test_work_beside_other_work_changes_nothing(kind, settings, corpus, monkeypatch):
    """The same weights to the last bit, again and without a second stream."""
    one, again = (fitted(kind, corpus, **settings) for _ in range(2))
    monkeypatch.setattr(training, "Beside", lambda device: Beside(CPU))
    apart = fitted(kind, corpus, **settings)
    for name in ("W1_", "W2_", "b1_", "W3_", "b4_", "G_", "b_words_"):
        assert np.isfinite(getattr(one, name)).all()
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(one, name), getattr(apart, name))
    assert one.history_ == again.history_ == apart.history_


@pytest.mark.parametrize("settings", [{}, {"selection": "bound"}, {"epochs": 30, "patience": 1}])
def test_an_epoch_that_is_looked_at_late_is_the_same(settings, corpus, monkeypatch):
    late = fitted(VDSH, corpus, **settings)
    monkeypatch.setattr(training, "_one_late", lambda epochs: epochs)
    at_once = fitted(VDSH, corpus, **settings)
    assert late.history_ == at_once.history_
    assert late.best_epoch_ == at_once.best_epoch_
    for name in ("W1_", "W3_", "thresholds_"):
        np.testing.assert_array_equal(getattr(late, name), getattr(at_once, name))


def test_two_records_run_beside_one_another():
    """With one room for both, parts of one's matrix products would be summed up in the other's."""
    made, shapes = torch.Generator("cuda").manual_seed(0), [(100, 10_000), (10_000, 500)]
    pairs = [[torch.randn(s, generator=made, device="cuda") for s in shapes] for _ in range(2)]
    records = [record(lambda a=a, b=b: [a @ b for _ in range(20)]) for a, b in pairs]
    for graph, _ in records:
        graph.replay()
    alone = [[part.clone() for part in parts] for _, parts in records]
    beside = Beside(torch.device("cuda"))
    for _ in range(50):
        with beside():
            records[1][0].replay()
        records[0][0].replay()
        beside.join()
        for (_, parts), wanted in zip(records, alone, strict=True):
            assert all(map(torch.equal, parts, wanted))


@pytest.mark.parametrize("kind", [VDSH, VDSH_S])
def test_it_learns_as_on_a_cpu(kind, corpus):
    found = [fitted(kind, corpus, device=device) for device in ("cuda", "cpu")]
    scores = [max(epoch["validation"] for epoch in hasher.history_) for hasher in found]
    assert min(scores) > 0.9
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_epochs_are_judged_as_codes_are(corpus):
    X, y = corpus
    hasher = fitted(VDSH, corpus)
    said = hasher.history_[hasher.best_epoch_ - 1]["validation"]
    names = sorted(set(y))
    matrix = np.array([[label == name for name in names] for label in y], np.uint8)
    codes = hasher.encode(X)
    measured = expected_precision(codes[800:], matrix[800:], codes[:800], matrix[:800], k=80)
    assert said == pytest.approx(measured.mean(), abs=0.01)


def test_dense_products_are_those_of_the_words(corpus):
    X = corpus[0]
    W = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    for device in (CPU, torch.device("cuda")):
        batches = sparse_batches(in_order(Documents(X, X.data, None, device)), 300)
        found = torch.cat([batch.project(W.to(device)).cpu() for batch in batches])
        np.testing.assert_allclose(found, X @ W.numpy(), rtol=1e-2, atol=1e-2)
