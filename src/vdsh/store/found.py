"""What engines find, before it becomes a hit."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from vdsh.codes import Codes
from vdsh.documents import Document


class QueryCode(NamedTuple):
    """A code to look for, and the fingerprint of the model that made it."""

    bits: Codes  # (n_bytes,)
    fingerprint: str


class Found(NamedTuple):
    """A document with its code, and its distance from the query where there was one."""

    document: Document
    code: bytes
    distance: int = 0


Page = TypeVar("Page", list[Found], list[tuple[str, bytes]])


class Candidate(NamedTuple):
    """A document that may be found, before it is fetched.

    Its distance is that from the code it was found by, its share what it answers of the query's
    words, from 0 to 1.
    """

    id: str
    distance: int
    code: bytes
    share: float = 0.0


Choose = Callable[[list[Candidate]], list[Candidate]]  # puts candidates in order, and cuts them


def choose_from(found: list[Found], choose: Choose | None) -> list[Found]:
    """Choose among documents that were fetched already."""
    if choose is None:
        return found
    by_id = {one.document.id: one for one in found}
    near = [Candidate(id, one.distance, one.code) for id, one in by_id.items()]
    return [by_id[candidate.id] for candidate in choose(near)]


def pages(read: Callable[[str], Page], last: str) -> Iterator[Page]:
    """Read page after page, each from where the one before ended, until one is empty."""
    while page := read(last):
        yield page
        last = last_id(page)


def last_id(page: Sequence[Found] | Sequence[tuple[str, bytes]]) -> str:
    """Return the last id of a page."""
    end = page[-1]
    return end.document.id if isinstance(end, Found) else end[0]
