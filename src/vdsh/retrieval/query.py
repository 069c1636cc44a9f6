"""`Query`: what to look for, as words and as a code with the probability of each of its bits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vdsh.codes import Codes, Scores, unpack
from vdsh.errors import InputError
from vdsh.model import Model
from vdsh.model.joint import JointModel
from vdsh.words import WordQuery, read_query
from vdsh.words.query import plain_query

NO_WORDS = plain_query("")


@dataclass(frozen=True, eq=False)
class Query:
    """What to look for.

    A code begins with the bits of the topic, which come from the words of a text; where the store
    has vectors too, the bits of a vector follow.

    Attributes
    ----------
    code : ndarray of uint8 of shape (n_bytes,)
    words : WordQuery or None
        The words of a text, None where only a code was given.
    probabilities : ndarray of shape (n_bits,) or None
        The probability that each bit is 1. None where a code was given, or where the model does
        not say how sure it is.
    has_code : bool
        Whether the code says anything: a text in which the model knows no word has none.
    lacks_part : bool
        Whether a code of two parts, of a text and of a vector, lacks one of them.
    n_vector_bits : int
        How many bits at the end of the code belong to a vector.
    rotated_vector : ndarray of shape (n_vector_bits,) or None
        The vector itself, in the space whose signs are its bits.
    given_vector : bool
        Whether a vector was given, rather than made from the text.
    unknown_words : sequence of str
        Words of the text that the model does not know.
    """

    code: Codes
    words: WordQuery | None = None
    probabilities: Scores | None = None
    has_code: bool = True
    lacks_part: bool = False
    n_vector_bits: int = 0
    rotated_vector: Scores | None = None
    given_vector: bool = False
    unknown_words: Sequence[str] = ()

    @property
    def has_words(self) -> bool:
        """Whether there are words to look for; a vector that came alone has none."""
        return self.words is not None and (not self.given_vector or bool(self.words.text))

    @property
    def n_topic_bits(self) -> int:
        """How many bits at the beginning of the code belong to the words."""
        return 8 * len(self.code) - self.n_vector_bits

    def with_words(self, words: WordQuery) -> "Query":
        """Look for other words by the same code."""
        return replace(self, words=words)

    def with_stored_code(self, code: Codes) -> "Query":
        """Take the code that a document has in a store for the one made from its text."""
        bits = unpack(code[None])[0].astype(np.float64)
        is_certain = self.lacks_part or not self.has_code
        return replace(
            self,
            code=code,
            probabilities=bits if is_certain else self.probabilities,
            rotated_vector=self._signs(bits) if self.lacks_part else self.rotated_vector,
            has_code=True,
            lacks_part=False,
            unknown_words=(),
        )

    def _signs(self, bits: Scores) -> Scores:
        """Return the vector's part of some bits as -1 and 1."""
        return 2 * bits[self.n_topic_bits :] - 1


def read_words(text: str, rank: str) -> WordQuery:
    """Read a text; only ranking by relevance knows phrases and words to leave out."""
    return read_query(text) if rank == "relevance" else plain_query(text)


def encode_texts(model: Model, words: Sequence[WordQuery]) -> list[Query]:
    """Encode the texts of queries together, which costs hardly more than one.

    A model with a part for vectors embeds them too, where it can.
    """
    if not words:
        return []
    texts = [one.text for one in words]
    if isinstance(model, JointModel):
        vectors = model.embed_queries(texts)
        topics = encode_texts(model.topic, words)
        return [
            _join_vector(model.second, topic, vector)
            for topic, vector in zip(topics, vectors, strict=True)
        ]
    if model.takes_vectors and not model.embedder:
        return [_without_code(model, one) for one in words]
    counts = model.counts(texts)
    codes, probabilities = model.codes_and_weights(counts)
    return [
        Query(
            code=codes[i],
            words=words[i],
            probabilities=probabilities[i],
            has_code=not counts.empty[i],
            unknown_words=model.unknown_words(texts[i]),
        )
        for i in range(len(texts))
    ]


def encode_vector(model: Model, vector: Any, words: WordQuery = NO_WORDS) -> Query:
    """Encode a vector, alone or with the words of a text."""
    is_sequence = isinstance(vector, Sequence | np.ndarray)
    if not is_sequence or np.ndim(vector[0] if len(vector) else 0):
        raise InputError("A vector to look for must be one list of numbers.")
    if model.second is not None:
        topic = encode_texts(model.topic, [words])[0]
        return replace(_join_vector(model.second, topic, vector), given_vector=True)
    codes, probabilities = model.codes_and_weights(model.counts([words.text], [vector]))
    return Query(
        code=codes[0],
        words=words,
        probabilities=probabilities[0],
        given_vector=True,
        unknown_words=() if model.takes_vectors else model.unknown_words(words.text),
    )


def _without_code(model: Model, words: WordQuery) -> Query:
    """Look for words alone, where the model hashes vectors and nothing embeds the text."""
    return Query(
        code=np.zeros(model.n_bits // 8, np.uint8),
        words=words,
        probabilities=np.full(model.n_bits, 0.5),
        has_code=False,
        unknown_words=model.unknown_words(words.text),
    )


def _join_vector(second: Model, topic: Query, vector: Any) -> Query:
    """Put the code of a vector behind that of a text; where one is missing, its bits are open."""
    n_topic_bits = 8 * len(topic.code)
    if vector is None:
        vector_code = np.zeros(second.n_bits // 8, np.uint8)
        vector_probabilities: Scores = np.full(second.n_bits, 0.5)
        topic_probabilities = topic.probabilities
        rotated_vector = None
    else:
        rows = second.rows([vector])
        vector_codes, all_probabilities = second.codes_and_weights(rows)
        vector_code = vector_codes[0]
        vector_probabilities = all_probabilities[0]
        rotated_vector = second.scores_of(rows)[0] - second.thresholds
        topic_probabilities = topic.probabilities if topic.has_code else np.full(n_topic_bits, 0.5)
    has_text = topic.words is not None and bool(topic.words.text)
    return replace(
        topic,
        code=np.concatenate([topic.code, vector_code]),
        probabilities=np.concatenate([np.asarray(topic_probabilities), vector_probabilities]),
        has_code=topic.has_code or vector is not None,
        lacks_part=vector is None or not has_text,
        n_vector_bits=second.n_bits,
        rotated_vector=rotated_vector,
    )
