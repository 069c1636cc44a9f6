"""Dense layers give a document the same bits, alone and among others."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import random_array

from vdsh import jit
from vdsh.model import network as products
from vdsh.model.network import layer as linear_layer
from vdsh.text.counts import Counts


def relu_layer(a, W, b):
    return linear_layer(a, W, b, 0.0)


@pytest.fixture
def known(monkeypatch):
    """What is known of BLAS here, forgotten before and after."""
    runs = {}
    monkeypatch.setattr(products, "_runs", runs)
    monkeypatch.setattr(products, "compiled", lambda seconds: True)
    return runs


def layer(n_in, n_out, n_docs=300):
    rng = np.random.default_rng(n_in)
    a = np.maximum(rng.normal(size=(n_docs, n_in)), 0).astype(np.float32)
    W, b = rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)
    return a, W.astype(np.float32), b.astype(np.float32)


@pytest.mark.parametrize(
    "n_in, n_out", [(1000, 32), (500, 500), (200, 200), (100, 100), (500, 96), (33, 17), (8, 16)]
)
@pytest.mark.parametrize("product", [relu_layer, linear_layer])
def test_few_documents_get_the_bits_they_get_among_many(known, product, n_in, n_out):
    a, W, b = layer(n_in, n_out)
    every = product(a, W, b)
    for n in (1, 2, 5, products.FEW, 17, 40, 260):  # #32: a batch of 40 had other bits with AVX-512
        assert product(a[3 : 3 + n], W, b).tobytes() == every[3 : 3 + n].tobytes()
    assert (n_in, n_out) in known
    assert product(a[:0], W, b).shape == (0, n_out)


def test_blas_multiplies_where_it_is_not_known_how_it_adds(known, monkeypatch):
    a, W, b = layer(100, 24)
    monkeypatch.setattr(products, "_multiply", lambda a, W, length: np.zeros((len(a), 24)))
    assert relu_layer(a[:1], W, b).tobytes() == relu_layer(a, W, b)[:1].tobytes()
    assert known == {(100, 24): 0}


def test_layers_of_other_kinds_are_left_to_blas(known):
    a, W, b = layer(64, 32)
    for other in (np.asfortranarray(W), W.astype(np.float64)):
        assert np.allclose(linear_layer(a[:1], other, b), a[:1] @ W + b, atol=1e-4)
    assert known == {}


def test_blas_gets_its_threads_back_when_the_last_has_finished(monkeypatch):
    class Controller:
        limits = [2]

        def limit(self, *, limits, user_api):
            self.limits.append(limits)
            return self

        def restore_original_limits(self):
            self.limits.pop()

    monkeypatch.setattr(jit, "_controller", lambda with_scipy: Controller())
    with jit.one_thread_each():
        with jit.one_thread_each():
            assert Controller.limits == [2, 1]
        assert Controller.limits == [2, 1]
    assert Controller.limits == [2]
    with pytest.raises(ZeroDivisionError), jit.one_thread_each():
        1 / 0  # noqa: B018
    assert Controller.limits == [2]


LATE = """
import numpy
from vdsh import jit
with jit.one_thread_each():  # a model that encodes
    pass
import scipy.linalg  # to learn another, with a BLAS of its own
from threadpoolctl import threadpool_info, threadpool_limits
threadpool_limits(2)  # wherever this runs
with jit.one_thread_each():
    inside = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
after = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
print(set(inside), max(after))
"""


def test_a_library_that_is_loaded_later_gets_one_thread_too():
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "{1} 2\n"


def test_a_sparse_product_has_the_same_bits_with_and_without_kernels(monkeypatch):
    rows = random_array((50, 300), density=0.1, dtype=np.float32, rng=0).tocsr()
    inputs = Counts(rows.data, rows.indices, rows.indptr, rows.shape)
    W = np.random.default_rng(0).normal(size=(300, 24)).astype(np.float32)
    found = []
    for loaded in (False, True):
        monkeypatch.setattr(products, "compiled", lambda _, loaded=loaded: loaded)
        found.append(products.sparse_product(inputs, W))
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0], rows @ W, rtol=1e-5, atol=1e-5)
    doubled = products.sparse_product(inputs._replace(data=rows.data.astype(float)), W)
    assert doubled.dtype == np.float64
