"""Dense layers give a document the same bits, alone and among others."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from vdsh import jit
from vdsh.model import network
from vdsh.text.counts import Counts


def dense(a, W, b, least):
    return network.layer(a, W, b, least)


def sparse(a, W, b, least):
    rows = csr_array(a)
    inputs = Counts(rows.data, rows.indices, rows.indptr, rows.shape)
    return network.sparse_layer(inputs, W, b, least)


def weights(n_in, n_out, n_docs=300):
    rng = np.random.default_rng(n_in)
    a = np.maximum(rng.normal(size=(n_docs, n_in)), 0).astype(np.float32)
    W, b = rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)
    return a, W.astype(np.float32), b.astype(np.float32)


@pytest.mark.parametrize("layer", [dense, sparse])
@pytest.mark.parametrize("least", [-np.inf, 0.0])
@pytest.mark.parametrize(
    "n_in, n_out", [(1000, 32), (500, 500), (200, 200), (100, 100), (500, 96), (33, 17), (8, 16)]
)
def test_few_documents_get_the_bits_they_get_among_many(layer, least, n_in, n_out):
    a, W, b = weights(n_in, n_out)
    every = layer(a, W, b, least)
    np.testing.assert_allclose(every, np.maximum(a @ W + b, least), rtol=1e-4, atol=1e-4)
    # With BLAS a batch of 40 had other bits with AVX-512, each third row of one with AVX2.
    for n in (1, 2, 5, 16, 17, 40, 260):
        assert layer(a[3 : 3 + n], W, b, least).tobytes() == every[3 : 3 + n].tobytes()
    backward = layer(np.ascontiguousarray(a[::-1]), W, b, least)
    assert backward[::-1].tobytes() == every.tobytes()
    assert layer(a[:0], W, b, least).shape == (0, n_out)


@pytest.mark.parametrize("layer", [dense, sparse])
def test_layers_of_other_kinds_are_near_those_of_blas(layer):
    a, W, b = weights(64, 32)
    for other in (np.asfortranarray(W), W.astype(np.float64)):
        assert np.allclose(layer(a[:1], other, b, -np.inf), a[:1] @ W + b, atol=1e-4)


@pytest.mark.parametrize("layer", [dense, sparse])
def test_layers_have_the_same_bits_with_and_without_kernels(layer, monkeypatch):
    a, W, b = weights(300, 24, n_docs=50)
    found = []
    for loaded in (False, True):
        monkeypatch.setattr(network, "compiled", lambda _, loaded=loaded: loaded)
        found.append(layer(a, W, b, 0.0))
    assert found[0].tobytes() == found[1].tobytes()


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
