"""How much each word of the vocabulary moves each bit, seen from the encoder and the decoder."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.special import logsumexp

from vdsh.codes import Scores
from vdsh.model import Decoder, Model
from vdsh.model.encoders import Network
from vdsh.text.counts import Counts

_DOCUMENTS = 64  # made-up ones to average a gradient over
_CONTEXTS = 256  # latent vectors to average a hidden decoder layer over


def encoder_effects(model: Model) -> Scores:
    """Compute how the score of each bit moves with each word, of shape (n_bits, n_terms).

    The unit is a change of the score per standard deviation of the word's weight over the corpus,
    so that words nearly every document has, or nearly none, do not come first. (For models
    without inverse document frequencies it is the change per unit of weight.)

    For VDSH this is the gradient of the encoder, averaged over made-up documents: words drawn by
    their document frequencies, as many as a document has. Other models answer to each word alone,
    less their answer to an empty document.

    `docs/results.md` compares it with one-word documents: as good, in a sixth of the time.
    """
    network = model.encoder
    effects = _mean_gradient(model, network) if isinstance(network, Network) else _alone(model)
    return (effects * input_spread(model)[:, None]).T


def decoder_effects(model: Model, decoder: Decoder) -> Scores:
    """Compute how each word's probability answers to each dimension, of shape (n_bits, n_terms).

    The change of log P(w | s) as the dimension goes from one below its threshold to one above it,
    the others staying in the middle of the corpus (with a hidden decoder layer: averaged over
    places around it), times the word's information: -ln of its document frequency, times the
    standard deviation of its presence.
    """
    middle, n_bits = model.thresholds, model.n_bits
    others = np.zeros((1, n_bits))
    if decoder.D is not None:
        others = np.random.RandomState(0).normal(size=(_CONTEXTS, n_bits))
    change = np.empty((n_bits, len(decoder.G)), np.float32)
    for bit in range(n_bits):
        high, low = middle + others, middle + others
        high[:, bit], low[:, bit] = middle[bit] + 1, middle[bit] - 1
        change[bit] = (decoder.hidden(high) - decoder.hidden(low)).mean(axis=0)
    logits: Scores = change @ decoder.G
    centre = decoder.hidden(middle + others).mean(axis=0) @ decoder.G + decoder.b_words
    norm = logsumexp(centre + logits / 2, axis=1) - logsumexp(centre - logits / 2, axis=1)
    frequency = document_frequencies(model)
    effects: Scores = logits - norm[:, None]
    if frequency is not None:
        effects *= -np.log(frequency) * np.sqrt(frequency * (1 - frequency))
    return effects


def document_frequencies(model: Model) -> NDArray[Any] | None:
    """Return the share of training documents with each word, where the model knows it."""
    if model.idf is None:
        return None
    frequencies: NDArray[Any] = np.minimum(np.exp(1 - model.idf), 1)
    return frequencies


def input_spread(model: Model) -> Scores:
    """Return the standard deviation of each word's weight over the corpus, or 1 if not known."""
    frequency = document_frequencies(model)
    if frequency is None or model.idf is None:
        return np.ones(len(model.words), np.float32)
    length = np.sqrt((frequency * model.idf**2).sum())
    spread: Scores = model.idf * np.sqrt(frequency * (1 - frequency)) / length
    return spread


def _mean_gradient(model: Model, network: Network) -> Scores:
    """Average d scores / d weights over made-up documents: of shape (n_terms, n_bits)."""
    inputs = made_up_documents(model).to_csr()
    t1 = inputs @ network.W1 + network.b1
    t2 = np.maximum(t1, 0) @ network.W2 + network.b2
    paths = np.zeros((len(network.b1), model.n_bits), np.float32)
    for on_1, on_2 in zip(t1 > 0, t2 > 0, strict=True):  # what the ReLUs let through
        paths[on_1] += network.W2[np.ix_(on_1, on_2)] @ network.W3[on_2]
    gradient: Scores = network.W1 @ (paths / np.float32(inputs.shape[0]))
    return gradient


def made_up_documents(model: Model) -> Counts:
    """Draw documents whose words are independent, each as frequent as in the corpus."""
    rng = np.random.RandomState(0)
    frequency = document_frequencies(model)
    if frequency is None:
        frequency = np.full(len(model.words), min(1, 50 / len(model.words)), np.float32)
    has = rng.uniform(size=(_DOCUMENTS, len(frequency))) < frequency
    return model.weigh(csr_array(has.astype(np.float32)))


def _alone(model: Model) -> Scores:
    """Compute the scores of one-word documents less those of an empty one."""
    words = eye_array(len(model.words), dtype=np.float32, format="csr")
    return model.scores_of(words) - model.scores([""])
