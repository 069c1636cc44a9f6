"""What answers look like, for the OpenAPI description; made of the types that are answered."""

from collections.abc import Collection
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from vdsh.documents import Document
from vdsh.explain.results import Agreement, BitExplanation, TextExplanation
from vdsh.server.json_routes import FAILURES
from vdsh.store import Hit


def answer(name: str, about: str, /, **fields: Any) -> Any:
    """Describe a JSON object by the types of its fields, as `create_model` takes them."""
    return create_model(name, __config__=ConfigDict(extra="forbid"), __doc__=about, **fields)


def described(
    kind: type, *, name: str | None = None, optional: Collection[str] = (), **more: Any
) -> Any:
    """Describe the JSON object of a NamedTuple or a dataclass, with the types inside it.

    `optional` fields are left out where they are None or empty; `more` are fields besides.
    """
    fields: dict[str, Any] = {
        field: may_have(_shape(hint)) if field in optional else (_shape(hint), ...)
        for field, hint in get_type_hints(kind).items()
    }
    first = (kind.__doc__ or "").partition("\n")[0]
    return answer(name or kind.__name__, first, **fields, **more)


def _shape(hint: Any) -> Any:
    """Describe NamedTuples, alone or in lists and unions, as the objects that JSON has of them."""
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return _known(hint)
    inner = tuple(map(_shape, get_args(hint)))
    if get_origin(hint) is list:
        return list[inner]  # type: ignore[valid-type]
    return Union[inner] if isinstance(hint, UnionType) else hint  # noqa: UP007


_known = cache(described)


def may_have(kind: Any, about: str | None = None) -> Any:
    """Describe a field that is left out where there is nothing to say."""
    optional = kind | SkipJsonSchema[None]  # type: ignore[misc]
    return optional, Field(None, description=about)


StoredDocument: Any = described(Document, name="StoredDocument", code=(str, ...))
FoundDocument: Any = described(
    Hit,
    name="FoundDocument",
    optional=("expected", "score", "words", "related", "section", "copies"),
    place=may_have(str, "The headings above the passage, or its page."),
    title=may_have(str),
    passage=may_have(str, "The best stretch of the text, in one line."),
    span=may_have(tuple[int, int], "Where the passage begins and ends in the text, in characters."),
    marks=may_have(
        list[tuple[int, int, bool]],
        "Where a word that matters begins and ends, and whether the query has it.",
    ),
)
TextAnswer = described(TextExplanation)
BitAnswer: Any = described(BitExplanation)
ExplainAnswer = described(
    TextExplanation,
    name="ExplainAnswer",
    other=may_have(TextAnswer),
    agreement=may_have(described(Agreement)),
)
PlaceAnswer = answer("PlaceAnswer", "A place on the map.", x=float, y=float)
SEARCH: dict[str, Any] = {
    "code": str,
    "hits": list[FoundDocument],
    "unknown": may_have(list[str], "Words that had no effect."),
    "meant": may_have(dict[str, str]),
    "warning": may_have(str),
    "explanation": may_have(TextAnswer, "Where highlights were asked for."),
    "place": may_have(PlaceAnswer, "Where highlights were asked for, and there is a map."),
}
SearchAnswer: Any = answer(
    "SearchAnswer", "The query's code, and the best documents, ties by id.", **SEARCH
)
Failure = answer(
    "Failure", "Why a request failed: a sentence, and a code for programs.", error=str, code=str
)


def _failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Failure, "description": FAILURES[status][1]} for status in statuses}


ALWAYS = _failures(400, 401, 431, 500, 503, 504)
INVALID = _failures(422)
ASKED = _failures(422, 408, 413, 415)
NOT_THERE = _failures(404)
READ_ONLY = _failures(403)
