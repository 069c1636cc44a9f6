"""All documents of a store that is served, page by page."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from vdsh.client.messages import read_hit
from vdsh.codes import Codes, from_hex
from vdsh.documents import Document
from vdsh.errors import EngineError
from vdsh.store.hits import to_document

Page = tuple[list[Document], Codes]


def read_pages(ask: Callable[[str], Any], after: str, size: int) -> Iterator[Page]:
    """Yield documents with their codes, in the order of ids, those above `after`.

    Parameters
    ----------
    ask : callable
        Asks for a page, given what follows the question mark.
    size : int
        The most documents of a page.
    """
    last: str | None = after
    model = None
    while last is not None:
        answer = ask(urlencode({"after": last, "limit": size}))
        model = model or answer["model"]
        if answer["model"] != model:
            raise EngineError("The model of the store changed during the read. Start again.")
        hits = [read_hit(fields) for fields in answer["documents"]]
        if hits:
            yield list(map(to_document, hits)), from_hex([hit.code for hit in hits])
        last = answer["next"]
