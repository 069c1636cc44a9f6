"""What a person typed: words to look for, phrases in quotes, and words to leave out."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize

MOST_TYPED = 32  # words; what is longer was not typed but pasted, and nothing in it is a sign
_SIGNS = re.compile(r'(?<!\S)(-?)"([^"]*)"|(?<!\S)-(?=[^\s-])(\S+)')
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')


class WordQuery(NamedTuple):
    """A query as words."""

    text: str  # the query without what is to be left out: what its code is made of
    words: dict[str, int]  # how often it has each word that is not a stop word
    # What was in quotes: words that a document must have, one after the other.
    phrases: Sequence[Sequence[str]] = ()
    without: Sequence[Sequence[str]] = ()  # words, or phrases, that a document must not have


def read_query(text: str) -> WordQuery:
    """Read a query as a person types it.

    A phrase of stop words alone is not in the index, so it asks for nothing. Long texts, and those
    of several lines, are documents: quotes and dashes in them mean nothing.

    >>> read_query('mars "red planet" -rover')
    WordQuery(text='mars red planet', words={'mars': 1, 'red': 1, 'planet': 1}, \
phrases=[['red', 'planet']], without=[['rover']])
    """
    text = text.translate(_QUOTES) if len(text) < 100 * MOST_TYPED else text
    if "\n" in text.strip() or ('"' not in text and "-" not in text):
        return plain_query(text)
    if len(text.split(maxsplit=MOST_TYPED)) > MOST_TYPED:
        return plain_query(text)
    phrases: list[list[str]] = []
    without: list[list[str]] = []

    def take(match: re.Match[str]) -> str:
        dash, phrase, word = match.groups()
        tokens = tokenize(word if phrase is None else phrase)
        searched = any(token not in SMART for token in tokens)
        if phrase is None or dash:
            without.extend([tokens] if searched else [])
            return " "
        phrases.extend([tokens] if searched else [])
        return f" {phrase} "  # what is typed right behind it is a word of its own

    left = " ".join(_SIGNS.sub(take, text).split())
    return plain_query(left)._replace(phrases=phrases, without=without)


def plain_query(text: str) -> WordQuery:
    """Take a text as it is, whatever signs are in it."""
    return WordQuery(text, content_words(text))


def content_words(text: str) -> dict[str, int]:
    """Count the words of a text that are not stop words."""
    return dict(Counter(word for word in tokenize(text) if word not in SMART))
