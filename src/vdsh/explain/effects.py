"""How much each word of the vocabulary moves each bit, seen from the encoder and the decoder."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import logsumexp

from vdsh.codes import Scores
from vdsh.explain.decoder import has_decoder, hidden
from vdsh.text.weighting import weigh

if TYPE_CHECKING:
    from vdsh.hashers import Hasher

_DOCUMENTS = 64  # made-up ones to average a gradient over
_CONTEXTS = 256  # latent vectors to average a hidden decoder layer over
_BLOCK = 2048  # one-word documents at a time


def encoder_effects(hasher: "Hasher") -> Scores:
    """Compute how the score of each bit moves with each word, of shape (n_bits, n_terms).

    The unit is a change of the score per standard deviation of the word's weight over the corpus,
    so that words nearly every document has, or nearly none, do not come first. (For models
    without inverse document frequencies it is the change per unit of weight.)

    For VDSH this is the gradient of the encoder, averaged over made-up documents: words drawn by
    their document frequencies, as many as a document has. Other models answer to each word alone,
    less their answer to an empty document.

    Measured on 20 Newsgroups by `benchmarks/bench_explain.py` (32 bits, VDSH and VDSH-S, linear
    decoders) against the truth, each word left out of 1,200 test documents in turn: of the 20
    words that most push a bit to a value the gradient finds 28 and 27 %, documents of one word
    31 and 20 % (in over three times the time), words put into made-up documents 26 and 21 %.
    """
    effects = _mean_gradient(hasher) if has_decoder(hasher) else _alone(hasher)
    return (effects * input_spread(hasher)[:, None]).T


def decoder_effects(hasher: Any) -> Scores:
    """Compute how each word's probability answers to each dimension, of shape (n_bits, n_terms).

    The change of log P(w | s) as the dimension goes from one below its threshold to one above it,
    the others staying in the middle of the corpus (with a hidden decoder layer: averaged over
    places around it), times the word's information: -ln of its document frequency, times the
    standard deviation of its presence.
    """
    middle = hasher.thresholds_
    others = np.zeros((1, hasher.n_bits), np.float32)
    if hasher.decoder_size:
        others = np.random.RandomState(0).normal(size=(_CONTEXTS, hasher.n_bits))
    change = np.empty((hasher.n_bits, len(hasher.G_)), np.float32)
    for bit in range(hasher.n_bits):
        high, low = middle + others, middle + others
        high[:, bit], low[:, bit] = middle[bit] + 1, middle[bit] - 1
        change[bit] = (hidden(hasher, high) - hidden(hasher, low)).mean(axis=0)
    logits: Scores = change @ hasher.G_
    centre = hidden(hasher, middle + others).mean(axis=0) @ hasher.G_ + hasher.b_words_
    norm = logsumexp(centre + logits / 2, axis=1) - logsumexp(centre - logits / 2, axis=1)
    frequency = document_frequencies(hasher)
    effects: Scores = logits - norm[:, None]
    if frequency is not None:
        effects *= -np.log(frequency) * np.sqrt(frequency * (1 - frequency))
    return effects


def document_frequencies(hasher: "Hasher") -> Scores | None:
    """Return the share of training documents with each word, where the model knows it."""
    if not hasattr(hasher, "idf_"):
        return None
    frequencies: Scores = np.minimum(np.exp(1 - hasher.idf_), 1)
    return frequencies


def input_spread(hasher: "Hasher") -> Scores:
    """Return the standard deviation of each word's weight over the corpus, or 1 if not known."""
    frequency = document_frequencies(hasher)
    if frequency is None:
        return np.ones(hasher.n_features_in_, np.float32)
    length = np.sqrt((frequency * hasher.idf_**2).sum())
    spread: Scores = hasher.idf_ * np.sqrt(frequency * (1 - frequency)) / length
    return spread


def _mean_gradient(hasher: Any) -> Scores:
    """Average d scores / d weights over made-up documents: of shape (n_terms, n_bits)."""
    inputs = made_up_documents(hasher)
    t1 = inputs @ hasher.W1_ + hasher.b1_
    t2 = np.maximum(t1, 0) @ hasher.W2_ + hasher.b2_
    paths = np.zeros((len(hasher.b1_), hasher.n_bits), np.float32)
    for on_1, on_2 in zip(t1 > 0, t2 > 0, strict=True):  # what the ReLUs let through
        paths[on_1] += hasher.W2_[np.ix_(on_1, on_2)] @ hasher.W3_[on_2]
    gradient: Scores = hasher.W1_ @ (paths / inputs.shape[0])
    return gradient


def made_up_documents(hasher: Any) -> csr_array:
    """Draw documents whose words are independent, each as frequent as in the corpus."""
    rng = np.random.RandomState(0)
    frequency = document_frequencies(hasher)
    if frequency is None:
        frequency = np.full(hasher.n_features_in_, min(1, 50 / hasher.n_features_in_))
    rows = [np.flatnonzero(rng.uniform(size=len(frequency)) < frequency) for _ in range(_DOCUMENTS)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    terms = np.concatenate(rows).astype(np.int32)
    shape = (len(rows), len(frequency))
    counts = csr_array((np.ones(len(terms), np.float32), terms, indptr), shape=shape)
    return weigh(counts, hasher.weighting, getattr(hasher, "idf_", None))


def _alone(hasher: "Hasher") -> Scores:
    """Compute the scores of one-word documents less those of an empty one."""
    n_terms = hasher.n_features_in_
    words = csr_array(eye_array(n_terms, format="csr", dtype=np.float32))
    blocks = [hasher.scores(words[i : i + _BLOCK]) for i in range(0, n_terms, _BLOCK)]
    empty: Scores = hasher.scores(csr_array((1, n_terms), dtype=np.float32))
    return np.concatenate(blocks) - empty
