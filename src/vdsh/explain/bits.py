"""What each bit says: words that push it to 1 and 0, if it does its work, how sure codes are."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vdsh.codes import Scores
from vdsh.errors import InputError
from vdsh.explain.effects import decoder_effects, encoder_effects
from vdsh.explain.results import BitExplanation, Word, check_n_words, strongest
from vdsh.model import Model, NotLearnedError, as_model
from vdsh.model.health import entropy

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher


def explain_bits(hasher: "TextHasher | Model", *, n_words: int = 10) -> list[BitExplanation]:
    """Say what each bit stands for.

    Parameters
    ----------
    hasher : TextHasher or Model
    n_words : int, default=10
        How many words to list for each value, at most.
    """
    check_n_words(n_words)
    model = as_model(hasher).topic
    if not model.n_bits:
        raise NotLearnedError
    if model.takes_vectors:
        raise InputError("This model hashes vectors and knows no words to explain bits with.")
    response = _both_sides(encoder_effects(model), model.words, n_words)
    decoded: list[Any] = [(None, None)] * model.n_bits
    if model.decoder is not None:
        decoded = _both_sides(decoder_effects(model, model.decoder), model.words, n_words)
    return [
        BitExplanation(bit, *response[bit], *decoded[bit], **fields)
        for bit, fields in enumerate(_health(model))
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


def _health(model: Model) -> Iterator[dict[str, Any]]:
    """Say how each bit does on the training documents, as a `BitExplanation` does."""
    learned = model.learned
    balance, duplicated = learned["bit_balance_"].astype(np.float64), learned["duplicated_bits_"]
    for bit, entropies in enumerate(entropy(balance)):
        first = {earlier for later, earlier in duplicated if bit in (later, earlier)}
        twins = {twin for pair in duplicated if pair[1] in first for twin in pair} - {bit}
        yield {
            "balance": float(balance[bit]),
            "entropy": float(entropies),
            "unused": bit in learned["unused_bits_"],
            "duplicates": sorted(twins),
        }


def share_kept(chances: Scores) -> Scores:
    """Compute the mean of max(p, 1 - p) over bits: from 0.5 (a coin for each bit) to 1.

    The chance that a draw repeats all bits at once would be next to nothing for every text at 32
    bits or more, and says less about search, where the number of differing bits decides:
    n_bits * (1 - confidence) of them are expected to differ.
    """
    kept: Scores = np.maximum(chances, 1 - chances).mean(axis=-1)
    return kept
