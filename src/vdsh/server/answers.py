"""What answers look like, for the OpenAPI description; made of the types that are answered."""

from collections.abc import Collection
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from vdsh.documents import Document
from vdsh.explain.results import Agreement, BitExplanation, TextExplanation
from vdsh.server.limits import Limits
from vdsh.store import Hit


class Answer(BaseModel):
    """A JSON object that the service gives."""

    model_config = ConfigDict(extra="forbid")


class Failure(Answer):
    """Why a request failed: a sentence, and a code for programs."""

    error: str
    code: str


def described(
    kind: type, *, name: str | None = None, optional: Collection[str] = (), **more: Any
) -> type[Answer]:
    """Describe the JSON object of a NamedTuple or a dataclass, with the types inside it.

    Parameters
    ----------
    optional : collection of str
        Fields that are left out where they are None or empty.
    more
        Further fields, as pydantic's `create_model` takes them.
    """
    fields: dict[str, Any] = {
        field: _may_have(_shape(hint)) if field in optional else (_shape(hint), ...)
        for field, hint in get_type_hints(kind).items()
    }
    first = (kind.__doc__ or "").partition("\n")[0]
    made: type[Answer] = create_model(
        name or kind.__name__, __base__=Answer, __doc__=first, **fields, **more
    )
    return made


def _shape(hint: Any) -> Any:
    """Describe NamedTuples, alone or in lists and unions, as the objects that JSON has of them."""
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return _known(hint)
    inner = tuple(map(_shape, get_args(hint)))
    if get_origin(hint) is list:
        return list[inner]  # type: ignore[valid-type]
    return Union[inner] if isinstance(hint, UnionType) else hint  # noqa: UP007


_known = cache(described)


def _may_have(kind: Any, description: str | None = None) -> Any:
    optional = kind | SkipJsonSchema[None]  # type: ignore[misc]
    return optional, Field(None, description=description)


StoredDocument = described(Document, name="StoredDocument", code=(str, ...))
FoundDocument = described(
    Hit,
    name="FoundDocument",
    optional=("expected", "score", "words", "related", "section"),
    place=_may_have(str, "The headings above the passage, or its page."),
    title=_may_have(str),
    passage=_may_have(str, "The best stretch of the text, in one line."),
    span=_may_have(
        tuple[int, int], "Where the passage begins and ends in the text, in characters."
    ),
    marks=_may_have(
        list[tuple[int, int, bool]],
        "Where a word that matters begins and ends, and whether the query has it.",
    ),
)
TextAnswer = described(TextExplanation)
BitAnswer = described(BitExplanation)
ExplainAnswer = described(
    TextExplanation,
    name="ExplainAnswer",
    other=_may_have(TextAnswer),
    agreement=_may_have(described(Agreement)),
)


class EncodeAnswer(Answer):
    """A code a text, in hex."""

    codes: list[str]
    bits: int


class PlaceAnswer(Answer):
    """A place on the map."""

    x: float
    y: float


class SearchAnswer(Answer):
    """The query's code, the best documents, ties by id, and the words that are not known.

    The explanation and the place are there where highlights were asked for.
    """

    code: str
    hits: list[FoundDocument]  # type: ignore[valid-type]
    unknown: list[str] | SkipJsonSchema[None] = None
    meant: dict[str, str] | SkipJsonSchema[None] = None
    warning: str | SkipJsonSchema[None] = None
    explanation: TextAnswer | SkipJsonSchema[None] = None  # type: ignore[valid-type]
    place: PlaceAnswer | SkipJsonSchema[None] = None


class SearchManyAnswer(Answer):
    """An answer a text, in their order."""

    answers: list[SearchAnswer]


class WithinAnswer(SearchAnswer):
    """The nearest documents within the radius, and how many there are in all."""

    total: int


class BitsAnswer(Answer):
    """All bits."""

    bits: list[BitAnswer]  # type: ignore[valid-type]


class CountAnswer(Answer):
    """How many documents there are."""

    count: int


class FacetsAnswer(Answer):
    """Fields, each with its commonest values: `{"value": "space", "count": 987}`."""

    facets: list[dict[str, Any]]


class PageAnswer(Answer):
    """Documents in the order of their ids, and the fingerprint of the model that made their codes.

    `next` is what to give as `after` for those that follow; it is null where there are no more.
    """

    documents: list[StoredDocument]  # type: ignore[valid-type]
    next: str | None
    model: str


class WrittenAnswer(Answer):
    """How many documents were written."""

    written: int


class DeletedAnswer(Answer):
    """The document was there and is gone."""

    deleted: Literal[True]


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
    limits: described(Limits)  # type: ignore[valid-type]


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
INVALID = _failures({422: "A field is not as it should be"})
ASKED = INVALID | _failures(
    {
        408: "The body did not arrive in time",
        413: "The body is too large",
        415: "The body is not application/json",
    }
)
NOT_THERE = _failures({404: "No such document"})
READ_ONLY = _failures({403: "The service, or the token, is for reading only"})
