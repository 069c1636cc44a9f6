import numpy as np
import pandas as pd
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


NA = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT]


@pytest.mark.parametrize("missing", NA, ids=repr)
def test_a_missing_label_is_no_class(missing):
    """#16 A5: pd.NA became the class '<NA>', and np.float32 the class 'nan'."""
    expected = ["a", "b"], [True, False, True, False, True]
    for given in (list, pd.Series):
        labels = read_labels(given(["a", missing, ["b", missing], [missing], []]))
        assert (labels.names, labels.known.tolist()) == expected
        assert labels.matrix.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["string", "category", "object"])
def test_a_column_of_a_table_may_have_gaps(kind):
    labels = read_labels(pd.Series(["a", None, "b"], dtype=kind))
    assert labels.names == ["a", "b"] and labels.known.tolist() == [True, False, True]


def test_numbers_with_gaps_keep_their_names():
    labels = read_labels(pd.Series([1, None, 2], dtype="Int64"))
    assert labels.names == ["1", "2"] and labels.known.tolist() == [True, False, True]


def test_given_names_fix_the_columns():
    assert read_labels(["b", "new"], ["a", "b"]).matrix.tolist() == [[0, 1], [0, 0]]


def test_a_0_1_matrix_is_taken_as_it_is():
    matrix = np.array([[0, 1], [1, 1]])
    assert (read_labels(matrix).matrix == matrix).all()
    for wrong in (np.array([[0, 2]]), pd.DataFrame({"a": [1, pd.NA]}), np.array([["a"], [None]])):
        with pytest.raises(InputError, match="0/1 matrix"):
            read_labels(wrong)
