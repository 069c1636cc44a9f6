import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from vdsh import codes
from vdsh.errors import InputError

any_codes = arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=16))


@given(any_codes)
def test_unpacking_undoes_packing(packed):
    assert (codes.pack(codes.unpack(packed)) == packed).all()


@given(any_codes)
def test_hex_round_trip(packed):
    assert (codes.from_hex(codes.to_hex(packed)) == packed).all()


@given(any_codes)
def test_bit_strings_read_as_the_unpacked_bits(packed):
    strings = codes.to_bit_strings(packed)
    assert [[int(bit) for bit in text] for text in strings] == codes.unpack(packed).tolist()


def test_packed_bits_are_big_endian():
    bits = [[1] + [0] * 15]
    assert codes.to_hex(codes.pack(bits)) == ["8000"]


def test_median_halves_the_training_documents():
    scores = np.random.default_rng(0).normal(3, 1, (100, 8)).astype(np.float32)
    bits = codes.binarize(scores, codes.thresholds(scores, "median"))
    assert (bits.sum(axis=0) == 50).all()


def test_sign_gives_one_to_everything_not_negative():
    scores = np.array([[-1.0, 0.0, 2.0]], np.float32)
    assert codes.binarize(scores, codes.thresholds(scores, "sign")).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("n_bits", [0, 4, 12, 20, -8, 1032, 8.0, "32", None, True])
def test_a_length_that_no_code_has_is_refused(n_bits):
    with pytest.raises(InputError, match="multiple of 8 from 8 to 1024. Got"):
        codes.check_n_bits(n_bits)


def test_unknown_threshold_is_refused():
    with pytest.raises(InputError, match="median, sign. Got 'mean'"):
        codes.thresholds(np.zeros((2, 8), np.float32), "mean")


def test_bad_hex_is_refused():
    with pytest.raises(InputError, match="hexadecimal"):
        codes.from_hex(["zz"])
    with pytest.raises(InputError, match="same length"):
        codes.from_hex(["00", "0000"])


@given(any_codes, st.integers(0, 15), st.integers(0, 15))
def test_words_keep_hamming_distances(packed, i, j):
    i, j = i % len(packed), j % len(packed)
    words = codes.to_words(packed)
    distance = int(np.bitwise_count(words[i] ^ words[j]).sum())
    assert distance == int((codes.unpack(packed[i]) != codes.unpack(packed[j])).sum())


@given(any_codes, st.integers(0, 2**32 - 1))
def test_expected_distance_is_the_mean_over_random_bits(packed, seed):
    p = np.random.default_rng(seed).random(8 * packed.shape[1])
    bits = codes.unpack(packed)
    slow = [sum(1 - q if bit else q for bit, q in zip(row, p, strict=True)) for row in bits]
    np.testing.assert_allclose(codes.expected_distances(packed, p), slow, atol=1e-9)


@given(any_codes)
def test_expected_distance_of_sure_bits_is_the_distance(packed):
    bits = codes.unpack(packed)
    found = codes.expected_distances(packed, bits[0])
    assert found.tolist() == (bits != bits[0]).sum(axis=1).tolist()
