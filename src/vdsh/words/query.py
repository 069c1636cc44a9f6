"""What a person typed: words to look for, phrases in quotes, and words to leave out."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from vdsh.text.languages import Language
from vdsh.text.tokenizer import tokenize
from vdsh.words.counting import find_names, find_parts
from vdsh.words.lexicon import exact_term, has_letters

MOST_TYPED = 32  # words; what is longer was not typed but pasted, and nothing in it is a sign
_SIGNS = re.compile(r'(?<!\S)(-?)"([^"]*)"|(?<!\S)-(?=[^\s\d-])(\S+)')
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')


class Term(NamedTuple):
    """What the word index is asked for."""

    term: str
    word: str  # of the query
    weight: float  # beside other terms


EXACT = 0.15  # weight of the very word, beside its stem
# Weights beside a plain word: of an identifier, of each of its parts, and of plain words that a
# hyphen or a slash joins (`docs/relevance.md` says how they were chosen).
NAME, PART, JOINED = 1.5, 0.5, 0.5
_JOINT = re.compile(r"[#&+\-./:@_\\]")
_IDENTIFIER = re.compile(r"[+.:@_\\#]")  # signs inside; "anti-viral" and "and/or" are plain words
MOST_EXACT = 16  # words of a query that are looked for as they stand
MOST_REPEATS = 2  # a word that the query repeats counts twice


class WordQuery(NamedTuple):
    """A query as words, before it is known which language they are in."""

    text: str  # the query without what is to be left out: what its code is made of
    words: dict[str, int]  # how often it has each word
    # As they are written: words that signs join, such as foo.bar, and words such as textHasher.
    names: Sequence[str] = ()
    parts: Collection[str] = ()  # words that it has as parts of identifiers alone
    # What was in quotes: words that a document must have, one after the other.
    phrases: Sequence[Sequence[str]] = ()
    without: Sequence[Sequence[str]] = ()  # words, or phrases, that a document must not have
    unfinished: str = ""  # its last word, where that may still be typed

    def corrected(self, meant: Mapping[str, str]) -> "WordQuery":
        """Put other words in the place of some."""
        words = Counter[str]()
        for word, n in self.words.items():
            words[meant.get(word, word)] += n
        names = tuple(_corrected(name, meant) for name in self.names)
        parts = {meant.get(word, word) for word in self.parts}
        return self._replace(words=dict(words), names=names, parts=parts, unfinished="")

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

    def identifiers(self) -> list[str]:
        """List its names that are no plain words, as they are written."""
        return [name for name in self.names if is_identifier(name)]

    def only_name(self, language: Language) -> str:
        """Return the identifier that is all of the query but for stop words; "" for others."""
        names = self.identifiers()
        if len(names) != 1 or self.phrases or self.without or self.unfinished:
            return ""
        others = self.words.keys() - set(self.parts) - {names[0].lower()}
        return "" if others - language.stop_words else names[0]

    def terms(self, language: Language) -> list[Term]:
        """Give the terms to look for."""
        words = {w: n for w, n in self.words.items() if w not in language.stop_words}
        stems = dict(zip(words, language.stems(list(words)), strict=True))
        terms: dict[str, Term] = {}
        for word, repeats in words.items():
            n = min(repeats, MOST_REPEATS) * (PART if word in self.parts else 1)
            exact = exact_term(word, stems[word], language) if len(words) <= MOST_EXACT else None
            _add(terms, Term(stems[word], word, n * (1 - EXACT if exact else 1)), MOST_REPEATS)
            if exact:
                _add(terms, Term(exact, word, n * EXACT), MOST_REPEATS * EXACT)
        for name in self.names:
            if is_joined(name):
                weight = NAME if is_identifier(name) else JOINED
                _add(terms, Term(f"={name.lower()}", name, weight), MOST_REPEATS)
        return list(terms.values())


def rarest_first(query: WordQuery, df: Mapping[str, int], language: Language) -> list[str]:
    """List the words of a query that documents have, those that the fewest have first.

    `df`: how many documents have each term.
    """
    words = [word for word in query.words if word not in language.stop_words]
    stems = language.stems(words)
    counts = {word: df.get(stem, 0) for word, stem in zip(words, stems, strict=True)}
    return sorted([word for word in words if counts[word]], key=counts.__getitem__)


def absent_names(query: WordQuery, df: Mapping[str, int], language: Language) -> list[str]:
    """List the identifiers of a query that no document has, as they are written.

    A long text was pasted and not typed: nobody misses a name of it.
    """
    if len(query.words) > MOST_TYPED:
        return []
    return [
        name
        for name in query.identifiers()
        if not any(df.get(term) for term in name_terms(name, language))
    ]


def is_identifier(name: str) -> bool:
    """Say whether a name is one of programs, and no words that a hyphen or a slash joins.

    >>> [name for name in ("foo.bar", "textHasher", "anti-viral") if is_identifier(name)]
    ['foo.bar', 'textHasher']
    """
    return not is_joined(name) or _IDENTIFIER.search(name) is not None


def name_terms(name: str, language: Language) -> list[str]:
    """Give the terms of a name: documents with the first one that is anywhere have the name."""
    word = name.lower()
    if is_joined(name):
        return [f"={word}"]
    (stem,) = language.stems([word])
    exact = exact_term(word, stem, language)
    return [exact, stem] if exact else [stem]


def is_joined(name: str) -> bool:
    """Say whether signs are in a name; such as textHasher has none."""
    return _JOINT.search(name) is not None


def _corrected(name: str, meant: Mapping[str, str]) -> str:
    words = "|".join(map(re.escape, meant))
    pattern = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
    return pattern.sub(lambda match: meant.get(match[0].lower(), match[0]), name)


def _add(terms: dict[str, Term], term: Term, most: float) -> None:
    if before := terms.get(term.term):
        term = before._replace(weight=min(term.weight + before.weight, most))
    terms[term.term] = term


def read_query(text: str) -> WordQuery:
    """Read a query as a person types it.

    Long texts, and those of several lines, are documents: quotes and dashes in them mean nothing.

    >>> read_query('mars "red planet" -rover')
    WordQuery(text='mars red planet', words={'mars': 1, 'red': 1, 'planet': 1}, names=(), \
parts=frozenset(), phrases=[['red', 'planet']], without=[['rover']], unfinished='')
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
        tokens = [token for token in tokens if has_letters(token)]
        if phrase is None or dash:
            without.extend([tokens] if tokens else [])
            return " "
        phrases.extend([tokens] if tokens else [])
        return f" {phrase} "  # what is typed right behind it is a word of its own

    left = " ".join(_SIGNS.sub(take, text).split())
    query = plain_query(left)
    quoted = {word for phrase in phrases for word in phrase}
    words = query.words | dict.fromkeys(sorted(quoted - query.words.keys()), 1)
    return query._replace(words=words, phrases=phrases, without=without)


def plain_query(text: str) -> WordQuery:
    """Take a text as it is, whatever signs are in it."""
    found = find_parts(text)
    words = Counter([*found.tokens, *(piece for _, piece in found.pieces)])
    names, parts = find_names(text), Counter[str]()
    for name in names:
        inside = _parts_of(name)
        parts.update(inside)
        if max(map(len, inside), default=0) > 1:  # a lone letter of a name says nothing
            for part in inside:
                words[part] -= len(part) == 1
    counts = {word: n for word, n in words.items() if n > 0 and has_letters(word)}
    only_parts = frozenset(word for word, n in counts.items() if n <= parts[word])
    return WordQuery(text, counts, tuple(names), only_parts)


def _parts_of(name: str) -> list[str]:
    """List the parts of an identifier."""
    found = find_parts(name)
    pieces = [piece for _, piece in found.pieces]
    return [*found.tokens, *pieces] if is_identifier(name) and is_joined(name) else pieces
