"""Several stores in one service: how they are called, and which one a path asks."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from vdsh.errors import InputError
from vdsh.server.json_routes import failure
from vdsh.store.addresses import read_address, without_password

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PATH = re.compile(r"/v1/stores/([^/]+)(/.*)", re.DOTALL)


def name_stores(stores: Sequence[str], chosen: Sequence[str] = ()) -> dict[str, str]:
    """Give each store a name: the one that was chosen as NAME=STORE, else its folder's or table's.

    >>> name_stores(["data/news", "mail-store"], ["post=mail-store"])
    {'news': 'data/news', 'post': 'mail-store'}
    """
    wanted: dict[str, str] = {}
    for text in chosen:
        name, _, store = text.partition("=")
        if not NAME.fullmatch(name) or store not in stores:
            raise InputError(
                "--as takes NAME=STORE: a name of up to 64 letters, digits, dots and dashes, and "
                f"one of the stores as given. Got '{without_password(text)}'."
            )
        if store in wanted:
            raise InputError(f"'{without_password(store)}' is given two names. Choose one.")
        wanted[store] = name
    named: dict[str, str] = {}
    for store in stores:
        name = wanted.get(store) or _usual_name(store)
        if name in named:
            raise InputError(f"Two stores are called '{name}'. Name one of them: --as NAME=STORE")
        named[name] = store
    return named


def _usual_name(store: str) -> str:
    address = read_address(store)
    if address is None:
        name = Path(store).resolve().name
    else:
        name = address.options.get("table") or address.name or Path(address.place).stem
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:64]
    return name if NAME.fullmatch(name) else "store"


class ByName:
    """An ASGI application around the application: /v1/stores/NAME/… is /v1/… of one store.

    The routes see the short path; `scope["store"]` has the name and `scope["asked"]` the long one.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        found = _PATH.fullmatch(scope.get("path", ""))
        if found and found[1] not in self.names:
            sentence = f"There is no store '{found[1]}'. GET /v1/stores lists those there are."
            await failure(404, sentence, code="no_store")(scope, receive, send)
            return
        if found:  # in place: whoever counts requests looks into this scope afterwards
            scope.update(store=found[1], asked=scope["path"], path=f"/v1{found[2]}")
        await self.app(scope, receive, send)
