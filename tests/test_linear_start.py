"""Where training begins: the linear map from words to what a code has to tell."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, random_array
from sklearn.linear_model import Ridge

from conftest import QUICK, toy_corpus
from vdsh.codes import unpack
from vdsh.hashers import VDSH, VDSH_S, LinearHashing
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh.batches import sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order
from vdsh.hashers.vdsh.linear_map import regress, soft_signs, turn
from vdsh.hashers.vdsh.linear_start import start_from_labels, start_from_places
from vdsh.hashers.vdsh.network import Network
from vdsh.text import BagOfWords


@pytest.fixture
def words():
    return csr_array(random_array((60, 20), density=0.2, rng=0, dtype=np.float32))


@pytest.fixture
def dense():
    """Documents of more than 15 different words, which are not short."""
    return csr_array(random_array((60, 20), density=0.9, rng=0, dtype=np.float32))


@pytest.fixture
def told():
    return np.random.RandomState(1).normal(size=(60, 6)).astype(np.float32)


def network(n_bits=8, hidden_size=40):
    hasher = VDSH(n_bits, decoder_size=10)
    hasher.hidden_size_, hasher.dropout_ = hidden_size, 0.0
    return Network(hasher, 20, 0, 0, torch.Generator().manual_seed(0))


def means(network, words):
    documents = Documents(Examples(words, words, None), "counts", torch.device("cpu"))
    (batch,) = sparse_batches(in_order(documents), 100)
    with torch.no_grad():
        return network.posterior(network.hidden(batch)).mu.numpy()


def test_the_regression_is_that_of_scikit_learn(words, told):
    expected = Ridge(alpha=0.006, fit_intercept=False).fit(words.toarray(), told).coef_.T
    W, z = regress(words, told, 3e-4)
    np.testing.assert_allclose(W, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(z, words @ W, rtol=1e-4, atol=1e-4)


def test_a_network_begins_near_the_signs_of_the_turned_places(dense, told):
    begun = network()
    start_from_places(begun, dense, told, 0)
    turned, found = turn(told, 8, 0), means(begun, dense)
    _, line = regress(dense, soft_signs(turned), 3e-4)
    wanted = line - line.mean(axis=0)
    same = [np.corrcoef(found[:, i], wanted[:, i])[0, 1] for i in range(8)]
    assert min(same) > 0.95  # the rest of the nodes begin by chance


def test_a_short_code_begins_with_more_coordinates_than_bits(dense):
    told = np.random.RandomState(1).normal(size=(60, 12)).astype(np.float32)
    begun = network(n_bits=8)
    start_from_places(begun, dense, told, 0)
    _, line = regress(dense, told - told.mean(axis=0), 1e-3)
    found = means(begun, dense)
    known = np.linalg.lstsq(np.c_[line, np.ones(60)], found, rcond=None)[0]
    missed = np.c_[line, np.ones(60)] @ known - found
    assert np.square(missed).mean() < 0.1 * found.var()  # all bits come from the coordinates
    assert np.linalg.matrix_rank(known[:12]) == 8  # and each from others of them


def test_turned_places_keep_their_distances(told):
    turned = turn(told, 8, 0)
    before = np.linalg.norm(told[:, None] - told[None], axis=2)
    after = np.linalg.norm(turned[:, None] - turned[None], axis=2)
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-3)


def test_with_too_few_nodes_some_bits_begin_as_the_line_and_the_rest_by_chance(words, told):
    """#31 C3: all of the network began by chance, and nobody was told."""
    begun, by_chance = network(hidden_size=13), network(hidden_size=13)
    start_from_labels(begun, words, told, 0)
    _, line = regress(words, turn(told, 8, 0)[:, :6], 1e-3)
    found = means(begun, words)
    same = [np.corrcoef(found[:, i], line[:, i])[0, 1] for i in range(6)]
    assert min(same) > 0.95
    assert torch.equal(begun.W1[:, 12:], by_chance.W1[:, 12:])
    assert begun.W3[:, 6:].abs().max() > 0


def test_soft_signs_are_signs_far_from_zero_and_in_proportion_near_it():
    targets = np.array([[-8, 0.02], [-0.1, 2], [0.1, -2], [8, -0.02]], np.float32)
    softened = soft_signs(targets)
    assert (np.sign(softened) == np.sign(targets)).all()
    assert np.abs(softened[[0, 3], 0]).min() > 0.99
    assert np.abs(softened[[1, 2], 0]).max() < 0.1
    assert (soft_signs(np.zeros((3, 2), np.float32)) == 0).all()


@pytest.mark.parametrize("n_bits", [32, 64])
def test_the_start_and_linear_hashing_learn_the_same_codes(n_bits):
    counts = BagOfWords().fit_transform(toy_corpus(200)[0]).astype(np.float32)
    linear = LinearHashing(n_bits, random_state=0).fit(counts)
    network = VDSH(n_bits, random_state=0, learning_rate=1e-12, epochs=1).fit(counts)
    same = linear.transform(counts) == network.transform(counts)
    assert same.mean() > 0.95  # nodes beside the start's begin by chance


def test_words_that_tell_nothing_do_no_harm(told):
    begun = network()
    start_from_places(begun, csr_array((60, 20), dtype=np.float32), told, 0)
    assert all(torch.isfinite(each).all() for each in begun.parameters())


@pytest.mark.parametrize("kind", [VDSH, VDSH_S])
def test_one_epoch_tells_topics_apart_only_from_this_start(kind):
    texts, labels = toy_corpus()
    counts = BagOfWords().fit_transform(texts).astype(np.float32)
    settings = QUICK | {"epochs": 1, "learning_rate": 1e-5, "neighbor_share": 0.5}
    apart = {}
    for start in ("linear", "random"):
        hasher = kind(8, random_state=0, start=start, **settings)
        bits = unpack(hasher.fit(counts, labels).encode(counts)).astype(int)
        distances = np.abs(bits[:, None] - bits[None]).sum(axis=2)
        same = np.array(labels)[:, None] == np.array(labels)[None]
        apart[start] = distances[~same].mean() - distances[same].mean()
    assert apart["linear"] > apart["random"] + 1
