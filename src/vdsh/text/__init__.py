"""Text to counts: `BagOfWords` and what it is made of."""

from vdsh.text.bag_of_words import BagOfWords
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize
from vdsh.text.weighting import WEIGHTINGS, inverse_document_frequency, weigh

__all__ = [
    "SMART",
    "WEIGHTINGS",
    "BagOfWords",
    "inverse_document_frequency",
    "tokenize",
    "weigh",
]
