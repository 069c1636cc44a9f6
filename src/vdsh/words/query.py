"""What a person typed: words to look for, phrases in quotes, and words to leave out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vdsh.text.languages import Language
from vdsh.text.tokenizer import tokenize
from vdsh.words.counting import find_parts
from vdsh.words.lexicon import exact_term

MOST_TYPED = 32  # words; what is longer was not typed but pasted, and nothing in it is a sign
_SIGNS = re.compile(r'(?<!\S)(-?)"([^"]*)"|(?<!\S)-(?=[^\s\d-])(\S+)')
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')


class Term(NamedTuple):
    """What the word index is asked for."""

    term: str
    word: str  # of the query
    weight: float  # beside other terms


EXACT = 0.15  # weight of the very word, beside its stem
MOST_EXACT = 16  # words of a query that are looked for as they stand
MOST_REPEATS = 2  # a word that the query repeats counts twice


class WordQuery(NamedTuple):
    """A query as words, before it is known which language they are in."""

    text: str  # the query without what is to be left out: what its code is made of
    words: dict[str, int]  # how often it has each word
    names: Sequence[str] = ()  # words that signs join, such as foo.bar
    # What was in quotes: words that a document must have, one after the other.
    phrases: Sequence[Sequence[str]] = ()
    without: Sequence[Sequence[str]] = ()  # words, or phrases, that a document must not have
    unfinished: str = ""  # its last word, where that may still be typed

    def corrected(self, meant: Mapping[str, str]) -> "WordQuery":
        """Put other words in the place of some."""
        words = Counter[str]()
        for word, n in self.words.items():
            words[meant.get(word, word)] += n
        return self._replace(words=dict(words), unfinished="")

    def while_typing(self, typed: str) -> "WordQuery":
        """Take the last word as one that may go on, where `typed` ends with it."""
        last = find_parts(self.text).tokens[-1:]
        going_on = last and typed.lower().endswith(last[0])
        return self._replace(unfinished=last[0] if going_on else "")

    @property
    def has_signs(self) -> bool:
        """Whether it has phrases, or words to leave out."""
        return bool(self.phrases or self.without)

    @property
    def needs_texts(self) -> bool:
        """Whether only the text of a document says if it fits: where several words are in order."""
        return bool(self.phrases) or any(len(words) > 1 for words in self.without)

    def excluded(self, language: Language) -> list[str]:
        """List the single words to leave out; but for stop words, which nearly all texts have."""
        words = [some[0] for some in self.without if len(some) == 1]
        return [word for word in words if word not in language.stop_words]

    def has_more_than_phrases(self, language: Language) -> bool:
        """Say whether it has phrases, and words beside them that are no stop words."""
        quoted = {word for phrase in self.phrases for word in phrase}
        return bool(quoted and self.words.keys() - quoted - language.stop_words)

    def content(self, language: Language) -> list[str]:
        """List its words but for stop words, and its names."""
        return [*(word for word in self.words if word not in language.stop_words), *self.names]

    def terms(self, language: Language) -> list[Term]:
        """Give the terms to look for."""
        words = {w: n for w, n in self.words.items() if w not in language.stop_words}
        stems = dict(zip(words, language.stems(list(words)), strict=True))
        terms: dict[str, Term] = {}
        for word, repeats in words.items():
            n = min(repeats, MOST_REPEATS)
            exact = exact_term(word, stems[word], language) if len(words) <= MOST_EXACT else None
            _add(terms, Term(stems[word], word, n * (1 - EXACT if exact else 1)))
            if exact:
                _add(terms, Term(exact, word, n * EXACT))
        for name in self.names:
            _add(terms, Term(f"={name}", name, 1.0))
        return list(terms.values())


def _add(terms: dict[str, Term], term: Term) -> None:
    if before := terms.get(term.term):
        most = MOST_REPEATS * (EXACT if term.weight < 0.5 else 1)
        term = before._replace(weight=min(term.weight + before.weight, most))
    terms[term.term] = term


def read_query(text: str) -> WordQuery:
    """Read a query as a person types it.

    Long texts, and those of several lines, are documents: quotes and dashes in them mean nothing.

    >>> read_query('mars "red planet" -rover')
    WordQuery(text='mars red planet', words={'mars': 1, 'red': 1, 'planet': 1}, names=(), \
phrases=[['red', 'planet']], without=[['rover']], unfinished='')
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
        tokens = tokenize(word if phrase is None else phrase, shortest=1)
        if phrase is None or dash:
            without.extend([tokens] if tokens else [])
            return " "
        phrases.extend([tokens] if tokens else [])
        return f" {phrase} "  # what is typed right behind it is a word of its own

    left = " ".join(_SIGNS.sub(take, text).split())
    return plain_query(left)._replace(phrases=phrases, without=without)


def plain_query(text: str) -> WordQuery:
    """Take a text as it is, whatever signs are in it."""
    parts = find_parts(text)
    words = Counter([*parts.tokens, *(piece for _, piece in parts.pieces)])
    return WordQuery(text, dict(words), tuple(dict.fromkeys(name for _, name in parts.names)))
