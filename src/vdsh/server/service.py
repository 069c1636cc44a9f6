"""What the routes of an application share."""

import os
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from vdsh.server.limits import Limits
from vdsh.server.pool import StorePool
from vdsh.server.tokens import Token
from vdsh.store import Store

READ_ONLY = "This service only reads. Start it with --writable to change documents."


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


def service_of(request: Request) -> Service:
    """Return the store that a request asks, by the name in its path, else the first."""
    state = request.app.state
    service: Service = state.services.get(request.scope.get("store"), state.service)
    return of_token(service, request.scope.get("token"))


def of_token(service: Service, token: Token | None) -> Service:
    """Return a store as the owner of a token may use it."""
    if service.writable and token is not None and not token.may_write:
        sentence = f"The token '{token.name}' is for reading. Ask with one that may write."
        return service._replace(refusal=sentence)
    return service


async def _of(request: Request) -> Service:  # async, or FastAPI would start a thread for it
    return service_of(request)


ServiceDep = Annotated[Service, Depends(_of)]
