"""What explanations and samples consist of, and how they become JSON."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vdsh.codes import Scores
from vdsh.errors import InputError


class Word(NamedTuple):
    """A word and how much it counts: an effect on a bit, or a probability."""

    word: str
    weight: float


class BitExplanation(NamedTuple):
    """What one bit says.

    Attributes
    ----------
    bit : int
        Counted from 0, the first bit of the code.
    ones, zeros : list of Word
        The words that most push the bit to 1 and to 0 when a document holds them, the strongest
        first, with weights above 0 in both lists: see `vdsh.explain.effects.encoder_effects`.
    decoder_ones, decoder_zeros : list of Word or None
        The words that become more probable where the latent dimension is high or low: see
        `vdsh.explain.effects.decoder_effects`. None for a model without a decoder.
    balance : float
        Share of the documents that have a 1.
    entropy : float
        Of the bit on its own; 1 is the most.
    unused : bool
        Whether it tells no documents apart.
    duplicates : list of int
        The bits that say the same, or the opposite.
    correlation : float or None
        With the bit that is most like it, from -1 to 1; None unless documents were given.
    correlated : int or None
        That bit.
    """

    bit: int
    ones: list[Word]
    zeros: list[Word]
    decoder_ones: list[Word] | None
    decoder_zeros: list[Word] | None
    balance: float
    entropy: float
    unused: bool
    duplicates: list[int]
    correlation: float | None = None
    correlated: int | None = None


class TextBit(NamedTuple):
    """One bit of a text's code.

    Attributes
    ----------
    bit, value : int
    probability : float or None
        Under Q(s | d), that the bit is 1; None for a model that does not say.
    margin : float
        How far the score is from the threshold; above 0 the bit is 1.
    words : list of Word
        The text's words with the largest effect. Above 0 a word pushes towards the bit's value,
        below 0 against it; above the size of the margin the bit flips without the word.
    """

    bit: int
    value: int
    probability: float | None
    margin: float
    words: list[Word]


class TextExplanation(NamedTuple):
    """Why a text has its code.

    Attributes
    ----------
    code : str
        In hex.
    confidence : float or None
        The share of bits that a draw from Q(s | d) is expected to repeat, from 0.5 (a coin for
        each bit) to 1. None for a model that does not say.
    expected_wrong : float or None
        The same as a number: the bits that such a draw is expected to change.
    bits : list of TextBit
    """

    code: str
    confidence: float | None
    expected_wrong: float | None
    bits: list[TextBit]


class SharedWord(NamedTuple):
    """A word of two texts and the bits on which it makes them agree.

    Attributes
    ----------
    word : str
    weight : float
        Sum over these bits of the smaller of its two effects.
    bits : list of int
        The largest effect first.
    """

    word: str
    weight: float
    bits: list[int]


class Agreement(NamedTuple):
    """Where two codes agree.

    Attributes
    ----------
    agree, differ : list of int
        Bits with the same and with different values.
    shared_words : list of SharedWord
        The words of both texts that push a bit to the value it has in both.
    """

    agree: list[int]
    differ: list[int]
    shared_words: list[SharedWord]


class PairExplanation(NamedTuple):
    """Two texts, each explained, and where they agree."""

    text: TextExplanation
    other: TextExplanation
    agreement: Agreement


class Sample(NamedTuple):
    """A draw from the generative model.

    Attributes
    ----------
    code : str
        In hex, of the latent vector that was drawn.
    words : list of Word
        The most probable words, with their probabilities.
    distinctive : list of Word
        The words that most tell this draw from the middle of the corpus: p ln(p / p_middle), each
        word's part in the divergence between the two.
    bag : list of str
        Words drawn from that distribution: a document as the model imagines it.
    """

    code: str
    words: list[Word]
    distinctive: list[Word]
    bag: list[str]


def strongest(
    effects: Scores, words: Sequence[str], n_words: int, *, either_way: bool = False
) -> list[Word]:
    """List the words with the largest effects above 0, or either way, the largest first."""
    sizes = np.abs(effects) if either_way else effects
    order = np.argsort(-sizes, kind="stable")[:n_words]
    return [Word(words[j], float(effects[j])) for j in order if sizes[j] > 0]


def check_n_words(n_words: int) -> None:
    """Raise where no list can have that length."""
    if n_words < 1:
        raise InputError(f"The number of words must be at least 1. Got {n_words}.")


def as_fields(result: Any) -> Any:
    """Turn a result into dicts and lists: the JSON that command line and server share.

    >>> as_fields([Word("orbit", 0.5)])
    [{'word': 'orbit', 'weight': 0.5}]
    """
    if isinstance(result, PairExplanation):
        text = as_fields(result.text)
        return text | {name: as_fields(getattr(result, name)) for name in ("other", "agreement")}
    if isinstance(result, tuple):
        return {name: as_fields(value) for name, value in result._asdict().items()}  # type: ignore[attr-defined]
    return [as_fields(item) for item in result] if isinstance(result, list) else result
