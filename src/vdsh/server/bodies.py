"""What requests hold: checked by pydantic, and against the limits of the service."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import SkipJsonSchema

from vdsh.errors import InputError
from vdsh.server.limits import Limits

_KEYWORDS = {"integer": "maximum", "string": "maxLength", "array": "maxItems"}


class Limited:
    """Marks a field whose number, or length, a setting of `Limits` bounds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "x-limit": self.name}


class Body(BaseModel):
    """A JSON object with known fields only."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """Go through the fields that have a limit: name, value, and the name of the limit."""
        yield from ()


Text = Annotated[str, Limited("text")]
Id = Annotated[str, Field(min_length=1)]
Where = Annotated[
    dict[str, Any] | list[str] | None,
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
    """A text, a code in hex, or the id of a stored document."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in ("text", "code", "id")]}
    )

    text: Text | SkipJsonSchema[None] = None
    code: Annotated[str, Field(pattern="^([0-9a-fA-F]{2})+$")] | SkipJsonSchema[None] = None
    id: Id | SkipJsonSchema[None] = None

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if sum(value is not None for value in (self.text, self.code, self.id)) != 1:
            raise ValueError("Give one of text, code and id")
        return self

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield "text", self.text, "text"


class SearchBody(Query):
    """What to look for, and how many documents."""

    k: Annotated[int, Field(ge=1), Limited("k")] = 10
    where: Where = None
    rank: Literal["distance", "expected"] = "distance"
    highlight: Highlight = False

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield from super().bounded()
        yield "k", self.k, "k"


class WithinBody(Query):
    """What to look for, and how near."""

    radius: Annotated[int, Field(ge=0, le=1024)] = 2
    where: Where = None
    limit: Annotated[int, Field(ge=1), Limited("k")] = 1000
    highlight: Highlight = False

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield from super().bounded()
        yield "limit", self.limit, "k"


class EncodeBody(Body):
    """Texts to hash."""

    texts: Annotated[list[Text], Limited("batch")]

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield "The number of texts", self.texts, "batch"
        yield from (("Each text", text, "text") for text in self.texts)


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
    def _check_one(self) -> Self:
        if (self.text is None) == (self.id is None):
            raise ValueError("Give one of text and id")
        if self.other is not None and self.other_id is not None:
            raise ValueError("Give one of other and other_id, or neither")
        return self

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield "text", self.text, "text"
        yield "other", self.other, "text"


class NewDocument(Body):
    """A document to store."""

    id: Id
    text: Text
    labels: list[str] | None = None
    metadata: dict[str, Any] = {}


class DocumentsBody(Body):
    """Documents to store; one whose id is there replaces the old one."""

    documents: Annotated[list[NewDocument], Limited("batch")]

    def bounded(self) -> Iterator[tuple[str, Any, str]]:
        """See `Body.bounded`."""
        yield "The number of documents", self.documents, "batch"
        yield from (("Each text", document.text, "text") for document in self.documents)


def check_limits(body: Body, limits: Limits) -> None:
    """Raise where a request asks for more than the service gives."""
    for name, value, setting in body.bounded():
        most: int = getattr(limits, setting)
        size = value if isinstance(value, int) else len(value or ())
        if size > most:
            unit = " characters" if setting == "text" else ""
            raise InputError(f"{name} must be at most {most:,}{unit}. Got {size:,}.")


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
