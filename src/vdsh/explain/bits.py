"""What each bit says: words that push it to 1 and 0, if it does its work, how sure codes are."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Bits, Scores, binarize
from vdsh.errors import InputError
from vdsh.explain.effects import decoder_effects, encoder_effects
from vdsh.explain.results import BitExplanation, Word, check_n_words, strongest
from vdsh.model import Model, NotLearnedError, as_model
from vdsh.model.health import bit_health, entropy

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def explain_bits(
    hasher: "TextHasher | Model", *, n_words: int = 10, texts: Sequence[str] | None = None
) -> list[BitExplanation]:
    """Say what each bit stands for.

    Parameters
    ----------
    hasher : TextHasher or Model
    n_words : int, default=10
        How many words to list for each value, at most.
    texts : sequence of str, optional
        Documents to measure the bits on; without them balance, entropy, unused and duplicated
        bits are those of the training documents, and correlations are not known.
    """
    check_n_words(n_words)
    model = as_model(hasher).topic
    if not model.n_bits:
        raise NotLearnedError
    if model.takes_vectors:
        raise InputError("This model hashes vectors and knows no words to explain bits with.")
    health = list(_health(model, texts))
    response = _both_sides(encoder_effects(model), model.words, n_words)
    decoded: list[Any] = [(None, None)] * model.n_bits
    if model.decoder is not None:
        decoded = _both_sides(decoder_effects(model, model.decoder), model.words, n_words)
    return [
        BitExplanation(bit, *response[bit], *decoded[bit], **fields)
        for bit, fields in enumerate(health)
    ]


def check_bit(hasher: "TextHasher | Model", bit: int) -> int:
    """Return the number of a bit, or raise where the model has none such."""
    n_bits = as_model(hasher).topic.n_bits
    if not 0 <= bit < n_bits:
        raise InputError(f"There is no bit {bit}: the bits of this model are 0 to {n_bits - 1}.")
    return bit


def _both_sides(
    effects: Scores, words: Sequence[str], n_words: int
) -> list[tuple[list[Word], list[Word]]]:
    return [(strongest(row, words, n_words), strongest(-row, words, n_words)) for row in effects]


def _health(model: Model, texts: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Say how each bit does on some texts or the training documents, as a `BitExplanation` does."""
    learned, correlation = model.learned, None
    if texts is None:
        balance = learned["bit_balance_"].astype(np.float64)
        unused, duplicated = learned["unused_bits_"], learned["duplicated_bits_"]
    else:
        if (n_docs := len(texts)) < 2:
            raise InputError(f"At least two documents are needed to measure bits. Got {n_docs}.")
        scores = model.scores(texts)
        bits, noise = binarize(scores, model.thresholds), None
        if model.has_posterior:
            noise = (model.posterior_of(model.counts(texts[:1000])).sigma ** 2).mean(axis=0)
        balance, unused, duplicated = bit_health(scores, bits, noise)
        correlation = _correlations(bits)
    entropies = entropy(balance)
    for bit in range(model.n_bits):
        first = {earlier for later, earlier in duplicated if bit in (later, earlier)}
        twins = {twin for pair in duplicated if pair[1] in first for twin in pair} - {bit}
        fields: dict[str, Any] = {"balance": float(balance[bit]), "entropy": float(entropies[bit])}
        if correlation is not None:
            like = int(np.abs(correlation[bit]).argmax())
            fields |= {"correlation": float(correlation[bit, like]), "correlated": like}
        yield fields | {"unused": bit in unused, "duplicates": sorted(twins)}


def _correlations(bits: Bits) -> NDArray[np.float64]:
    """Correlate bits with one another; a constant bit, and a bit with itself, with 0."""
    with np.errstate(invalid="ignore"):
        correlation = np.asarray(np.corrcoef(bits, rowvar=False))
    correlation[np.isnan(correlation)] = 0
    np.fill_diagonal(correlation, 0)
    return correlation


def share_kept(chances: Scores) -> Scores:
    """Compute the mean of max(p, 1 - p) over bits: from 0.5 (a coin for each bit) to 1.

    The chance that a draw repeats all bits at once would be next to nothing for every text at 32
    bits or more, and says less about search, where the number of differing bits decides:
    n_bits * (1 - confidence) of them are expected to differ.
    """
    kept: Scores = np.maximum(chances, 1 - chances).mean(axis=-1)
    return kept
