"""Text to counts: `BagOfWords` and what it is made of."""

from typing import Any

from vdsh.text.counts import WEIGHTINGS, inverse_document_frequency, weigh
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize

__all__ = [
    "SMART",
    "WEIGHTINGS",
    "BagOfWords",
    "inverse_document_frequency",
    "tokenize",
    "weigh",
]


def __getattr__(name: str) -> Any:
    if name == "BagOfWords":  # an estimator: it loads scipy, which serving does without
        from vdsh.text.bag_of_words import BagOfWords

        return BagOfWords
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
