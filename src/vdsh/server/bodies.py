"""What requests hold: checked by pydantic, and against the limits of the service.

Nobody pays for a request that is wrong: a list is measured before its items are looked at, and the
first error ends the search for others.
"""

from contextlib import suppress
from dataclasses import dataclass
from reprlib import repr as short
from typing import Annotated, Any, Literal, NamedTuple, Self
from warnings import catch_warnings, simplefilter

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import core_schema

from vdsh.documents.document import CONTROL, Document
from vdsh.model.model import EmptyDocumentWarning
from vdsh.store import Store
from vdsh.store.filters import parse_where

MOST_PARTS = 100  # of a filter
MOST_VALUES = 10_000  # in the lists of a filter
MOST_DIMENSIONS = 65_536  # of a vector
MOST_METADATA = 100_000  # bytes of a document's metadata, as JSON

_KEYWORDS = {"integer": "maximum", "string": "maxLength", "array": "maxItems"}


class Limits(NamedTuple):
    """How much a request may ask for, and how long it may take."""

    k: int = 1000  # most hits of one search
    batch: int = 1000  # most texts or documents in one call
    text: int = 200_000  # most characters of one text
    body: int = 4 * 2**20  # most bytes of a request's body
    waiting: int = 5000  # most requests that a worker answers or keeps waiting at a time
    seconds: float = 30.0  # longest time for an answer
    # Longest time for the client to send its request, and to take the answer.
    client_seconds: float = 20.0


@dataclass(frozen=True)
class Limited:
    """Marks a field whose number, or length, a setting of `Limits` bounds.

    The limits are the context of the validation; `name` is what a complaint calls the field.
    """

    setting: str
    name: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.with_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> Any:
        return {**handler(schema), "x-limit": self.setting}

    def _check(self, value: Any, info: ValidationInfo) -> Any:
        most: int = getattr(info.context or Limits(), self.setting)
        size = len(value) if isinstance(value, str | list) else value
        if isinstance(size, int):
            unit = " characters" if self.setting == "text" else ""
            _check_size(f"{self.name or info.field_name} must be", size, most, unit)
        return value


class Body(BaseModel):
    """A JSON object with known fields only."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, fields: Any) -> Any:
        for name in fields if isinstance(fields, dict) else ():
            if name not in cls.model_fields:
                raise ValueError(
                    f"There is no field {short(name)}. See /docs for the fields there are."
                )
        return fields


def _check_size(what: str, size: int, most: int, unit: str = "") -> None:
    if size > most:
        raise ValueError(f"{what} at most {most:,}{unit}. Got {size:,}.")


def _read_typed(where: Any) -> Any:
    """Make one filter of texts as the command line takes them."""
    if not isinstance(where, list):
        return where
    _check_size("A filter must have", len(where), MOST_PARTS, " parts")
    if not all(isinstance(text, str) for text in where):
        raise ValueError('where must be an object, or a list of texts such as ["label=space"].')
    return parse_where(where)


def _check_filter(where: dict[str, Any]) -> dict[str, Any]:
    """Count what a filter is made of: each part is tried on each document."""
    n_parts, n_values = 0, 0
    left: list[Any] = [where]
    while left:
        some = left.pop()
        n_parts += len(some) if isinstance(some, dict) else 0
        n_values += len(some) if isinstance(some, list) else 0
        _check_size("A filter must have", n_parts, MOST_PARTS, " parts")
        _check_size("A filter must have", n_values, MOST_VALUES, " values")
        inner = some.values() if isinstance(some, dict) else some
        left += [part for part in inner if isinstance(part, dict | list)]
    return where


def _check_metadata(metadata: Any) -> Any:
    with suppress(TypeError):  # too deep, or a number too large: the store refuses it in a sentence
        size = len(orjson.dumps(metadata))
        _check_size("metadata must be", size, MOST_METADATA, " bytes of JSON")
    return metadata


Text = Annotated[str, Limited("text")]
EachText = Annotated[str, Limited("text", "Each text")]
Texts = Annotated[list[EachText], Field(fail_fast=True), Limited("batch", "The number of texts")]
Id = Annotated[str, Field(min_length=1, max_length=4096)]
NewId = Annotated[Id, Field(json_schema_extra={"pattern": f"^[^{CONTROL}]+$"})]  # the store checks
Vector = Annotated[
    list[float],
    Field(
        fail_fast=True,
        min_length=1,
        max_length=MOST_DIMENSIONS,
        description="Where the store has a model of vectors; with a text, whose words count too.",
    ),
]
K = Annotated[int, Field(ge=1), Limited("k")]
Rank = Annotated[
    Literal["relevance", "distance", "expected"] | SkipJsonSchema[None],
    Field(
        description="By words and codes together, which is usual for a text and a stored "
        "document; by the distance of codes, which is usual for a code; or by the distance that "
        "is expected, since the model knows how sure it is of each bit of a text."
    ),
]
Label = Annotated[str, Field(max_length=1000)]
Strict = Annotated[
    bool, Field(description="Leave out hits that are only related; see `related` of a hit.")
]
Where = Annotated[
    Annotated[dict[str, Any], AfterValidator(_check_filter)] | None,
    BeforeValidator(_read_typed, json_schema_input_type=dict[str, Any] | list[str] | None),
    Field(
        description='A filter, such as {"label": "space"} or {"year": {">=": 1990}}; or a list of '
        'texts as `vdsh search --where` takes them, such as ["label=space", "year>=1990"].'
    ),
]
Highlight = Annotated[
    bool,
    Field(
        description="Say what a reader wants to know too: each hit's title, its best passage and "
        "the words that matter, why the query has its code, and its place on the map."
    ),
]


class Query(Body):
    """A text, a code in hex, the id of a stored document, or a vector, alone or with its text."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["text"]},
                {"required": ["code"]},
                {"required": ["id"]},
                {"required": ["vector"], "not": {"required": ["text"]}},
            ]
        }
    )

    text: Text | SkipJsonSchema[None] = None
    code: Annotated[str, Field(pattern="^([0-9a-fA-F]{2})+$")] | SkipJsonSchema[None] = None
    id: Id | SkipJsonSchema[None] = None
    vector: Vector | SkipJsonSchema[None] = None

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        text = None if self.vector is not None else self.text
        given = (text, self.code, self.id, self.vector)
        if sum(value is not None for value in given) != 1:
            raise ValueError("Give one of text, code, id and vector.")
        return self


class SearchBody(Query):
    """What to look for, and how many documents."""

    k: K = 10
    where: Where = None
    rank: Rank = None
    strict: Strict = False
    unfinished: bool = Field(
        False, description="The text is being typed: its last word may be the beginning of one."
    )
    highlight: Highlight = False


class SearchManyBody(Body):
    """Texts to look for, and how many documents for each."""

    texts: Texts
    k: Annotated[
        K, Field(description="Times the number of texts it must not be over the limit either.")
    ] = 10
    where: Where = None
    rank: Rank = None
    strict: Strict = False

    @model_validator(mode="after")
    def _check_total(self, info: ValidationInfo) -> Self:
        most, total = (info.context or Limits()).k, self.k * len(self.texts)
        _check_size("k times the number of texts must be", total, most)
        return self


class WithinBody(Query):
    """What to look for, and how near."""

    radius: Annotated[int, Field(ge=0, le=1024)] = 2
    where: Where = None
    limit: K = 1000
    highlight: Highlight = False


class CountBody(Body):
    """Which documents to count; all of them without a filter."""

    where: Where = None


class EncodeBody(Body):
    """Texts to hash, or vectors where the store has a model of vectors."""

    texts: Texts = []
    vectors: (
        Annotated[list[Vector], Field(fail_fast=True), Limited("batch", "The number of vectors")]
        | SkipJsonSchema[None]
    ) = None

    @model_validator(mode="after")
    def _check_some(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("The field 'texts' is missing.")
        return self


class ExplainBody(Body):
    """A text, or the id of a stored document, and another one to hold it against."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["id"]}],
            "not": {"required": ["other", "other_id"]},
        }
    )

    text: Text | SkipJsonSchema[None] = None
    id: Id | SkipJsonSchema[None] = None
    other: Text | SkipJsonSchema[None] = None
    other_id: Id | SkipJsonSchema[None] = None

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if (self.text is None) == (self.id is None):
            raise ValueError("Give one of text and id.")
        if self.other is not None and self.other_id is not None:
            raise ValueError("Give one of other and other_id, or neither.")
        return self


class NewDocument(Body):
    """A document to store."""

    id: NewId
    text: EachText
    labels: Annotated[list[Label], Field(fail_fast=True, max_length=1000)] | None = None
    metadata: Annotated[dict[str, Any], BeforeValidator(_check_metadata)] = {}
    vector: Vector | SkipJsonSchema[None] = None


class DocumentsBody(Body):
    """Documents to store; one whose id is there replaces the old one."""

    documents: Annotated[
        list[NewDocument], Field(fail_fast=True), Limited("batch", "The number of documents")
    ]

    def write_to(self, store: Store) -> int:
        """Write the documents, and the vectors of those that have one; return how many."""
        documents = [
            Document(d.id, d.text, None if d.labels is None else tuple(d.labels), d.metadata)
            for d in self.documents
        ]
        vectors = [d.vector for d in self.documents]
        some = vectors if any(vector is not None for vector in vectors) else None
        with catch_warnings():  # a document without a known word is no mistake of the service
            simplefilter("ignore", EmptyDocumentWarning)
            return store.upsert(documents, vectors=some)


def name_limits(schema: Any, limits: Limits) -> Any:
    """Write the limits into a JSON schema, where `Limited` left their names."""
    if isinstance(schema, list):
        return [name_limits(part, limits) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: name_limits(part, limits) for key, part in schema.items()}
    if "x-limit" in found:
        found[_KEYWORDS[found["type"]]] = getattr(limits, found.pop("x-limit"))
    return found
