import copy

import numpy as np
import pytest

from conftest import SPACE, SPORT, quick, toy_corpus
from vdsh import TextHasher
from vdsh.codes import to_hex, unpack
from vdsh.errors import InputError
from vdsh.explain import (
    as_fields,
    check_bit,
    explain_bits,
    explain_pair,
    explain_text,
)
from vdsh.explain.effects import encoder_effects, input_spread, made_up_documents
from vdsh.model import as_model

SPACE_TEXT = "the crew of the shuttle left the moon in a rocket"
SPORT_TEXT = "the coach and the team won the match of the season"
# enough for encoder and decoder to tell topics apart
LEARNS = {"epochs": 40, "learning_rate": 0.003, "word_dropout": 0.5}
LEARNS |= {"start": "random", "schedule": "constant"}  # as the paper, whose decoder it has


def telling_bit(hasher):
    """Find the bit that tells the two topics best apart, and which topic has its ones."""
    texts, labels = toy_corpus()
    bits, space = hasher.transform(texts), np.array(labels) == "space"
    gap = bits[space].mean(axis=0) - bits[~space].mean(axis=0)
    bit = int(np.abs(gap).argmax())
    return bit, (SPACE, SPORT) if gap[bit] > 0 else (SPORT, SPACE)


def names(words):
    return [word.word for word in words]


@pytest.fixture(scope="module", params=["vdsh", "vdsh-s", "vdsh-sp", "deep"])
def generative(request):
    """Each model that has a decoder, and one whose decoder has a hidden layer."""
    deep = request.param == "deep"
    model = "vdsh-s" if deep else request.param
    settings = quick(model, **LEARNS, label_weight=5, decoder_size=24 if deep else 0)
    return TextHasher(model, n_bits=8, random_state=0, **settings).fit(*toy_corpus())


@pytest.fixture(scope="module")
def baseline():
    return TextHasher("itq", n_bits=8, random_state=0).fit(toy_corpus()[0])


def test_words_of_a_topic_push_the_bit_that_tells_the_topics_apart(generative):
    bit, (ones, zeros) = telling_bit(generative)
    found = explain_bits(generative, n_words=5)[bit]
    assert set(names(found.ones)) <= set(ones)
    assert set(names(found.zeros)) <= set(zeros)


def test_encoder_and_decoder_agree(generative):
    correlations = []
    for one in explain_bits(generative, n_words=100):
        encoder = signed(one.ones, one.zeros)
        decoder = signed(one.decoder_ones, one.decoder_zeros)
        assert encoder.keys() == decoder.keys() == {*SPACE, *SPORT}
        pairs = [(encoder[word], decoder[word]) for word in encoder]
        correlations.append(np.corrcoef(np.transpose(pairs))[0, 1])
    assert np.mean(correlations) > 0.4


def signed(ones, zeros):
    return dict(ones) | {word: -weight for word, weight in zeros}


@pytest.mark.parametrize("model", ["lsh", "sph", "sth", "rbm", "ksh", "shttm", "itq"])
def test_models_without_a_decoder_are_explained_by_their_encoder(model):
    settings = quick(model, epochs=5)
    hasher = TextHasher(model, n_bits=8, random_state=0, **settings).fit(*toy_corpus())
    bit, (ones, _) = telling_bit(hasher)
    found = explain_bits(hasher, n_words=3)[bit]
    assert found.decoder_ones is None
    assert set(names(found.ones)) & set(ones)
    assert explain_text(hasher, SPACE_TEXT).code == to_hex(hasher.encode([SPACE_TEXT]))[0]


@pytest.mark.parametrize("model", ["rbm", "lsh", "ksh"])
def test_models_without_a_decoder_answer_to_a_word_alone(model):
    settings = quick(model, epochs=2, weighting="tf")
    hasher = TextHasher(model, n_bits=8, random_state=0, **settings).fit(*toy_corpus())
    counts = hasher.vectorizer_.transform(["moon", ""])
    alone, empty = hasher.hasher_.scores(counts)
    for one in explain_bits(hasher, n_words=100):
        weight = signed(one.ones, one.zeros).get("moon", 0.0)
        assert weight == pytest.approx(alone[one.bit] - empty[one.bit], rel=1e-4, abs=1e-6)


def test_the_gradient_is_that_of_the_encoder(fitted):
    """Near enough to nothing, a word moves the scores of an average document by the gradient."""
    inner, rng = fitted.hasher_, np.random.RandomState(0)
    inputs = made_up_documents(fitted.model_).to_csr().toarray().astype(np.float64)
    step = rng.normal(size=16) * 1e-4

    def mean_scores(x):
        t1 = np.maximum(x @ inner.W1_ + inner.b1_, 0)
        return (np.maximum(t1 @ inner.W2_ + inner.b2_, 0) @ inner.W3_).mean(axis=0)

    moved = (mean_scores(inputs + step) - mean_scores(inputs - step)) / 2
    gradient = encoder_effects(fitted.model_) / input_spread(fitted.model_)  # (n_bits, n_terms)
    assert gradient @ step == pytest.approx(moved, rel=0.05, abs=1e-6)


def test_weights_are_positive_and_fall(fitted):
    for found in explain_bits(fitted, n_words=6):
        for words in (found.ones, found.zeros, found.decoder_ones, found.decoder_zeros):
            weights = [word.weight for word in words]
            assert weights == sorted(weights, reverse=True)
            assert all(weight > 0 for weight in weights)
            assert len(words) <= 6


def test_weightings_without_document_frequencies_are_explained_too():
    settings = quick("vdsh", weighting="tf", decoder_size=0, threshold="median", **LEARNS)
    hasher = TextHasher("vdsh", n_bits=8, random_state=0, **settings).fit(*toy_corpus())
    bit, (ones, _) = telling_bit(hasher)
    found = explain_bits(hasher, n_words=5)[bit]
    assert set(names(found.ones)) <= set(ones)
    assert set(names(found.decoder_ones)) <= set(ones)


def test_a_word_counts_as_much_as_the_score_falls_without_it(fitted):
    found = explain_text(fitted, SPACE_TEXT, n_words=100)
    whole = fitted.hasher_.scores(fitted.vectorizer_.transform([SPACE_TEXT]))[0]
    for word in ("crew", "shuttle", "moon", "rocket"):
        without = fitted.vectorizer_.transform([SPACE_TEXT.replace(word, "")])
        fall = whole - fitted.hasher_.scores(without)[0]
        for one in found.bits:
            weight = dict(one.words).get(word, 0.0)
            assert weight == pytest.approx(fall[one.bit] * (1 if one.value else -1), abs=1e-6)


def test_a_weight_above_the_margin_means_that_the_bit_flips_without_the_word(generative):
    text = "moon crew goal match"
    found, flips = explain_text(generative, text, n_words=100), 0
    for word in text.split():
        without = generative.transform([text.replace(word, "")])[0]
        for one in found.bits:
            flips += without[one.bit] != one.value
            above = dict(one.words).get(word, 0.0) > abs(one.margin)
            assert above == (without[one.bit] != one.value)
    assert flips


def test_a_text_explained_has_the_code_that_encode_gives(fitted):
    found = explain_text(fitted, SPACE_TEXT)
    assert found.code == to_hex(fitted.encode([SPACE_TEXT]))[0]
    assert [one.value for one in found.bits] == fitted.transform([SPACE_TEXT])[0].tolist()
    assert [one.bit for one in found.bits] == list(range(16))
    assert all((one.margin > 0) == one.value for one in found.bits)


def test_probabilities_are_those_of_draws_from_the_posterior(generative):
    found = explain_text(generative, SPACE_TEXT)
    inner = generative.hasher_
    mu, sigma = inner.posterior(generative.vectorizer_.transform([SPACE_TEXT]))
    s = np.random.RandomState(0).normal(mu, sigma, (40_000, 8))
    drawn = s > inner.thresholds_
    chances = [one.probability for one in found.bits]
    assert drawn.mean(axis=0) == pytest.approx(chances, abs=0.01)
    values = np.array([one.value for one in found.bits])
    assert (drawn == values).mean() == pytest.approx(found.confidence, abs=0.005)
    assert (drawn != values).sum(axis=1).mean() == pytest.approx(found.expected_wrong, abs=0.05)


def test_a_text_gets_the_probabilities_it_gets_among_others(fitted):
    together = as_model(fitted).bit_probabilities([SPACE_TEXT, SPORT_TEXT])
    for chances, text in zip(together, (SPACE_TEXT, SPORT_TEXT), strict=True):
        found = explain_text(fitted, text)
        assert chances == pytest.approx([one.probability for one in found.bits])
        assert found.confidence == pytest.approx(np.maximum(chances, 1 - chances).mean())


def test_a_text_of_both_topics_is_less_sure(generative):
    texts = "moon crew orbit launch", "moon crew goal match"
    pure, mixed = (explain_text(generative, text).confidence for text in texts)
    assert pure > mixed


def test_two_texts_agree_where_their_codes_do_and_by_words_of_both(generative):
    a, b = "moon crew rocket orbit", "launch crew rocket satellite"
    pair = explain_pair(generative, a, b, n_words=100)
    same = np.equal(*generative.transform([a, b]))
    assert pair.agreement.agree == np.flatnonzero(same).tolist()
    assert pair.agreement.differ == np.flatnonzero(~same).tolist()
    assert pair.text == explain_text(generative, a, n_words=100)
    shared = pair.agreement.shared_words
    assert set(names(shared)) <= {"crew", "rocket"} != set()
    for word in shared:
        pushes = [
            min(dict(side.bits[bit].words)[word.word] for side in (pair.text, pair.other))
            for bit in word.bits
        ]
        assert min(pushes) > 0
        assert set(word.bits) <= set(pair.agreement.agree)
        assert word.weight == pytest.approx(sum(pushes), rel=1e-5)


def test_texts_without_a_word_in_common_share_none(fitted):
    agreement = explain_pair(fitted, "moon crew", "goal match").agreement
    assert agreement.shared_words == []
    assert len(agreement.agree) + len(agreement.differ) == 16


def test_a_pair_becomes_the_json_of_the_service(fitted):
    fields = as_fields(explain_pair(fitted, SPACE_TEXT, SPORT_TEXT))
    assert fields["code"] == to_hex(fitted.encode([SPACE_TEXT]))[0]
    assert fields["other"]["bits"][0].keys() >= {"bit", "value", "probability", "words"}
    assert fields["agreement"].keys() == {"agree", "differ", "shared_words"}
    bit = as_fields(explain_bits(fitted)[0])
    assert bit.keys() >= {"ones", "zeros", "balance", "entropy", "unused", "duplicates"}
    assert bit["ones"][0].keys() == {"word", "weight"}


def test_bit_health_is_that_of_training(fitted):
    hasher = copy.deepcopy(fitted)
    hasher.model_.learned |= {"unused_bits_": [3], "duplicated_bits_": [[5, 1], [7, 1]]}
    bits = explain_bits(hasher, n_words=1)
    assert [one.bit for one in bits if one.unused] == [3]
    assert {one.bit: one.duplicates for one in bits if one.duplicates} == {
        1: [5, 7], 5: [1, 7], 7: [1, 5]
    }  # fmt: skip
    assert bits[0].balance == pytest.approx(fitted.hasher_.bit_balance_[0])
    p = bits[0].balance
    assert bits[0].entropy == pytest.approx(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))
    assert bits[0].correlation is None


def test_bit_health_can_be_measured_on_documents():
    texts = toy_corpus(seed=1)[0][:30]
    fitted = TextHasher("lsh", 16, random_state=0).fit(texts)  # medians: no bit is constant
    bits = fitted.transform(texts)
    expected = np.abs(np.corrcoef(bits, rowvar=False)) - np.eye(16)
    for one in explain_bits(fitted, n_words=1, texts=texts):
        p = bits[:, one.bit].mean()
        assert one.balance == pytest.approx(p)
        assert one.entropy == pytest.approx(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))
        assert abs(one.correlation) == pytest.approx(expected[one.bit].max())
        assert expected[one.bit, one.correlated] == pytest.approx(expected[one.bit].max())


def test_a_constant_bit_correlates_with_none(baseline):
    found = explain_bits(baseline, n_words=1, texts=[SPACE_TEXT, SPACE_TEXT])
    assert {one.correlation for one in found} == {0.0}
    assert all(one.unused for one in found)


def test_a_text_with_very_many_words_is_explained_by_its_heaviest():
    words = [f"word{i}" for i in range(1200)]
    texts = [" ".join(words[i::40]) for i in range(40)]
    hasher = TextHasher("lsh", n_bits=8, random_state=0).fit(texts)
    text = " ".join(words) + " word7" * 9
    found = explain_text(hasher, text, n_words=2000)
    assert found.code == to_hex(hasher.encode([text]))[0]
    assert 100 <= len(found.bits[0].words) < 1200
    assert "word7" in names(found.bits[0].words)


@pytest.mark.parametrize(
    ("text", "said"), [("", "is empty"), ("  \n", "is empty"), ("zyx the of", "no word that")]
)
def test_a_text_without_known_words_cannot_be_explained(fitted, text, said):
    with pytest.raises(InputError, match=said):
        explain_text(fitted, text)
    with pytest.raises(InputError, match=said):
        explain_pair(fitted, SPACE_TEXT, text)


@pytest.mark.parametrize("bit", [-1, 16])
def test_an_unknown_bit_is_refused(fitted, bit):
    with pytest.raises(InputError, match="the bits of this model are 0 to 15"):
        check_bit(fitted, bit)


def test_senseless_numbers_of_words_and_documents_are_refused(fitted):
    with pytest.raises(InputError, match="at least 1. Got 0"):
        explain_text(fitted, SPACE_TEXT, n_words=0)
    with pytest.raises(InputError, match="At least two documents"):
        explain_bits(fitted, texts=[SPACE_TEXT])


def test_a_model_without_a_posterior_does_not_say_how_sure_it_is(baseline):
    found = explain_text(baseline, SPACE_TEXT)
    assert found.confidence is None
    assert found.expected_wrong is None
    assert found.bits[0].probability is None
    assert unpack([[int(found.code, 16)]])[0].tolist() == [one.value for one in found.bits]
    with pytest.raises(InputError, match="does not say how sure"):
        as_model(baseline).bit_probabilities([SPACE_TEXT])


def test_a_loaded_model_explains_like_the_one_that_was_saved(fitted, model_folder):
    loaded = TextHasher.load(model_folder)
    assert explain_bits(loaded) == explain_bits(fitted)
    assert explain_text(loaded, SPACE_TEXT) == explain_text(fitted, SPACE_TEXT)
