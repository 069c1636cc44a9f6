"""Which fields an index for filters is made of, by all engines that make one."""

from collections.abc import Collection, Iterable

from vdsh.errors import InputError
from vdsh.store.where import All, Compare, Some, Tree, check_field

WORTH = 20_000  # documents; reading them all takes a few hundredths of a second
MOST = 16  # fields that get an index by themselves
LONGEST = 100  # characters of a text by which an index knows it


def fields_of(tree: Tree) -> set[str]:
    """Return the fields by which an index can tell few documents from the others.

    >>> sorted(fields_of(All((Compare("year", ">", (1990,)), Compare("id", "=", ("a",))))))
    ['year']
    """
    match tree:
        case All(parts) | Some(parts):
            return set().union(*map(fields_of, parts))
        case Compare(field) if field != "id":
            return {field}
        case _:
            return set()


def check_fields(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the fields that are to get an index, or say what is wrong with their names."""
    if isinstance(names, str):
        raise InputError(f"fields must be a list of names. Got one string: [{names!r}] is a list.")
    fields = list(dict.fromkeys("labels" if name == "label" else name for name in names))
    for name in fields:
        if not isinstance(name, str):
            raise InputError(f"A field's name must be a string. Got {name!r}.")
        check_field(name, known)
    return [name for name in fields if name != "id"]  # by which documents are found anyway
