"""Classes of all commands and groups: plain values are taken as they are."""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

_NUMBER = re.compile("[+-]?[0-9]{1,15}")
_NOT_PLAIN: Any = object()


class _PlainValues:
    """Reads texts, whole numbers and lists of these without pydantic.

    Typer has pydantic check every value, and loading that takes a third of the time of a search.
    Values that are not plain, such as a word for a number, are left to Typer.
    """

    def get_params(self, context: Any) -> list[Any]:
        """List the parameters, with `--help`."""
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                _take_plain_values(parameter)
        return parameters


class Command(_PlainValues, TyperCommand):
    """A command."""


class Group(_PlainValues, TyperGroup):
    """A group of commands."""


def _take_plain_values(parameter: Any) -> None:
    # Older versions of Typer have no such attribute, and no pydantic.
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:
        return
    process = parameter.process_value
    is_list = descriptor.is_list
    kind = descriptor.annotation.__args__[0] if is_list else descriptor.annotation
    info = descriptor.parameter_info
    if kind not in (str, int, float, bool) or info.parser is not None:
        return

    def process_value(context: Any, value: Any) -> Any:
        plain: Any = _NOT_PLAIN
        if value is None and not parameter.required:
            plain = () if is_list else None
        elif is_list and isinstance(value, tuple | list) and value:
            plain = [_plain(one, kind, info.min, info.max) for one in value]
            plain = _NOT_PLAIN if _NOT_PLAIN in plain else plain
        elif not is_list:
            plain = _plain(value, kind, info.min, info.max)
        if plain is _NOT_PLAIN:
            return process(context, value)
        return parameter.callback(context, parameter, plain) if parameter.callback else plain

    parameter.process_value = process_value


def _plain(value: Any, kind: Any, least: float | None, most: float | None) -> Any:
    """Read a value of one kind, if there can be no doubt about it."""
    if kind is int and isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if type(value) is not kind:
        return _NOT_PLAIN
    if (least is not None and value < least) or (most is not None and value > most):
        return _NOT_PLAIN
    return value
