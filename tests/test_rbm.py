"""StackedRBM: contrastive divergence, fine-tuning and encoder against slow obvious versions."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from conftest import QUICK, toy_corpus
from vdsh.errors import InputError
from vdsh.hashers.base import Examples
from vdsh.hashers.baselines.rbm import StackedRBM
from vdsh.hashers.baselines.rbm_training import RBM, Autoencoder, dense
from vdsh.hashers.vdsh.batches import sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.model.encoders import LENGTH
from vdsh.model.encoders import scale_lengths as scale
from vdsh.text import BagOfWords

CPU = torch.device("cpu")


def scale_lengths(counts):
    return scale(counts).to_csr()


@pytest.fixture(scope="module")
def counts():
    return BagOfWords().fit_transform(toy_corpus()[0]).astype(np.float32)


@pytest.fixture
def batch(counts):
    inputs = scale_lengths(counts)
    return next(
        iter(sparse_batches(in_order(Documents(Examples(inputs, inputs, None), "counts", CPU)), 30))
    )


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rbms(*sizes):
    pairs = zip(sizes, sizes[1:], strict=False)
    return [RBM(torch.randn(n, m, generator=generator(n)), torch.zeros(n)) for n, m in pairs]


@pytest.mark.parametrize("length", [None, 6.0], ids=["binary", "counts"])
def test_contrastive_divergence_equals_sums_over_single_units(length):
    W, c = torch.randn(4, 3, generator=generator(1)), torch.tensor([0.1, -0.2, 0.0, 0.4])
    v = np.array([[1, 0, 1, 0], [0, 0, 1, 1]], np.float32) * (3 if length else 1)
    rbm = RBM(W.clone(), c.clone(), length)
    with torch.no_grad():
        error = rbm.contrast(torch.as_tensor(v), generator(2))
    w = W.numpy()
    h = torch.rand(2, 3, generator=generator(2)).numpy() < expit(v @ w)
    weights, visible, hidden, squares = np.zeros((4, 3)), np.zeros(4), np.zeros(3), 0.0
    for v0, h0 in zip(v, h, strict=True):
        into = w @ h0 + c.numpy()
        v1 = length * softmax(into) if length else expit(into)
        for j in range(3):
            p0, p1 = expit(v0 @ w[:, j]), expit(v1 @ w[:, j])
            hidden[j] += (p0 - p1) / 2
            for i in range(4):
                weights[i, j] += (v0[i] * p0 - v1[i] * p1) / 2
        visible += (v0 - v1) / 2
        squares += ((v0 - v1) ** 2).sum() / 2
    np.testing.assert_allclose(rbm.W.grad, -weights, atol=1e-5)
    np.testing.assert_allclose(rbm.visible_bias.grad, -visible, atol=1e-5)
    np.testing.assert_allclose(rbm.hidden_bias.grad, -hidden, atol=1e-5)
    assert float(error) == pytest.approx(squares, rel=1e-5)


def test_every_document_is_scaled_to_the_same_length(counts):
    np.testing.assert_allclose(scale_lengths(counts).sum(axis=1), LENGTH, rtol=1e-5)
    assert scale_lengths(0 * counts).sum() == 0


def test_dense_and_sparse_batches_give_the_same_loss(counts, batch):
    network = Autoencoder(rbms(counts.shape[1], 6, 5, 8))
    block = dense(batch, counts.shape[1])
    np.testing.assert_allclose(block.inputs, scale_lengths(counts)[:30].toarray())
    with torch.no_grad():
        losses = [network.loss(b, 4.0, generator(3)) for b in (batch, block)]
    torch.testing.assert_close(*losses)


def test_the_loss_is_the_cross_entropy_of_words(counts, batch):
    network = Autoencoder(rbms(counts.shape[1], 6, 5, 8))
    with torch.no_grad():
        found = float(network.loss(batch, 0.0, generator()))
        W, V = ([p.numpy() for p in parts] for parts in (network.W, network.V))
    x = scale_lengths(counts)[:30].toarray()
    h = expit(expit(expit(x @ W[0]) @ W[1]) @ W[2])
    logits = expit(expit(h @ V[2]) @ V[1]) @ V[0]
    wanted = -(x * np.log(softmax(logits, axis=1))).sum(axis=1).mean()
    assert found == pytest.approx(wanted, rel=1e-4)


def test_every_stage_of_training_lowers_its_loss(counts):
    hasher = StackedRBM(16, random_state=0, **QUICK).fit(counts)
    stages = {}
    for row in hasher.history_:
        stages.setdefault(row["stage"], []).append(row["loss"])
    assert list(stages) == ["layer 1", "layer 2", "layer 3", "autoencoder"]
    assert all(losses[-1] < losses[0] for losses in stages.values())


def test_the_encoder_without_torch_agrees_with_torch(counts, batch):
    hasher = StackedRBM(16, random_state=0, **QUICK).fit(counts)
    network = Autoencoder(rbms(counts.shape[1], 32, 32, 16))
    for i in range(3):
        network.W[i].data = torch.as_tensor(getattr(hasher, f"W{i + 1}_"))
        network.b[i].data = torch.as_tensor(getattr(hasher, f"b{i + 1}_"))
    with torch.no_grad():
        scores = network.code_inputs(batch).numpy()
    np.testing.assert_allclose(hasher.scores(counts[:30]), scores, rtol=1e-4, atol=1e-4)


def test_progress_counts_the_epochs_of_all_stages(counts):
    reports = []
    hasher = StackedRBM(8, pretraining_epochs=2, random_state=0, **(QUICK | {"epochs": 3}))
    hasher.fit(counts, progress=reports.append)
    assert [(r.epoch, r.epochs) for r in reports] == [(i, 9) for i in range(1, 10)]


def test_a_learning_rate_that_diverges_is_named(counts):
    with pytest.raises(InputError, match="diverged.*smaller learning_rate. Got 1e\\+38"):
        StackedRBM(8, learning_rate=1e38, random_state=0, **QUICK).fit(counts)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1. Got 0"),
        ({"noise": -1.0}, "noise must be at least 0. Got -1.0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0. Got 0.0"),
    ],
)
def test_bad_settings_are_refused(setting, message, counts):
    with pytest.raises(InputError, match=message):
        StackedRBM(8, **setting).fit(counts)
