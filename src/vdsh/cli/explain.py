"""`vdsh explain` and `sample`: what bits say, why texts have their codes, what a model imagines."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import vdsh
from vdsh.cli import options
from vdsh.cli.options import argument, option
from vdsh.cli.output import say
from vdsh.errors import InputError

if TYPE_CHECKING:
    from vdsh.explain import BitExplanation, PairExplanation, TextExplanation, Word

EXAMPLES = {
    "explain": 'Example: vdsh research explain news-model "shuttle launch" --other "a probe"',
    "sample": "Example: vdsh research sample news-model --text 'a probe in orbit' -k 3",
}


@options.reads_documents
def explain(
    model: str = argument(..., "Folder of the model."),
    text: str | None = argument(None, "A text to explain; without one, the bits."),
    other: str | None = option(None, "A second text: show where the two codes agree, and why."),
    bit: int | None = option(None, "Only this bit, counted from 0, with the words' weights."),
    words: int | None = option(None, "How many words to list.  [default: 10, 5 per bit of a text]"),
    health: str | None = option(
        None, "Documents to measure balance and correlation of the bits on."
    ),
    reading: options.Reading = options.BY_DEFAULT,
    as_json: bool = options.JSON,
) -> None:
    """Print the words behind each bit, or which words of a text set which of its bits."""
    if other is not None and text is None:
        raise InputError("--other is the second text. Give the first one after the model.")
    if other is not None and bit is not None:
        raise InputError("--bit explains one bit of a model or of one text. Leave --other out.")
    if health is not None and text is not None:
        raise InputError("--health measures the bits of a model. Leave the text out.")
    from vdsh.explain import as_fields, check_bit, explain_bits, explain_pair, explain_text

    loaded = vdsh.Model.load(model).topic
    # checked before the model is explained, which may take a while
    chosen = range(loaded.n_bits) if bit is None else [check_bit(loaded, bit)]
    if text is None:
        documents = None if health is None else reading.documents(health)
        texts = None if documents is None else [document.text for document in documents]
        bits = explain_bits(loaded, n_words=10 if words is None else words, texts=texts)
        bits = [bits[i] for i in chosen]
        lines = _bits_lines(bits) if bit is None else _bit_lines(bits[0])
        say(as_fields(bits), *lines, as_json=as_json)
    elif other is None:
        found = explain_text(loaded, text, n_words=5 if words is None else words)
        found = found._replace(bits=[found.bits[i] for i in chosen])
        say(as_fields(found), *_text_lines(found), as_json=as_json)
    else:
        pair = explain_pair(loaded, text, other, n_words=5 if words is None else words)
        say(as_fields(pair), *_pair_lines(pair), as_json=as_json)


def sample(
    model: str = argument(..., "Folder of the model."),
    code: str | None = option(None, "Sample near documents with this code, in hex."),
    text: str | None = option(None, "Sample from the posterior of this text."),
    n: int = option(3, "Number of samples.", "-k"),
    words: int = option(10, "Number of words to list."),
    length: int = option(50, "Words in a bag."),
    seed: int = option(0, "The same seed gives the same samples."),
    as_json: bool = options.JSON,
) -> None:
    """Print word distributions drawn from the model, and bags of words drawn from those."""
    from vdsh.explain import as_fields
    from vdsh.explain import sample as draw

    how: dict[str, Any] = {"code": code, "text": text, "n_words": words, "length": length}
    for i, drawn in enumerate(draw(vdsh.Model.load(model), n, random_state=seed, **how), 1):
        say(
            as_fields(drawn),
            f"draw {i}, code {drawn.code}",
            f"  most probable  {' '.join(word.word for word in drawn.words)}",
            f"  distinctive    {' '.join(word.word for word in drawn.distinctive)}",
            f"  a bag          {' '.join(drawn.bag)}",
            as_json=as_json,
        )


def _bits_lines(bits: "list[BitExplanation]") -> Iterable[str]:
    from vdsh.model.health import describe

    yield "bit  value  share  words that push it there"
    for one in bits:
        for value, share, words in ((1, one.balance, one.ones), (0, 1 - one.balance, one.zeros)):
            name = f"{one.bit:>3}" if value else "   "
            yield f"{name}      {value}  {share:>4.0%}   {_names(words)}"
    unused = [one.bit for one in bits if one.unused]
    repeats = [[one.bit, twin] for one in bits for twin in one.duplicates if twin < one.bit]
    yield f"\n{describe(len(bits), unused, repeats).capitalize()}."
    if bits[0].correlation is not None:
        one = max(bits, key=lambda bit: abs(bit.correlation or 0))
        yield f"The most alike are bits {one.bit} and {one.correlated}: r = {one.correlation:.2f}."


def _bit_lines(one: "BitExplanation") -> Iterable[str]:
    yield f"bit {one.bit}"
    yield f"balance      {one.balance:.3f} of the documents have a 1"
    yield f"entropy      {one.entropy:.3f} of 1"
    if one.correlation is not None:
        yield f"correlation  {one.correlation:.2f} with bit {one.correlated}, the most alike"
    if one.unused:
        yield "unused       it tells no documents apart"
    if one.duplicates:
        yield f"duplicates   {', '.join(map(str, one.duplicates))}"
    yield f"encoder  1   {_weights(one.ones)}"
    yield f"         0   {_weights(one.zeros)}"
    if one.decoder_ones is not None and one.decoder_zeros is not None:
        yield f"decoder  1   {_weights(one.decoder_ones)}"
        yield f"         0   {_weights(one.decoder_zeros)}"


def _text_lines(found: "TextExplanation") -> Iterable[str]:
    yield f"code        {found.code}"
    if found.confidence is not None:
        yield (
            f"confidence  {found.confidence:.2f}: a draw from Q(s | d) is expected to change "
            f"{found.expected_wrong:.1f} bits"
        )
    yield "\nbit  value  P(1)  words for (+) and against (-) that value"
    for one in found.bits:
        chance = "   -" if one.probability is None else f"{one.probability:.2f}"
        words = "  ".join(f"{'+' if word.weight > 0 else '-'}{word.word}" for word in one.words)
        yield f"{one.bit:>3}  {one.value:>5}  {chance}  {words}"


def _pair_lines(pair: "PairExplanation") -> Iterable[str]:
    agreement = pair.agreement
    n_bits = len(agreement.agree) + len(agreement.differ)
    yield f"codes     {pair.text.code}  {pair.other.code}"
    yield f"distance  {len(agreement.differ)} of {n_bits} bits"
    yield f"differ    {', '.join(map(str, agreement.differ)) or 'none'}"
    if not agreement.shared_words:
        yield "\nNo word of both texts pushes a bit to the same value in both."
        return
    width = max(len(word.word) for word in agreement.shared_words)
    yield f"\n{'word':<{width}}  weight  bits on which it makes them agree"
    for word in agreement.shared_words:
        yield f"{word.word:<{width}}  {word.weight:>6.2f}  {' '.join(map(str, word.bits))}"
    for bit in agreement.differ:
        sides = (pair.text.bits[bit], pair.other.bits[bit])
        said = (f"{one.value} by {_names(w for w in one.words if w.weight > 0)}" for one in sides)
        yield f"bit {bit} differs: {', '.join(said)}"


def _names(words: "Iterable[Word]") -> str:
    return " ".join(word.word for word in words) or "no word"


def _weights(words: "Iterable[Word]") -> str:
    return "  ".join(f"{word.word} {word.weight:.3f}" for word in words) or "no word"
