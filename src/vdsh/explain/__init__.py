"""Look inside a model: words behind a bit, bits behind a text, how sure a code is, samples."""

from vdsh.explain.bits import check_bit, explain_bits
from vdsh.explain.results import (
    Agreement,
    BitExplanation,
    PairExplanation,
    Sample,
    SharedWord,
    TextBit,
    TextExplanation,
    Word,
    as_fields,
)
from vdsh.explain.samples import sample
from vdsh.explain.texts import explain_pair, explain_text

__all__ = [
    "Agreement",
    "BitExplanation",
    "PairExplanation",
    "Sample",
    "SharedWord",
    "TextBit",
    "TextExplanation",
    "Word",
    "as_fields",
    "check_bit",
    "explain_bits",
    "explain_pair",
    "explain_text",
    "sample",
]
