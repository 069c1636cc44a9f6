import numpy as np
import pytest

from vdsh.errors import InputError
from vdsh.labels import read_labels


def test_strings_lists_numbers_and_none():
    labels = read_labels(["a", ["b", "a"], None, [], 3, float("nan")])
    assert labels.names == ["3", "a", "b"]
    assert labels.matrix.tolist() == [
        [0, 1, 0],
        [0, 1, 1],
        [0, 0, 0],
        [0, 0, 0],
        [1, 0, 0],
        [0] * 3,
    ]
    assert labels.known.tolist() == [True, True, False, True, True, False]


def test_given_names_fix_the_columns():
    assert read_labels(["b", "new"], ["a", "b"]).matrix.tolist() == [[0, 1], [0, 0]]


def test_a_0_1_matrix_is_taken_as_it_is():
    matrix = np.array([[0, 1], [1, 1]])
    assert (read_labels(matrix).matrix == matrix).all()
    with pytest.raises(InputError, match="0/1 matrix"):
        read_labels(np.array([[0, 2]]))
