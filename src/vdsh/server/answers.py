"""What answers look like, for the OpenAPI description."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema


class Answer(BaseModel):
    """A JSON object that the service gives."""

    model_config = ConfigDict(extra="forbid")


class Failure(Answer):
    """Why a request failed: a sentence, and a code for programs."""

    error: str
    code: str


class StoredDocument(Answer):
    """A document with its code in hex."""

    id: str
    text: str
    labels: list[str] | None
    metadata: dict[str, Any]
    code: str


class FoundDocument(StoredDocument):
    """A hit: a line of `vdsh search --json`."""

    distance: int
    expected: float | SkipJsonSchema[None] = None
    score: float | SkipJsonSchema[None] = Field(
        None, description="By words and code together, from 0 to 1.25, where ranked so."
    )
    words: list[str] | SkipJsonSchema[None] = Field(
        None, description="The query's words that the document has, where ranked by them."
    )
    title: str | SkipJsonSchema[None] = None
    passage: str | SkipJsonSchema[None] = Field(
        None, description="The best stretch of the text, in one line."
    )
    span: tuple[int, int] | SkipJsonSchema[None] = Field(
        None, description="Where the passage begins and ends in the text, in characters."
    )
    marks: list[tuple[int, int, bool]] | SkipJsonSchema[None] = Field(
        None,
        description="Where a word that matters begins and ends, and whether the query has it.",
    )


class EncodeAnswer(Answer):
    """A code a text, in hex."""

    codes: list[str]
    bits: int


class WeighedWord(Answer):
    """A word and how much it counts."""

    word: str
    weight: float


class BitOfText(Answer):
    """One bit of a text's code, and the text's words behind it."""

    bit: int
    value: Literal[0, 1]
    probability: float | None
    margin: float
    words: list[WeighedWord]


class TextAnswer(Answer):
    """Why a text has its code, and how sure that is."""

    code: str
    confidence: float | None
    expected_wrong: float | None
    bits: list[BitOfText]


class PlaceAnswer(Answer):
    """A place on the map."""

    x: float
    y: float


class SearchAnswer(Answer):
    """The query's code, the best documents, ties by id, and the words that are not known.

    The explanation and the place are there where highlights were asked for.
    """

    code: str
    hits: list[FoundDocument]
    unknown: list[str] | SkipJsonSchema[None] = None
    warning: str | SkipJsonSchema[None] = None
    explanation: TextAnswer | SkipJsonSchema[None] = None
    place: PlaceAnswer | SkipJsonSchema[None] = None


class SearchManyAnswer(Answer):
    """An answer a text, in their order."""

    answers: list[SearchAnswer]


class WithinAnswer(SearchAnswer):
    """The nearest documents within the radius, and how many there are in all."""

    total: int


class WordOfBoth(WeighedWord):
    """A word of two texts, and the bits on which it makes them agree."""

    bits: list[int]


class AgreementAnswer(Answer):
    """The bits on which two codes agree, and the words behind that."""

    agree: list[int]
    differ: list[int]
    shared_words: list[WordOfBoth]


class ExplainAnswer(TextAnswer):
    """Why a text has its code; with another text, where the two agree."""

    other: TextAnswer | SkipJsonSchema[None] = None
    agreement: AgreementAnswer | SkipJsonSchema[None] = None


class BitAnswer(Answer):
    """The words that set a bit to 1 and to 0, and its health."""

    bit: int
    ones: list[WeighedWord]
    zeros: list[WeighedWord]
    decoder_ones: list[WeighedWord] | None
    decoder_zeros: list[WeighedWord] | None
    balance: float
    entropy: float
    unused: bool
    duplicates: list[int]
    correlation: float | None = None
    correlated: int | None = None


class BitsAnswer(Answer):
    """All bits."""

    bits: list[BitAnswer]


class CountAnswer(Answer):
    """How many documents there are."""

    count: int


class PageAnswer(Answer):
    """Documents in the order of their ids, and the fingerprint of the model that made their codes.

    `next` is what to give as `after` for those that follow; it is null where there are no more.
    """

    documents: list[StoredDocument]
    next: str | None
    model: str


class WrittenAnswer(Answer):
    """How many documents were written."""

    written: int


class DeletedAnswer(Answer):
    """The document was there and is gone."""

    deleted: Literal[True]


class LimitsAnswer(Answer):
    """The most a request may ask for."""

    k: int
    batch: int
    text: int
    body: int


class ModelAnswer(Answer):
    """The model that makes the codes."""

    name: str
    bits: int
    fingerprint: str
    documents: int | None
    terms: int


class InfoAnswer(Answer):
    """What the service offers."""

    version: str
    store: str = Field(description="The name of this store.")
    stores: list[str] = Field(description="The names of all stores of the service.")
    documents: int
    bits: int
    words: str | None = Field(description="How words are searched, in a sentence.")
    model: ModelAnswer
    fields: list[str]
    labels: list[str]
    writable: bool
    map: bool
    examples: list[str] = Field(description="Texts to try, where the store has some.")
    limits: LimitsAnswer


class StatusAnswer(Answer):
    """All is well."""

    status: Literal["ok"]


def _failures(sentences: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Describe failures for OpenAPI."""
    return {
        status: {"model": Failure, "description": sentence}
        for status, sentence in sentences.items()
    }


ALWAYS = _failures(
    {
        400: "The Host header is not this machine's",
        401: "The token is missing or wrong",
        431: "The headers are too large",
        500: "The service failed",
        503: "Too busy, or the store cannot be used now",
        504: "It took too long",
    }
)
ASKED = _failures(
    {
        408: "The body did not arrive in time",
        413: "The body is too large",
        415: "The body is not application/json",
        422: "A field is not as it should be",
    }
)
NOT_THERE = _failures({404: "No such document"})
READ_ONLY = _failures({403: "The service, or the token, is for reading only"})
