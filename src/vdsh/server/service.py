"""The stores of a service: what they are called, which one a request asks, and who may write."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from starlette.types import Scope

from vdsh.errors import InputError
from vdsh.server.bodies import Limits
from vdsh.server.json_routes import Refused
from vdsh.server.pool import StorePool
from vdsh.server.tokens import Token
from vdsh.store import Store
from vdsh.store.addresses import read_address, without_password

READ_ONLY = "This service only reads. Start it with --writable to change documents."
EXAMPLES = "examples.txt"  # in the store's folder: texts to try, a line each
MOST_EXAMPLES, LONGEST_EXAMPLE = 8, 200  # lines, and characters of each
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PATH = re.compile(r"/v1/stores/([^/]+)(/.*)", re.DOTALL)


class Service(NamedTuple):
    """A store that an application serves: an argument of type `ServiceDep`.

    `app.state.service` is the first one, `app.state.services` has all by name.
    """

    pool: StorePool
    limits: Limits
    refusal: str | None = None  # why the one who asks may not change documents; None who may
    name: str = "store"
    names: tuple[str, ...] = ("store",)  # of all stores

    @property
    def writable(self) -> bool:
        """Whether the one who asks may change documents."""
        return self.refusal is None

    def check_writable(self) -> None:
        """Raise where the one who asks may not change documents."""
        if self.refusal is not None:
            raise Refused(403, self.refusal)

    def as_seen_by(self, token: Token | None) -> "Service":
        """Return the store as the owner of a token may use it."""
        if self.writable and token is not None and not token.may_write:
            sentence = f"The token '{token.name}' is for reading. Ask with one that may write."
            return self._replace(refusal=sentence)
        return self


def make_services(
    stores: Mapping[str, str | os.PathLike[str] | Store],
    limits: Limits | None = None,
    *,
    writable: bool = False,
    device: str = "cpu",
) -> dict[str, Service]:
    """Make what routes and tools use of each store; it is opened when first asked."""
    names, refusal = tuple(stores), None if writable else READ_ONLY
    return {
        name: Service(StorePool(store, device=device), limits or Limits(), refusal, name, names)
        for name, store in stores.items()
    }


@contextmanager
def opened(services: Mapping[str, Service]) -> Iterator[None]:
    """Hold all stores open."""
    with ExitStack() as stack:
        for service in services.values():
            stack.callback(service.pool.close)
            service.pool.open()
        yield


async def service_of(request: Request) -> Service:  # async, or FastAPI would start a thread for it
    """Return the store that a request asks, by the name in its path, else the first."""
    state = request.app.state
    service: Service = state.services.get(request.scope.get("store"), state.service)
    return service.as_seen_by(request.scope.get("token"))


ServiceDep = Annotated[Service, Depends(service_of)]


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


def take_name(scope: Scope, names: Collection[str]) -> None:
    """Make /v1/stores/NAME/… in a request /v1/… of one store, or raise where there is none.

    The routes see the short path; `scope["store"]` has the name and `scope["asked"]` the long one.
    """
    found = _PATH.fullmatch(scope["path"])
    if found and found[1] not in names:
        sentence = f"There is no store '{found[1]}'. GET /v1/stores lists those there are."
        raise Refused(404, sentence, code="no_store")
    if found:
        scope.update(store=found[1], asked=scope["path"], path=f"/v1{found[2]}")


def read_examples(folder: str) -> list[str]:
    """Read the texts to try that the page offers; none where the store has no such file."""
    try:
        lines = (Path(folder) / EXAMPLES).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    return [line.strip()[:LONGEST_EXAMPLE] for line in lines if line.strip()][:MOST_EXAMPLES]
