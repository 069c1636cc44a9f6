import copy

import numpy as np
import pytest

from conftest import SPACE, SPORT, quick, toy_corpus
from vdsh import TextHasher
from vdsh.codes import to_hex, unpack
from vdsh.errors import InputError
from vdsh.explain import sample
from vdsh.explain.samples import in_code

TOPICS = {"space": set(SPACE), "sport": set(SPORT)}


@pytest.fixture(scope="module", params=["vdsh-s", "vdsh-sp", "deep"])
def labelled(request):
    """Each model that has learned labels, and one whose decoder has a hidden layer."""
    deep = request.param == "deep"
    model = "vdsh-s" if deep else request.param
    settings = quick(model, epochs=60, learning_rate=0.005, decoder_size=24 if deep else 0)
    return TextHasher(model, n_bits=8, random_state=0, **settings).fit(*toy_corpus())


def share(words, topic):
    return np.mean([word in TOPICS[topic] for word in words])


@pytest.mark.parametrize("topic", ["space", "sport"])
def test_bags_drawn_for_a_text_hold_the_words_of_its_topic(labelled, topic):
    text = " ".join(sorted(TOPICS[topic])[:5])
    draws = sample(labelled, 20, text=text, length=40)
    assert np.mean([share(draw.bag, topic) for draw in draws]) > 0.65


def test_bags_drawn_for_a_code_hold_the_words_of_its_documents(labelled):
    texts, labels = toy_corpus()
    for text, topic in zip(texts[:2], labels[:2], strict=True):
        draws = sample(labelled, 20, code=to_hex(labelled.encode([text]))[0], length=40)
        assert np.mean([share(draw.bag, topic) for draw in draws]) > 0.6


def test_draws_for_a_code_have_that_code(fitted):
    assert {draw.code for draw in sample(fitted, 50, code="5A0F")} == {"5a0f"}


def test_draws_for_a_code_are_those_draws_from_the_prior_that_have_it(labelled):
    inner = labelled.hasher_
    bits = unpack([[0b10110010]])[0]
    drawn = in_code(inner.thresholds_, bits, 50_000, np.random.RandomState(0))
    prior = np.random.RandomState(1).normal(size=(200_000, 8))
    for bit in range(8):
        kept = prior[(prior[:, bit] > inner.thresholds_[bit]) == bits[bit], bit]
        quantiles = [np.quantile(values, (0.1, 0.5, 0.9)) for values in (drawn[:, bit], kept)]
        assert quantiles[0] == pytest.approx(quantiles[1], abs=0.05)


def test_the_prior_gives_both_topics(labelled):
    bags = [draw.bag for draw in sample(labelled, 60, length=30)]
    shares = [share(bag, "space") for bag in bags]
    assert min(shares) < 0.35
    assert max(shares) > 0.65


def test_the_same_seed_gives_the_same_draws(fitted):
    assert sample(fitted, random_state=3) == sample(fitted, random_state=3)
    assert sample(fitted, random_state=3) != sample(fitted, random_state=4)


def test_words_come_with_their_probabilities_and_bags_follow_them(fitted):
    (draw,) = sample(fitted, 1, n_words=100, length=30_000)
    chances = dict(draw.words)
    assert list(chances.values()) == sorted(chances.values(), reverse=True)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-4)
    for word, chance in chances.items():
        assert draw.bag.count(word) / 30_000 == pytest.approx(chance, abs=0.015)
    assert {word for word, weight in draw.distinctive if weight > 0} < set(chances)


def test_a_distinctive_word_is_more_probable_than_in_the_middle_of_the_corpus(fitted):
    model = fitted.model_
    middle = np.exp(model.decoder.word_log_probabilities(model.thresholds[None]))[0]
    vocabulary = list(model.words)
    for draw in sample(fitted, 5, n_words=100):
        chances = dict(draw.words)
        for word, weight in draw.distinctive:
            p, p0 = chances[word], middle[vocabulary.index(word)]
            assert weight == pytest.approx(p * np.log(p / p0), rel=1e-3, abs=1e-6)


def test_numpy_decoders_equal_those_of_torch(labelled):
    torch = pytest.importorskip("torch")
    from vdsh.hashers.vdsh.network import Network

    inner = labelled.hasher_
    network = Network(inner, 16, 2, 0, torch.Generator())
    names = network.state_dict().keys()
    network.load_state_dict({name: torch.from_numpy(getattr(inner, f"{name}_")) for name in names})
    s = np.random.RandomState(0).normal(size=(5, 8)).astype(np.float32)
    with torch.no_grad():
        words = torch.log_softmax(network.word_logits(torch.from_numpy(s)), -1).numpy()
    decoder = labelled.model_.decoder
    assert decoder.word_log_probabilities(s) == pytest.approx(words, abs=1e-5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"code": "ab"}, "codes of 16 bits, 4 hexadecimal digits. Got 8 bits"),
        ({"code": "wxyz"}, "Not a hexadecimal code"),
        ({"text": ""}, "is empty"),
        ({"text": "zyx"}, "no word that the model knows"),
        ({"text": "moon", "code": "abcd"}, "give one of them, or none"),
        ({"n": 0}, "at least 1"),
        ({"length": 0}, "at least 1"),
        ({"n_words": 0}, "at least 1"),
    ],
)
def test_bad_requests_are_refused_with_a_reason(fitted, given, said):
    with pytest.raises(InputError, match=said):
        sample(fitted, **given)


def test_a_model_without_a_decoder_says_so():
    hasher = TextHasher("lsh", n_bits=8, random_state=0).fit(toy_corpus()[0])
    with pytest.raises(InputError, match="'lsh' only encodes"):
        sample(hasher)


def test_draws_for_a_code_stay_finite_beside_thresholds_far_out(fitted):
    hasher = copy.deepcopy(fitted)
    hasher.hasher_.thresholds_ = np.tile(np.float32([-60, 60]), 8)
    for code in ("5555", "aaaa"):  # on the far side of each threshold, and on the near side
        draws = sample(hasher, 20, code=code)
        assert {draw.code for draw in draws} == {code}
        assert all(0 < word.weight <= 1.0001 for draw in draws for word in draw.words)
